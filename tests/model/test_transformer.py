import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from t2t_jax.functional.masks import segments_of
from t2t_jax.model.transformer import Transformer
from tests.model.tiny import SOURCE, TARGET, TINY, tiny_apply, tiny_params

CLOSE = {"rtol": 1e-5, "atol": 1e-5}  # float32 sums in another order
KEY = jax.random.key(17)
REAL = np.asarray(TARGET) > 0
ONE_LAYER = dataclasses.replace(TINY, num_layers=1, dropout=0.0)


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


def test_logits_are_float32_in_any_compute_dtype_and_bfloat16_is_near():
    config = dataclasses.replace(TINY, compute_dtype="bfloat16")
    params = tiny_params()
    exact = tiny_apply(SOURCE, TARGET)
    near = tiny_apply(SOURCE, TARGET, config=config, params=params)
    assert near.dtype == exact.dtype == jnp.float32
    assert not jnp.array_equal(near, exact)
    # 8 bits of mantissa through two layers
    assert np.abs(near - exact)[REAL].mean() < 0.02 * np.abs(exact)[REAL].mean()


def test_padding_changes_nothing():
    source = jnp.pad(SOURCE, ((0, 0), (0, 6)))
    target = jnp.pad(TARGET, ((0, 0), (0, 4)))
    padded = tiny_apply(source, target)
    assert_allclose(padded[:, :7][REAL], tiny_apply(SOURCE, TARGET)[REAL], **CLOSE)


def test_the_order_of_the_batch_changes_nothing():
    turned = jnp.array([2, 0, 1])
    assert_allclose(
        tiny_apply(SOURCE[turned], TARGET[turned]),
        tiny_apply(SOURCE, TARGET)[turned],
        **CLOSE,
    )


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
def test_tying_decides_how_many_matrices_there_are(tying, names):
    params = tiny_params(dataclasses.replace(TINY, tying=tying))
    assert set(params) == {"encoder", "decoder"} | names


def test_encode_and_decode_are_the_two_halves():
    memory = tiny_apply(SOURCE, method="encode")
    assert memory.shape == (3, 5, 14)
    logits = tiny_apply(
        TARGET, memory, source_segments=segments_of(SOURCE), method="decode"
    )
    assert_allclose(logits, tiny_apply(SOURCE, TARGET), **CLOSE)


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
    cache = tiny_apply(
        memory,
        segments_of(SOURCE),
        config=config,
        num_beams=2,
        length=11,
        method="init_cache",
    )
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


def test_numpy_arrays_are_welcome():
    source, target = np.asarray(SOURCE), np.asarray(TARGET)
    logits = tiny_apply(source, target, params=jax.device_get(tiny_params()))
    assert_allclose(logits, tiny_apply(SOURCE, TARGET), **CLOSE)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": SOURCE[0]}, r"source must have the axes \[B, S\]"),
        (
            {"target_inputs": TARGET[:2]},
            r"memory must be .* B=2 \(as in target_inputs\)",
        ),
        ({"source_segments": SOURCE[:, :2]}, r"source_segments must be .* S=5"),
        ({"target_positions": TARGET[:, :2]}, r"target_positions must be .* T=7"),
        ({"rows": jnp.arange(2)}, r"rows must be \[B\] with B=3"),
    ],
)
def test_axes_that_do_not_agree_are_refused_by_name(changes, message):
    arguments = {"source": SOURCE, "target_inputs": TARGET} | changes
    with pytest.raises(ValueError, match=message):
        tiny_apply(**arguments)


def test_tokens_for_another_number_of_beams_are_refused():
    cache = tiny_apply(
        jnp.zeros((3, 5, 14)),
        segments_of(SOURCE),
        num_beams=2,
        length=3,
        method="init_cache",
    )
    with pytest.raises(ValueError, match=r"tokens must be .* W=2 \(as in cache\)"):
        tiny_apply(TARGET[:, :3], cache, 0, method="step")
