import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from numpy.testing import assert_allclose, assert_array_equal

from t2t_jax.model.decoder import Decoder
from t2t_jax.model.encoder import Encoder
from t2t_jax.model.sublayer import Dropout
from t2t_jax.model.transformer import Transformer
from tests.model.tiny import (
    SOURCE,
    TARGET,
    TINY,
    TINY_RNN,
    rnn_apply,
    rnn_params,
    tiny_apply,
    tiny_params,
)

CLOSE = {"rtol": 1e-5, "atol": 1e-5}  # float32 sums in another order
KEY = jax.random.key(17)
REAL = np.asarray(TARGET) > 0
ONE_LAYER = dataclasses.replace(TINY, num_layers=1, dropout=0.0)
ONE_RNN = dataclasses.replace(TINY_RNN, num_layers=1)
DROPPING = dataclasses.replace(
    ONE_LAYER, dropout=0.3, attention_dropout=0.2, relu_dropout=0.1
)


def padded_pair():
    return [jnp.pad(x, ((0, 0), (0, 6))) for x in (SOURCE, TARGET)]


def test_neither_padding_nor_the_order_of_the_batch_changes_anything():
    whole, turned = tiny_apply(SOURCE, TARGET), jnp.array([2, 0, 1])
    assert_allclose(tiny_apply(SOURCE[turned], TARGET[turned]), whole[turned], **CLOSE)
    padded = tiny_apply(*padded_pair())
    assert_allclose(padded[:, :7][REAL], whole[REAL], **CLOSE)


@pytest.mark.parametrize(
    ("apply", "params"),
    [
        (functools.partial(tiny_apply, config=ONE_LAYER), tiny_params(ONE_LAYER)),
        (functools.partial(rnn_apply, config=ONE_RNN), rnn_params(ONE_RNN)),
    ],
    ids=["transformer", "rnn"],
)
def test_a_row_without_a_source_is_finite_with_finite_gradients(apply, params):
    def total(params, target):
        return jnp.square(apply(SOURCE.at[1].set(0), target, params=params)).sum()

    for target in (TARGET.at[1].set(0), TARGET):
        found = jax.value_and_grad(total)(params, target)
        assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(found))


def test_the_gradient_of_the_tied_matrix_is_the_sum_of_its_three_uses():
    params = tiny_params(ONE_LAYER)
    table = params["embedding"]["table"]
    untied = {name: params[name] for name in ("encoder", "decoder")}
    uses = ("source_embedding", "target_embedding", "pre_softmax")
    untied |= {name: {"table": table} for name in uses}
    config = dataclasses.replace(ONE_LAYER, tying="none")

    def total(params, config):
        return jnp.sin(tiny_apply(SOURCE, TARGET, config=config, params=params)).sum()

    tied_gradient = jax.grad(total)(params, ONE_LAYER)["embedding"]["table"]
    untied_gradients = jax.grad(total)(untied, config)
    parts = [untied_gradients[name]["table"] for name in uses]
    assert all(jnp.abs(part).max() > 0 for part in parts)
    assert_allclose(tied_gradient, sum(parts), rtol=1e-4, atol=1e-4)


def test_it_can_be_mapped_over_models():
    params = tiny_params(), tiny_params(seed=1)
    stacked = jax.tree.map(lambda *both: jnp.stack(both), *params)
    both = jax.vmap(lambda params: tiny_apply(SOURCE, TARGET, params=params))(stacked)
    assert_allclose(both[1], tiny_apply(SOURCE, TARGET, params=params[1]), **CLOSE)


X = jax.random.normal(jax.random.key(2), (1, 5, 14))
PARAMS = tiny_params()
PLACES, ONE_SEGMENT = jnp.arange(5)[None], jnp.ones((1, 5), int)


@jax.jit
def encode(x, positions, segments=ONE_SEGMENT):
    given = {"segments_BxS": segments, "positions_BxS": positions, "rows_B": None}
    return Encoder(TINY).apply({"params": PARAMS["encoder"]}, x, **given)


def test_without_positions_the_encoder_is_permutation_equivariant():
    turned, same_place = jnp.array([3, 0, 4, 2, 1]), jnp.zeros((1, 5), int)
    # float32 sums in another order
    assert_allclose(
        encode(X[:, turned], same_place), encode(X, same_place)[:, turned], atol=2e-5
    )
    difference = encode(X[:, turned], PLACES) - encode(X, PLACES)[:, turned]
    assert np.abs(difference).max() > 0.1


@jax.jit
def decode(x, memory, source_segments, target_segments):
    given = {"segments_BxT": target_segments, "positions_BxT": PLACES, "rows_B": None}

    def run(decoder):
        return decoder(x, decoder.project_memory(memory, source_segments), **given)

    return Decoder(TINY).apply({"params": PARAMS["decoder"]}, method=run)


def reached(function, position, *arguments):
    """Tells which inputs have a gradient that is not exactly zero."""

    def one_output(x):
        return (function(x, *arguments)[0, position] * jnp.arange(14)).sum()

    return (np.abs(jax.grad(one_output)(X)[0]).max(-1) > 0).astype(int).tolist()


def test_gradients_of_later_positions_and_other_segments_are_exactly_zero():
    one, source = ONE_SEGMENT, jnp.array([[1, 2, 2, 2, 0]])
    target = jnp.array([[1, 1, 2, 2, 0]])
    for t in (0, 3, 4):
        assert reached(decode, t, X, one, one) == [1] * (t + 1) + [0] * (4 - t)
    assert reached(decode, 2, X, source, target) == [0, 0, 1, 0, 0]
    assert reached(decode, 3, X, source, target) == [0, 0, 1, 1, 0]

    def of_memory(memory):
        return decode(X, memory, source, target)

    assert reached(of_memory, 3) == [0, 1, 1, 1, 0]
    assert reached(of_memory, 1) == [1, 0, 0, 0, 0]
    assert reached(encode, 1, PLACES, target) == [1, 1, 0, 0, 0]
    assert reached(encode, 2, PLACES, target) == [0, 0, 1, 1, 0]


BOTH = pytest.mark.parametrize(
    ("apply", "config"),
    [(tiny_apply, DROPPING), (rnn_apply, dataclasses.replace(ONE_RNN, dropout=0.3))],
    ids=["transformer", "rnn"],
)


def dropped(apply, config, *tokens, key=KEY, **options):
    keys = {"dropout": key}
    return apply(*tokens, config=config, deterministic=False, rngs=keys, **options)


@BOTH
def test_a_dropped_row_is_the_same_in_any_batch_and_with_more_padding(apply, config):
    whole = dropped(apply, config, SOURCE, TARGET)
    part = jnp.array([2, 1])
    same = dropped(apply, config, SOURCE[part], TARGET[part], rows=part)
    assert_allclose(same, whole[part], **CLOSE)
    other = dropped(apply, config, SOURCE[part], TARGET[part], rows=jnp.arange(2))
    assert jnp.abs(other - whole[part]).max() > 0.1
    padded = dropped(apply, config, *padded_pair())
    assert_allclose(padded[:, :7][REAL], whole[REAL], **CLOSE)


@BOTH
def test_dropout_differs_between_keys_and_is_off_by_default(apply, config):
    plain = apply(SOURCE, TARGET, config=config)
    rates = {name: 0.0 for name in vars(config) if name.endswith("dropout")}
    off = dropped(apply, dataclasses.replace(config, **rates), SOURCE, TARGET)
    assert_array_equal(plain, off)
    one, other = (
        dropped(apply, config, SOURCE, TARGET, key=jax.random.key(n)) for n in (17, 18)
    )
    assert jnp.abs(one - other).max() > 0.1


def test_every_site_drops_with_masks_of_its_own():
    def spy(apply, args, kwargs, context):
        if isinstance(context.module, Dropout) and context.method_name == "__call__":
            keys.append(jax.random.key_data(context.module.make_rng("dropout")))
        return apply(*args, **kwargs)

    keys = []
    module, params = Transformer(DROPPING), {"params": tiny_params(DROPPING)}
    how = {"deterministic": False, "rngs": {"dropout": KEY}}
    with nn.intercept_methods(spy):
        module.apply(params, SOURCE, TARGET, **how)
    # 2 inputs; inside and behind 2 sub-layers of the encoder, 3 of the decoder
    assert len(keys) == 2 + 4 + 6
    assert len({tuple(key.tolist()) for key in keys}) == len(keys)
