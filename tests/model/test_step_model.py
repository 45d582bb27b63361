"""Both models decode step by step what their full pass says."""

import dataclasses
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from numpy.testing import assert_allclose

from t2t_jax.model.architectures import step_model
from t2t_jax.model.attention import MultiHeadAttention
from t2t_jax.model.config import TransformerConfig
from t2t_jax.model.rnn.rnn import RNN, RNNStepModel
from t2t_jax.model.step_model import RecomputingStepModel, TransformerStepModel
from t2t_jax.model.transformer import Transformer
from tests.decoding.models import search
from tests.model.tiny import (
    SOURCE,
    TARGET,
    TINY,
    TINY_RNN,
    drawn_params,
    rnn_apply,
    rnn_params,
    tiny_apply,
    tiny_params,
)

CLOSE = {"rtol": 1e-5, "atol": 1e-5}  # float32 sums in another order
MODEL = TransformerStepModel(Transformer(TINY), tiny_params())
RECURRENT = RNNStepModel(RNN(TINY_RNN), rnn_params())
BOTH = pytest.mark.parametrize(
    ("model", "apply"),
    [(MODEL, tiny_apply), (RECURRENT, rnn_apply)],
    ids=["transformer", "rnn"],
)
ONE, ONE_RNN = (dataclasses.replace(one, num_layers=1) for one in (TINY, TINY_RNN))
TODAYS = dataclasses.replace(
    ONE, norm="rms", activation="swiglu", positions="rotary", d_k=6
)
MODERN = TransformerStepModel(Transformer(TODAYS), tiny_params(TODAYS))
modern_apply = partial(tiny_apply, config=TODAYS)
ENCODE = jax.jit(lambda model, source: model.encode(source))
STEP = jax.jit(lambda model, *arguments: model.step(*arguments))


def run(model, tokens_BxWxT, *, parents=None, length=7):
    """Reads all tokens step by step, compiled with the model as an argument."""
    memory = ENCODE(model, SOURCE)
    cache = model.init_cache(memory, tokens_BxWxT.shape[1], 3)
    outputs = []
    for t in range(tokens_BxWxT.shape[2]):
        if t == 3:
            cache = model.grow(cache, length)
            if parents is not None:
                cache = model.reorder(cache, parents)
        logits, cache = STEP(model, tokens_BxWxT[:, :, t], memory, cache, jnp.int32(t))
        outputs.append(logits)
    return jnp.stack(outputs, axis=2)


@BOTH
def test_steps_equal_the_full_pass_while_the_cache_grows(model, apply):
    logits = run(model, TARGET[:, None], length=11)
    real = np.asarray(TARGET) > 0
    assert_allclose(logits[:, 0][real], apply(SOURCE, TARGET)[real], **CLOSE)


@pytest.mark.parametrize(
    ("model", "apply", "beams"),
    [
        *((MODEL, tiny_apply, beams) for beams in (2, 11)),
        *((MODERN, modern_apply, beams) for beams in (2, 11)),
        (RECURRENT, rnn_apply, 2),
    ],
)
def test_a_reordered_beam_goes_on_from_its_parent(model, apply, beams):
    firsts = jax.random.randint(jax.random.key(0), (3, beams, 3), 3, 29)
    lasts = jax.random.randint(jax.random.key(1), (3, beams, 4), 3, 29)
    parents = jnp.array([[1, 0], [1, 1], [0, 0]])
    parents = jnp.pad(parents, ((0, 0), (0, beams - 2)), mode="edge")
    logits = run(model, jnp.concatenate([firsts, lasts], -1), parents=parents)
    for beam in (0, 1):
        history = firsts[jnp.arange(3), parents[:, beam]]
        whole = jnp.concatenate([history, lasts[:, beam]], -1)
        assert_allclose(logits[:, beam, 3:], apply(SOURCE, whole)[:, 3:], **CLOSE)


def test_the_memory_is_per_sentence_and_states_of_one_beam_become_several():
    for model in (MODEL, RECURRENT):
        memory = ENCODE(model, SOURCE)
        leaves = jax.tree.leaves((memory, model.init_cache(memory, 2, 13)))
        assert {leaf.shape[0] for leaf in leaves} == {3}  # never tiled
    cache = RECURRENT.init_cache(ENCODE(RECURRENT, SOURCE), 1, 7)
    spread = RECURRENT.reorder(cache, jnp.zeros((3, 5), int))
    assert {leaf.shape for leaf in jax.tree.leaves(spread)} == {(3, 5, 22)}
    assert RECURRENT.grow(cache, 11) is cache


def test_a_beams_score_is_what_the_rnn_s_full_pass_gives_its_output():
    found = search(RECURRENT, SOURCE, max_extra_tokens=5)
    outputs = found.tokens_BxWxT[:, 0]
    inputs = jnp.pad(outputs, ((0, 0), (1, 0)), constant_values=1)[:, :-1]
    log_probabilities = jax.nn.log_softmax(rnn_apply(SOURCE, inputs))
    said = jnp.take_along_axis(log_probabilities, outputs[..., None], -1)[..., 0]
    total = (said * (outputs > 0)).sum(-1)
    assert_allclose(found.log_probabilities_BxW[:, 0], total, rtol=1e-4)


@pytest.mark.parametrize(
    ("model", "other"),
    [
        (MODEL, TransformerStepModel(Transformer(TINY), tiny_params(seed=1))),
        (RECURRENT, RNNStepModel(RNN(TINY_RNN), rnn_params(seed=1))),
    ],
)
def test_its_leaves_are_the_parameters_and_one_compilation_serves_them_all(
    model, other
):
    assert len(jax.tree.leaves(model)) == len(jax.tree.leaves(model.params))
    compilations = []

    @jax.jit
    def encode(model):
        compilations.append(1)
        return jax.tree.leaves(model.encode(SOURCE))[0]

    assert not jnp.array_equal(encode(model), encode(other))
    assert len(compilations) == 1


class Squared(nn.Module):
    """A feed-forward network with another formula and other parameters."""

    config: TransformerConfig

    @nn.compact
    def __call__(self, x, rows):
        inner = nn.relu(nn.Dense(self.config.d_ff, name="inner")(x)) ** 2
        return nn.Dense(self.config.d_model, name="outer")(inner)


class Sharper(MultiHeadAttention):
    """An attention whose `step` was forgotten."""

    def __call__(self, x, *arguments, **named):
        return super().__call__(3 * x, *arguments, **named)


class Doubled(RNN):
    """A model whose `step` was forgotten."""

    def decode(self, *arguments, **named):
        return 2 * super().decode(*arguments, **named)


def capped(table, y):
    """A head with another formula."""
    return jnp.tanh(table.logits(y))


@pytest.mark.parametrize(
    ("module", "kind"),
    [
        (Transformer(ONE, feed_forward=Squared), TransformerStepModel),
        (Transformer(ONE, attention=Sharper), RecomputingStepModel),
        (Transformer(ONE, attention=partial(MultiHeadAttention)), type(MODEL)),
        (Transformer(ONE, head=capped), TransformerStepModel),
        (RNN(ONE_RNN, head=capped), RNNStepModel),
        (Doubled(ONE_RNN), RecomputingStepModel),
    ],
)
def test_a_part_of_ones_own_is_searched_as_it_is_trained(module, kind):
    params = drawn_params(module)
    model = step_model(module, params)
    assert type(model) is kind
    logits = jax.jit(module.apply)({"params": params}, SOURCE, TARGET)
    if kind is RecomputingStepModel:
        usual = tiny_apply(SOURCE, TARGET, config=module.config, params=params)
        assert not np.allclose(logits, usual, **CLOSE)
        if isinstance(module, Transformer):
            for other in (partial(Sharper), lambda config: Sharper(config)):
                assert type(step_model(module.clone(attention=other), params)) is kind
    real = np.asarray(TARGET) > 0
    stepped = run(model, TARGET[:, None])[:, 0]
    assert_allclose(stepped[real], logits[real], **CLOSE)


def test_a_module_of_ones_own_is_not_run_beyond_its_learned_positions():
    config = dataclasses.replace(TINY, positions="learned", max_positions=5)
    model = RecomputingStepModel(Transformer(config, attention=Sharper), {})
    cache = model.init_cache(model.encode(SOURCE), 2, 5)
    for call in (
        lambda: model.encode(TARGET),
        lambda: model.init_cache(SOURCE, 2, 7),
        lambda: model.grow(cache, 7),
    ):
        with pytest.raises(ValueError, match=r"length=7 must be .* max_positions=5"):
            call()
