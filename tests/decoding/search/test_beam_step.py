import jax
import jax.numpy as jnp
import numpy as np

from t2t_jax.decoding.search.beam_search import (
    advance,
    beam_step,
    init_state,
    is_done,
)
from t2t_jax.decoding.search.beam_state import (
    Hypotheses,
    concat_hypotheses,
    empty_hypotheses,
    gather_beams,
    mask_hypotheses,
    where_rows,
)
from t2t_jax.decoding.search.length_penalty import DEFAULT_IDS, per_sentence_limits
from t2t_jax.decoding.search.static_params import BeamParams
from tests.decoding.models import BOS, EOS, UNK, lattice, recurrent

A, B, C, D = 4, 5, 6, 7
V = 11


def start(model, source, *, search_params, extra=5, room=12):
    memory = model.encode(source)
    limits_B = per_sentence_limits(
        source, max_extra_tokens=extra, max_length=room, ids=DEFAULT_IDS
    )
    return memory, init_state(
        model,
        memory,
        limits_B=limits_B,
        max_length=room,
        cache_length=room,
        search_params=search_params,
    )


def test_at_first_only_one_beam_is_alive():
    search_params = BeamParams(beam_size=3)
    _, state = start(
        recurrent(0, V), jnp.asarray([[4, EOS]]), search_params=search_params
    )
    assert state.living.log_probabilities_BxW.tolist() == [[0.0, -np.inf, -np.inf]]
    assert state.last_tokens_BxW.tolist() == [[BOS] * 3]
    assert state.position.tolist() == 0


def test_one_step_drawn():
    tree = {(): {A: 0.5, B: 0.2, C: 0.1, EOS: 0.15, UNK: 0.05}}
    search_params = BeamParams(beam_size=2, length_penalty=1.0)
    model = lattice(tree, V)
    memory, state = start(model, jnp.asarray([[4, EOS]]), search_params=search_params)
    state = beam_step(model, state, memory=memory, search_params=search_params)
    # The best 4: A, B, eos, C. Eos is finished, A and B are the best others.
    assert state.living.tokens_BxWxT[0, :, 0].tolist() == [A, B]
    assert state.last_tokens_BxW.tolist() == [[A, B]]
    living = np.log([[0.5, 0.2]])
    np.testing.assert_allclose(state.living.log_probabilities_BxW, living, rtol=1e-6)
    assert state.finished.tokens_BxWxT[0, 0, :2].tolist() == [EOS, 0]
    finished = [[np.log(0.15), -np.inf]]
    np.testing.assert_allclose(state.finished.scores_BxW, finished, rtol=1e-6)


def test_a_sentence_is_done_when_nothing_living_can_overtake():
    # After two tokens A eos has log .5 / (7/6)^.6 = -.632, and B C has log .45 = -.799.
    # At a limit of 3 B C could reach -.799 / (8/6)^.6 = -.672, at 4 -.626.
    model = lattice(
        {(): {A: 0.5, B: 0.45, UNK: 0.05}, (B,): {C: 1.0}, (B, C): {D: 1.0}}, V
    )
    search_params = BeamParams(beam_size=2)
    source = jnp.asarray([[4, EOS, 0], [4, 5, EOS]])
    memory, state = start(model, source, search_params=search_params, extra=2)
    for done in ([False, False], [False, False], [True, False]):
        assert is_done(state, search_params=search_params).tolist() == done
        state = beam_step(model, state, memory=memory, search_params=search_params)
    assert state.finished.tokens_BxWxT[0, 0, :2].tolist() == [A, EOS]


def test_two_outputs_need_two_that_are_certain():
    model = lattice({(): {A: 0.6, B: 0.4}, (B,): {C: 0.5, D: 0.5}}, V)
    source = jnp.asarray([[4, 5, EOS]])
    reached = []
    for n_best in (1, 2):
        search_params = BeamParams(beam_size=3, length_penalty=0.0, n_best=n_best)
        memory, state = start(model, source, search_params=search_params)
        state = advance(
            model, state, memory=memory, until=12, search_params=search_params
        )
        reached.append(int(state.position))
    assert reached == [2, 3]  # A eos, then B C eos


def test_a_done_sentence_no_longer_changes():
    search_params = BeamParams(beam_size=3)
    source = jnp.asarray([[4, EOS, 0, 0], [5, 6, 7, EOS], [9, 6, EOS, 0]])
    step = jax.jit(beam_step, static_argnames="search_params")
    num_frozen = 0
    for seed in range(4):
        model = recurrent(seed, V, eos_bias=1.0)
        memory, state = start(model, source, search_params=search_params, extra=3)
        while int(state.position) < 11:
            done = np.asarray(is_done(state, search_params=search_params))
            after = step(model, state, memory=memory, search_params=search_params)
            before = (*state.living, *state.finished)
            later = (*after.living, *after.finished)
            for old, new in zip(before, later, strict=True):
                np.testing.assert_array_equal(old[done], new[done])
                num_frozen += int(done.sum())
            assert np.all(np.asarray(is_done(after, search_params=search_params))[done])
            moved = after.living.log_probabilities_BxW != (
                state.living.log_probabilities_BxW
            )
            assert np.all(np.asarray(moved).any(axis=1)[~done])
            state = after
    assert num_frozen > 50


def test_advance_stops_where_it_is_told_or_when_all_is_done():
    search_params = BeamParams(beam_size=2)
    source = jnp.asarray([[4, 5, EOS], [4, EOS, 0]])
    model = recurrent(0, V, eos_bias=-50.0)
    memory, state = start(model, source, search_params=search_params, extra=5)
    stopped = advance(model, state, memory=memory, until=4, search_params=search_params)
    assert int(stopped.position) == 4
    resumed = advance(
        model, stopped, memory=memory, until=12, search_params=search_params
    )
    assert int(resumed.position) == 7  # two subwords and five
    at_once = advance(
        model, state, memory=memory, until=12, search_params=search_params
    )
    for one, two in zip(resumed.living, at_once.living, strict=True):
        np.testing.assert_array_equal(one, two)


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
