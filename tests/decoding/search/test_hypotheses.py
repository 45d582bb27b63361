import jax
import jax.numpy as jnp
import numpy as np

from t2t_jax.decoding.search.hypotheses import (
    Hypotheses,
    concat_hypotheses,
    empty_hypotheses,
    gather_beams,
    mask_hypotheses,
    where_rows,
)


def some(rows, beams, *, start=0.0):
    numbers = start + jnp.arange(rows * beams, dtype=jnp.float32).reshape(rows, beams)
    tokens = jnp.broadcast_to(numbers[..., None].astype(jnp.int32), (rows, beams, 5))
    return Hypotheses(tokens, -numbers, -2.0 * numbers)


def test_places_are_taken_sentence_by_sentence_from_every_leaf():
    taken = gather_beams(some(2, 3), jnp.asarray([[2, 0], [1, 1]]))
    assert taken.tokens_BxWxT[:, :, 4].tolist() == [[2, 0], [4, 4]]
    assert taken.scores_BxW.tolist() == [[-4.0, 0.0], [-8.0, -8.0]]


def test_joined_places_stand_behind_the_first():
    both = concat_hypotheses(some(2, 3), some(2, 1, start=50.0))
    assert both.log_probabilities_BxW[1].tolist() == [-3.0, -4.0, -5.0, -51.0]


def test_what_is_not_kept_is_the_last_choice_in_both_numbers():
    keep = jnp.asarray([[True, False, True]])
    kept = mask_hypotheses(keep, some(1, 3, start=1.0))
    assert kept.log_probabilities_BxW.tolist() == [[-1.0, -np.inf, -3.0]]
    assert kept.scores_BxW.tolist() == [[-2.0, -np.inf, -6.0]]


def test_rows_are_chosen_whole():
    old, new = some(2, 3), empty_hypotheses(2, 3, max_length=5, pad=0)
    mixed = where_rows(jnp.asarray([False, True]), old, new=new)
    for leaf, before, after in zip(
        *map(jax.tree.leaves, (mixed, old, new)), strict=True
    ):
        np.testing.assert_array_equal(leaf[0], after[0])
        np.testing.assert_array_equal(leaf[1], before[1])
