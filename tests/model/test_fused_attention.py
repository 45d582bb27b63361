"""Attention in one kernel: the numbers of the plain one, and who gets it.

No GPU is needed: JAX computes the same call by other means (`implementation="xla"`),
and that stands in for cuDNN.

Seen to fail: without the mask, without the zeros of an empty row, with one mask for all
heads under vmap, with queries a tenth larger, and with each condition of `can_be_fused`
and of `MultiHeadAttention` left out.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import t2t_jax.model.attention
from t2t_jax.functional.attention import attention, can_be_fused, fused_attention
from t2t_jax.functional.segment_attention import key_ranges, packed_attention
from t2t_jax.model.config import TransformerConfig
from t2t_jax.model.transformer import Transformer
from tests.functional.test_segment_attention import kernel as packed_kernel

CONFIG = TransformerConfig(
    vocab_size=19,
    num_layers=1,
    d_model=16,
    d_ff=24,
    num_heads=2,
    d_k=8,
    d_v=8,
    compute_dtype="bfloat16",
    attention="cudnn",
)
STAND_IN = functools.partial(fused_attention, implementation="xla")
SOURCE = jnp.array([[5, 6, 7, 8, 2, 0], [9, 2, 0, 0, 0, 0]])
TARGET = jnp.array([[1, 6, 8, 0], [1, 10, 11, 12]])


@pytest.fixture
def fused(monkeypatch):
    """Lets JAX play cuDNN, and notes for what."""
    calls = []

    def noted(q, k, v, **given):
        calls.append((q.shape, k.shape, q.dtype.name))
        return STAND_IN(q, k, v, **given)

    monkeypatch.setattr(t2t_jax.model.attention, "fused_attention", noted)
    monkeypatch.setattr(
        t2t_jax.model.attention, "attention_kernel", lambda config: config.attention
    )
    return calls


def test_it_is_equation_1_with_zeros_where_nothing_can_be_seen():
    draw = np.random.default_rng(0)
    q, k, v = (
        jnp.asarray(draw.normal(size=(2, 3, length, 8)), jnp.float32)
        for length in (4, 6, 6)
    )
    mask = jnp.asarray(draw.random((2, 1, 4, 6)) < 0.6).at[1, 0, 2].set(False)

    def of_both(function):
        def total(q, k, v):
            context = function(q, k, v)
            return jnp.sin(context).sum(), context

        return jax.grad(total, argnums=(0, 1, 2), has_aux=True)(q, k, v)

    plain = of_both(functools.partial(attention, mask_xQxK=mask))
    found = of_both(functools.partial(STAND_IN, mask_Bx1xQxK=mask))
    jax.tree.map(
        functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6),
        found,
        plain,
    )
    assert not found[1][1, :, 2].any()


@pytest.mark.parametrize(
    ("queries", "keys", "d_k", "d_v", "rows", "dtype", "serves"),
    [
        (4, 6, 8, 8, 4, jnp.bfloat16, True),
        (4, 6, 8, 8, 4, jnp.float32, False),
        (4, 6, 12, 12, 4, jnp.bfloat16, False),
        (4, 6, 136, 136, 4, jnp.bfloat16, False),
        (4, 6, 8, 16, 4, jnp.bfloat16, False),
        (5, 6, 8, 8, 5, jnp.bfloat16, False),
        (4, 7, 8, 8, 4, jnp.bfloat16, False),
        (4, 6, 8, 8, 1, jnp.bfloat16, False),
    ],
)
def test_what_cudnn_has_no_kernel_for_is_known(
    queries, keys, d_k, d_v, rows, dtype, serves
):
    q, v = jnp.zeros((2, 3, queries, d_k), dtype), jnp.zeros((2, 3, keys, d_v), dtype)
    assert can_be_fused(q, v, jnp.ones((2, 1, rows, keys), bool)) == serves


def test_jax_has_rules_for_it_in_shards_and_micro_batches(monkeypatch):
    # Private, but tracing asks for no more than these of a GPU.
    kernel = pytest.importorskip("jax._src.cudnn.fused_attention_stablehlo")
    monkeypatch.setattr(kernel, "check_cudnn_version", lambda: 92_000)
    monkeypatch.setattr(kernel, "check_compute_capability", lambda _: True)
    monkeypatch.setattr(kernel, "is_cuda_compute_capability_equal", lambda _: False)

    def total(x, mask):
        context = fused_attention(x, x, x, mask_Bx1xQxK=mask)
        return context.astype(jnp.float32).sum()

    x = jnp.zeros((5, 2, 3, 4, 8), jnp.bfloat16)
    mask = jnp.ones((5, 2, 1, 4, 4), bool)
    of_shards = jax.vmap(jax.grad(total), spmd_axis_name="data")
    assert jax.eval_shape(of_shards, x, mask).shape == x.shape


@functools.cache
def drawn():
    plain = dataclasses.replace(CONFIG, attention="plain")
    return jax.jit(Transformer(plain).init)(jax.random.key(0), SOURCE, TARGET)


def logits(config, *, key=None, run=lambda function, *given: jax.jit(function)(*given)):
    drops = {} if key is None else {"deterministic": False, "rngs": {"dropout": key}}
    apply = functools.partial(Transformer(config).apply, **drops)
    return run(apply, drawn(), SOURCE, TARGET)


@pytest.mark.parametrize("key", [None, jax.random.key(1)])
def test_a_model_says_the_same_with_it(fused, key):
    plain = logits(dataclasses.replace(CONFIG, attention="plain"), key=key)
    assert not fused
    found = logits(CONFIG, key=key)
    real = (TARGET > 0)[..., None]
    # bfloat16 has 8 bits, and weights are rounded at other places.
    np.testing.assert_allclose(found * real, plain * real, atol=0.05)
    assert np.abs(plain).max() > 0.5
    shapes = {(q[2], k[2]) for q, k, _ in fused}
    assert shapes == {(6, 6), (4, 4), (4, 6)}  # of both stacks, and between them


@pytest.mark.parametrize(
    ("changes", "key", "calls"),
    [
        ({"attention_dropout": 0.1}, jax.random.key(1), 0),
        ({"attention_dropout": 0.1}, None, 3),
        ({"compute_dtype": "float32"}, None, 0),
    ],
)
def test_weights_that_are_dropped_out_and_float32_are_plain(fused, changes, key, calls):
    logits(dataclasses.replace(CONFIG, **changes), key=key, run=jax.eval_shape)
    assert len(fused) == calls


def test_biases_leave_it_the_dtype_that_it_needs(fused):
    config = dataclasses.replace(
        CONFIG, attention_biases=True, num_decoder_layers=2, start="zero"
    )
    module = Transformer(config)
    variables = jax.eval_shape(module.init, jax.random.key(0), SOURCE, TARGET)
    fused.clear()
    found = jax.eval_shape(module.apply, variables, SOURCE, TARGET)
    assert (found.shape, found.dtype) == ((2, 4, 19), jnp.float32)
    # one of the encoder, two of each of two layers
    assert [dtype for _, _, dtype in fused] == ["bfloat16"] * 5


def test_decoding_token_by_token_is_plain(fused):
    module = Transformer(CONFIG).bind(drawn())
    memory = jnp.zeros((2, 6, 16), jnp.bfloat16)
    cache = module.init_cache(memory, SOURCE > 0, num_beams=2, length=4)
    module.step(jnp.ones((2, 2), int), cache, 0)
    assert not fused


def packed_logits(config):
    """Two pairs in a row, one in the next."""
    segments = jnp.array([[1, 1, 1, 2, 2, 0], [1, 1, 1, 1, 0, 0]])
    positions = jnp.array([[0, 1, 2, 0, 1, 0], [0, 1, 2, 3, 0, 0]])
    tokens = jnp.array([[5, 6, 2, 7, 2, 0], [8, 9, 7, 2, 0, 0]])
    found = jax.jit(Transformer(config).apply)(
        drawn(),
        tokens,
        tokens,
        source_segments=segments,
        target_segments=segments,
        source_positions=positions,
        target_positions=positions,
    )
    return found * (tokens > 0)[..., None]


def by_packing(q, k, v, *, segments):
    return packed_attention(q, k, v, segments=segments, kernel=packed_kernel)


def by_ranges(q, k, v, *, segments):
    start, end = key_ranges(segments)
    slots = jnp.arange(k.shape[2])[None, None]
    mask = (slots >= start[..., None]) & (slots < end[..., None])
    return attention(q, k, v, mask_xQxK=mask[:, None])


@pytest.mark.usefixtures("fused")
@pytest.mark.parametrize(
    ("kernel", "name", "stand_in", "remat"),
    [
        ("cudnn_packed", "packed_attention", by_packing, False),
        ("cudnn_packed", "packed_attention", by_packing, True),
        ("tokamax", "ranged_attention", by_ranges, False),
    ],
)
def test_packed_rows_are_the_same_without_a_mask(
    monkeypatch, kernel, name, stand_in, remat
):
    calls = []

    def noted(*heads, segments):
        calls.append(segments.is_causal)
        return stand_in(*heads, segments=segments)

    monkeypatch.setattr(t2t_jax.model.attention, name, noted)
    plain = packed_logits(dataclasses.replace(CONFIG, attention="plain"))
    config = dataclasses.replace(CONFIG, attention=kernel, remat=remat)
    np.testing.assert_allclose(packed_logits(config), plain, atol=0.05)
    assert calls == [False, True, False]  # encoder, decoder, between them


@pytest.mark.parametrize("attention", ["auto", "cudnn", "cudnn_packed", "tokamax"])
def test_on_a_cpu_the_program_is_the_same(attention):
    def program(attention):
        config = dataclasses.replace(CONFIG, attention=attention)
        module = Transformer(config)
        return jax.jit(module.apply).lower(drawn(), SOURCE, TARGET).as_text()

    assert program(attention) == program("plain")
