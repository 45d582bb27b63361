import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from flax.traverse_util import flatten_dict
from numpy.testing import assert_allclose, assert_array_equal

from t2t_jax.model.config import RNNConfig
from t2t_jax.model.rnn.rnn import RNN
from t2t_jax.training.loss import summarise
from tests.model.tiny import SOURCE, TARGET, TINY_RNN, rnn_apply, rnn_params
from tests.training.copy_task import EOS, Trainer, V, batch_of, pair_of, sentences

CLOSE = {"rtol": 1e-5, "atol": 1e-5}  # float32 sums in another order
REAL = np.asarray(TARGET) > 0

# Two rows: the pairs 0 and 1 of SOURCE and TARGET with padding between, and pair 2.
PACKED = {
    "source": [[5, 7, 11, 13, 2, 0, 17, 4, 2], [6, 9, 8, 2, 0, 0, 0, 0, 0]],
    "target_inputs": [[1, 8, 9, 6, 10, 12, 4, 1, 3], [1, 4, 5, 28, 14, 0, 0, 0, 0]],
    "source_segments": [[1, 1, 1, 1, 1, 0, 2, 2, 2], [1, 1, 1, 1, 0, 0, 0, 0, 0]],
    "target_segments": [[1, 1, 1, 1, 1, 1, 1, 2, 2], [1, 1, 1, 1, 1, 0, 0, 0, 0]],
}
PACKED = {name: jnp.array(rows) for name, rows in PACKED.items()}


def test_a_packed_row_gives_the_same_logits_as_its_pairs_alone():
    alone = rnn_apply(SOURCE, TARGET)
    packed = rnn_apply(**PACKED)
    assert_allclose(packed[0, :7], alone[0], **CLOSE)
    assert_allclose(packed[0, 7:], alone[1, :2], **CLOSE)
    assert_allclose(packed[1, :5], alone[2, :5], **CLOSE)


def influence(run):
    """Returns which of the words that are read change which of the outputs."""
    embedded = jax.random.normal(jax.random.key(0), (1, 5, 7))
    apply = partial(RNN(TINY_RNN).apply, {"params": rnn_params()}, method=run)
    jacobian = jax.jit(jax.jacobian(apply))
    return jnp.abs(jacobian(embedded)[0, :, :, 0]).sum(axis=(1, 3)) > 0


def test_a_word_depends_on_the_words_before_it_and_on_none_after():
    def decode(model, words):
        segments = jnp.ones((1, 5), int)
        memory = model.decoder.project_memory(model.encode(SOURCE[:1]), segments)
        return model.decoder(words, memory, segments_BxT=segments, rows_B=None)

    assert_array_equal(influence(decode), np.tri(5, dtype=bool))


def test_a_source_word_knows_what_is_on_both_its_sides_in_its_segment_alone():
    segments = np.array([[1, 1, 1, 2, 2]])

    def encode(model, words):
        return model.encoder(words, segments_BxS=jnp.array(segments), rows_B=None)

    assert_array_equal(influence(encode), segments.T == segments)


def test_the_target_looks_at_its_own_segment_of_the_source():
    _, state = rnn_apply(**PACKED, mutable=("intermediates",))
    (weights,) = flatten_dict(state["intermediates"])[("decoder", "weights")]
    may_look = (
        PACKED["target_segments"][:, :, None] == PACKED["source_segments"][:, None]
    ) & (PACKED["source_segments"] > 0)[:, None]
    assert_array_equal(weights > 0, may_look)
    assert_allclose(weights.sum(-1)[PACKED["target_segments"] > 0], 1, rtol=1e-5)


def test_states_and_logits_are_float32_where_activations_are_bfloat16():
    config = dataclasses.replace(TINY_RNN, compute_dtype="bfloat16")

    def one_step(model):
        memory = model.encode(SOURCE)
        attended = model.decoder.project_memory(memory, jnp.ones_like(SOURCE))
        return memory, *model.step(TARGET[:, :1], attended, model.init_states(3))

    params = {"params": rnn_params()}
    memory, logits, states = jax.eval_shape(
        lambda: RNN(config).apply(params, method=one_step)
    )
    assert memory.dtype == jnp.bfloat16
    assert {leaf.dtype for leaf in jax.tree.leaves(states)} == {jnp.dtype("float32")}
    assert logits.dtype == jnp.float32
    full = rnn_apply(SOURCE, TARGET)
    low = rnn_apply(SOURCE, TARGET, config=config, params=rnn_params())
    assert 0 < jnp.abs(low - full)[REAL].mean() < 0.05 * jnp.abs(full)[REAL].mean()


def reversed_pairs(seed, count):
    """Draws sentences to be said from their end: the source must be looked at."""
    drawn = sentences(seed, count)
    return batch_of([pair_of(w) | {"source": [*w[::-1], EOS]} for w in drawn])


def test_a_reversal_is_learned_to_99_percent():
    config = RNNConfig(
        vocab_size=V, num_layers=1, d_model=32, d_hidden=48, d_attention=32
    )
    learner = Trainer(module=RNN(config), rows=32, warmup_steps=50)
    state, _ = learner.steps(reversed_pairs(100 + n, 32) for n in range(500))
    figures = summarise(learner.sums(state.params, reversed_pairs(1, 64)))
    assert figures["accuracy"] > 0.99, figures
