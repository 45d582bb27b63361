import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn
from numpy.testing import assert_allclose, assert_array_equal

from t2t_jax.functional.masks import segments_of
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
DROPPING = dataclasses.replace(
    ONE_LAYER, dropout=0.3, attention_dropout=0.2, relu_dropout=0.1
)


def test_parameters_are_plain_float32_and_their_paths_read_like_the_paper():
    params = jax.eval_shape(Transformer(TINY).init, KEY, SOURCE, TARGET)
    assert set(params) == {"params"}
    leaves = jax.tree_util.tree_leaves_with_path(params["params"])
    shapes = {"/".join(key.key for key in path): leaf.shape for path, leaf in leaves}
    assert all(leaf.dtype == jnp.float32 for _, leaf in leaves)
    assert shapes["embedding/table"] == (29, 14)
    assert shapes["encoder/layer_0/self_attention/query/kernel"] == (14, 3, 5)
    assert shapes["encoder/layer_1/self_attention/output/kernel"] == (3, 7, 14)
    assert shapes["encoder/layer_1/feed_forward_norm/scale"] == (14,)
    assert shapes["decoder/layer_0/self_attention_norm/bias"] == (14,)
    assert shapes["decoder/layer_1/cross_attention/value/kernel"] == (14, 3, 7)
    assert shapes["decoder/layer_0/feed_forward/inner/kernel"] == (14, 19)
    assert len(shapes) == 1 + 2 * (4 + 4 + 2 * 2) + 2 * (8 + 4 + 3 * 2)


def padded_pair():
    return [jnp.pad(x, ((0, 0), (0, 6))) for x in (SOURCE, TARGET)]


def test_neither_padding_nor_the_order_of_the_batch_changes_anything():
    whole, turned = tiny_apply(SOURCE, TARGET), jnp.array([2, 0, 1])
    moved = tiny_apply(SOURCE[turned], TARGET[turned])
    assert_allclose(moved, whole[turned], **CLOSE)
    padded = tiny_apply(*padded_pair())
    assert_allclose(padded[:, :7][REAL], whole[REAL], **CLOSE)


def test_a_row_of_nothing_but_padding_is_finite_with_finite_gradients():
    source, target = SOURCE.at[1].set(0), TARGET.at[1].set(0)

    def total(params):
        logits = tiny_apply(source, target, config=ONE_LAYER, params=params)
        return jnp.square(logits).sum()

    assert jnp.isfinite(tiny_apply(source, target)).all()
    gradients = jax.grad(total)(tiny_params(ONE_LAYER))
    assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients))


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


@pytest.mark.parametrize(
    ("tying", "names"),
    [
        ("all", {"embedding"}),
        ("decoder", {"source_embedding", "target_embedding"}),
        ("none", {"source_embedding", "target_embedding", "pre_softmax"}),
    ],
)
@pytest.mark.parametrize(
    ("config", "params_of"), [(TINY, tiny_params), (TINY_RNN, rnn_params)]
)
def test_tying_decides_how_many_matrices_there_are(config, params_of, tying, names):
    size = {} if tying == "all" else {"source_vocab_size": 19}
    params = params_of(dataclasses.replace(config, tying=tying, **size))
    assert set(params) == {"encoder", "decoder"} | names
    if size:
        assert params["source_embedding"]["table"].shape[0] == 19
        assert params["target_embedding"]["table"].shape[0] == 29


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"norm_position": "pre", "positions": "learned", "tying": "none"},
    ],
    ids=["paper", "variant"],
)
def test_steps_with_a_cache_equal_the_full_pass(changes):
    config = dataclasses.replace(TINY, **changes)
    # Two beams that differ: the second one reads the tokens of the next sentence.
    beams = jnp.stack([TARGET, jnp.roll(TARGET, 1, axis=0)], axis=1)
    full = [tiny_apply(SOURCE, beams[:, w], config=config) for w in (0, 1)]
    memory = tiny_apply(SOURCE, config=config, method="encode")
    room = {"num_beams": 2, "length": 11, "method": "init_cache"}
    cache = tiny_apply(memory, segments_of(SOURCE), config=config, **room)
    for position in range(7):
        tokens = beams[:, :, position]
        logits, cache = tiny_apply(
            tokens, cache, jnp.int32(position), config=config, method="step"
        )
        assert logits.shape == (3, 2, 29)
        for w in (0, 1):
            real = np.asarray(tokens[:, w]) > 0
            assert_allclose(logits[real, w], full[w][real, position], **CLOSE)


def test_it_can_be_mapped_over_models():
    stacked = jax.tree.map(lambda *p: jnp.stack(p), tiny_params(), tiny_params(seed=1))
    both = jax.vmap(lambda params: tiny_apply(SOURCE, TARGET, params=params))(stacked)
    assert_allclose(
        both[1], tiny_apply(SOURCE, TARGET, params=tiny_params(seed=1)), **CLOSE
    )


def test_attention_weights_can_be_had_from_the_ordinary_model():
    look = functools.partial(Transformer(TINY).apply, mutable=["intermediates"])
    _, state = jax.jit(look)({"params": tiny_params()}, SOURCE, TARGET)
    layer = state["intermediates"]["decoder"]["layer_1"]
    (self_weights,) = layer["self_attention"]["weights"]
    (cross_weights,) = layer["cross_attention"]["weights"]
    assert self_weights.shape == (3, 3, 7, 7)
    assert cross_weights.shape == (3, 3, 7, 5)
    assert (np.triu(self_weights, 1) == 0).all()
    assert (cross_weights[1, :, :, 3:] == 0).all()


X = jax.random.normal(jax.random.key(2), (1, 5, 14))
PARAMS = tiny_params()
PLACES, ONE_SEGMENT = jnp.arange(5)[None], jnp.ones((1, 5), int)


@jax.jit
def encode(x, positions, segments=ONE_SEGMENT):
    return Encoder(TINY).apply(
        {"params": PARAMS["encoder"]},
        x,
        segments_BxS=segments,
        positions_BxS=positions,
        rows_B=None,
    )


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
    def run(decoder):
        return decoder(
            x,
            decoder.project_memory(memory, source_segments),
            segments_BxT=target_segments,
            positions_BxT=PLACES,
            rows_B=None,
        )

    return Decoder(TINY).apply({"params": PARAMS["decoder"]}, method=run)


def reached(function, position, *arguments):
    """Tells which inputs have a gradient that is not exactly zero."""

    def one_output(x):
        return (function(x, *arguments)[0, position] * jnp.arange(14)).sum()

    gradient = jax.grad(one_output)(X)
    return (np.abs(gradient[0]).max(-1) > 0).astype(int).tolist()


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
    [(tiny_apply, DROPPING), (rnn_apply, dataclasses.replace(TINY_RNN, dropout=0.3))],
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
    other = dropped(apply, config, SOURCE[part], TARGET[part])
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
    with nn.intercept_methods(spy):
        Transformer(DROPPING).apply(
            {"params": tiny_params(DROPPING)},
            SOURCE,
            TARGET,
            deterministic=False,
            rngs={"dropout": KEY},
        )
    # 2 inputs; inside and behind 2 sub-layers of the encoder, 3 of the decoder
    assert len(keys) == 2 + 4 + 6
    assert len({tuple(key.tolist()) for key in keys}) == len(keys)
