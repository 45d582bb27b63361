import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.traverse_util import flatten_dict
from numpy.testing import assert_allclose, assert_array_equal

from t2t_jax.model.rnn.rnn import RNN
from tests.model.tiny import SOURCE, TARGET
from tests.model.tiny_rnn import TINY_RNN, rnn_apply, rnn_params

CLOSE = {"rtol": 1e-5, "atol": 1e-5}  # float32 sums in another order
KEY = jax.random.key(17)
REAL = np.asarray(TARGET) > 0
ONE_LAYER = dataclasses.replace(TINY_RNN, num_layers=1)
DROPPING = dataclasses.replace(TINY_RNN, dropout=0.3)

# Two rows: the pairs 0 and 1 of SOURCE and TARGET with padding between, and pair 2.
PACKED = {
    "source": [[5, 7, 11, 13, 2, 0, 17, 4, 2], [6, 9, 8, 2, 0, 0, 0, 0, 0]],
    "target_inputs": [[1, 8, 9, 6, 10, 12, 4, 1, 3], [1, 4, 5, 28, 14, 0, 0, 0, 0]],
    "source_segments": [[1, 1, 1, 1, 1, 0, 2, 2, 2], [1, 1, 1, 1, 0, 0, 0, 0, 0]],
    "target_segments": [[1, 1, 1, 1, 1, 1, 1, 2, 2], [1, 1, 1, 1, 1, 0, 0, 0, 0]],
}
PACKED = {name: jnp.array(rows) for name, rows in PACKED.items()}


def dropped(*args, key=KEY, **kwargs):
    return rnn_apply(
        *args, config=DROPPING, deterministic=False, rngs={"dropout": key}, **kwargs
    )


def test_a_packed_row_gives_the_same_logits_as_its_pairs_alone():
    alone = rnn_apply(SOURCE, TARGET)
    packed = rnn_apply(**PACKED)
    assert_allclose(packed[0, :7], alone[0], **CLOSE)
    assert_allclose(packed[0, 7:], alone[1, :2], **CLOSE)
    assert_allclose(packed[1, :5], alone[2, :5], **CLOSE)


def test_padding_on_either_side_changes_nothing():
    padded = rnn_apply(
        jnp.pad(SOURCE, ((0, 0), (3, 6))), jnp.pad(TARGET, ((0, 0), (2, 4)))
    )
    assert_allclose(padded[:, 2:9][REAL], rnn_apply(SOURCE, TARGET)[REAL], **CLOSE)


def test_a_word_depends_on_the_words_before_it_and_on_none_after():
    embedded = jax.random.normal(jax.random.key(0), (1, 5, 7))

    @jax.jit
    def jacobian(embedded):
        def decode(model, words):
            segments = jnp.ones((1, 5), int)
            memory = model.encode(SOURCE[:1])
            memory = model.decoder.project_memory(memory, segments)
            return model.decoder(words, memory, segments_BxT=segments, rows_B=None)

        params = {"params": rnn_params()}
        return jax.jacobian(lambda x: RNN(TINY_RNN).apply(params, x, method=decode))(
            embedded
        )

    influence = jnp.abs(jacobian(embedded)[0, :, :, 0]).sum(axis=(1, 3))
    assert_array_equal(influence > 0, np.tri(5, dtype=bool))


def test_a_source_word_knows_what_is_on_both_its_sides_in_its_segment_alone():
    segments = jnp.array([[1, 1, 1, 2, 2]])

    @jax.jit
    def jacobian(words):
        def encode(model, words):
            return model.encoder(words, segments_BxS=segments, rows_B=None)

        params = {"params": rnn_params()}
        return jax.jacobian(lambda x: RNN(TINY_RNN).apply(params, x, method=encode))(
            words
        )

    words = jax.random.normal(jax.random.key(0), (1, 5, 7))
    influence = jnp.abs(jacobian(words)[0, :, :, 0]).sum(axis=(1, 3))
    same = np.asarray(segments[0])[:, None] == np.asarray(segments[0])
    assert_array_equal(influence > 0, same)


def test_the_target_looks_at_its_own_segment_of_the_source():
    _, state = rnn_apply(**PACKED, mutable=("intermediates",))
    (weights,) = flatten_dict(state["intermediates"])[("decoder", "weights")]
    may_look = (
        PACKED["target_segments"][:, :, None] == PACKED["source_segments"][:, None]
    ) & (PACKED["source_segments"] > 0)[:, None]
    assert_array_equal(weights > 0, may_look)
    assert_allclose(weights.sum(-1)[PACKED["target_segments"] > 0], 1, rtol=1e-5)


def test_a_row_of_nothing_but_padding_leaves_all_gradients_finite():
    @jax.jit
    def gradient(params, source, target):
        def loss(params):
            logits = RNN(ONE_LAYER).apply({"params": params}, source, target)
            return (jax.nn.logsumexp(logits, axis=-1) * (target > 0)).sum()

        return jax.grad(loss)(params)

    last_is_padding = gradient(
        rnn_params(ONE_LAYER), SOURCE.at[2].set(0), TARGET.at[2].set(0)
    )
    assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(last_is_padding))
    last_looks_nowhere = gradient(rnn_params(ONE_LAYER), SOURCE.at[2].set(0), TARGET)
    assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(last_looks_nowhere))
    assert jnp.abs(last_is_padding["decoder"]["readout"]["kernel"]).min() > 0


def test_a_dropped_row_is_the_same_in_any_place_of_a_batch():
    rows, other = jnp.arange(3), jnp.array([2, 0, 1])
    whole = dropped(SOURCE, TARGET, rows=rows)
    moved = dropped(SOURCE[other], TARGET[other], rows=other)
    assert_allclose(moved, whole[other], **CLOSE)
    renumbered = dropped(SOURCE[other], TARGET[other], rows=rows)
    assert jnp.abs(renumbered - whole[other]).max() > 0.1


def test_dropout_differs_between_keys_and_is_off_by_default():
    rows = jnp.arange(3)
    one, other = (
        dropped(SOURCE, TARGET, key=jax.random.key(seed), rows=rows) for seed in (0, 1)
    )
    assert jnp.abs(one - other).max() > 0.1
    assert_array_equal(
        rnn_apply(SOURCE, TARGET, config=DROPPING), rnn_apply(SOURCE, TARGET)
    )


def test_states_and_logits_are_float32_where_activations_are_bfloat16():
    config = dataclasses.replace(TINY_RNN, compute_dtype="bfloat16")

    def one_step(model):
        memory = model.encode(SOURCE)
        attended = model.decoder.project_memory(memory, jnp.ones_like(SOURCE))
        return memory, *model.step(TARGET[:, :1], attended, model.init_states(3))

    memory, logits, states = jax.eval_shape(
        lambda: RNN(config).apply({"params": rnn_params()}, method=one_step)
    )
    assert memory.dtype == jnp.bfloat16
    assert {leaf.dtype for leaf in jax.tree.leaves(states)} == {jnp.dtype("float32")}
    assert logits.dtype == jnp.float32
    full = rnn_apply(SOURCE, TARGET)
    low = rnn_apply(SOURCE, TARGET, config=config, params=rnn_params())
    assert 0 < jnp.abs(low - full)[REAL].mean() < 0.05 * jnp.abs(full)[REAL].mean()


@pytest.mark.parametrize(
    ("tying", "matrices"),
    [
        ("all", {"embedding"}),
        ("decoder", {"source_embedding", "target_embedding"}),
        ("none", {"source_embedding", "target_embedding", "pre_softmax"}),
    ],
)
def test_tying_says_which_matrices_are_one(tying, matrices):
    config = dataclasses.replace(TINY_RNN, tying=tying)
    assert set(rnn_params(config)) == matrices | {"encoder", "decoder"}


def test_a_source_vocabulary_of_its_own_has_its_own_size():
    config = dataclasses.replace(TINY_RNN, tying="decoder", source_vocab_size=19)
    params = rnn_params(config)
    assert params["source_embedding"]["table"].shape == (19, 7)
    assert params["target_embedding"]["table"].shape == (29, 7)


def test_positions_are_taken_and_make_no_difference():
    positions = {"source_positions": SOURCE * 0 + 3, "target_positions": TARGET * 0}
    assert_array_equal(
        rnn_apply(SOURCE, TARGET, **positions), rnn_apply(SOURCE, TARGET)
    )


def test_axes_that_do_not_agree_are_refused():
    model = RNN(TINY_RNN)
    with pytest.raises(ValueError, match=r"target_inputs must be \[B, T\] with B=3"):
        model.init(KEY, SOURCE, TARGET[:2])
    with pytest.raises(ValueError, match=r"source_segments must be \[B, S\]"):
        model.init(KEY, SOURCE, TARGET, source_segments=SOURCE[:, :4])
    with pytest.raises(ValueError, match=r"memory must be \[B, S, 22\]"):
        model.apply(
            {"params": rnn_params()},
            TARGET,
            jnp.zeros((3, 5, 21)),
            source_segments=SOURCE,
            method="decode",
        )
