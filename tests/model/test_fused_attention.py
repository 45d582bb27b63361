"""Attention in one kernel: the numbers of the plain one, and who gets it.

No accelerator is needed: JAX computes cuDNN's call by other means, and interprets that
of TPUs.

Seen to fail: without the mask, with padding that attends to nothing, with queries a
tenth larger, and with each condition of `fits` and of `MultiHeadAttention` left
out.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.functional import fused_attention
from t2t_jax.functional.attention import attention
from t2t_jax.functional.fused_attention import FUSED, fits
from t2t_jax.functional.masks import Segments
from t2t_jax.model.transformer import Transformer
from tests.model.tiny import TINY

CONFIG = dataclasses.replace(
    TINY, num_layers=1, d_k=8, d_v=8, compute_dtype="bfloat16", attention="cudnn"
)
CUDNN = functools.partial(
    fused_attention.cudnn_attention, kernel=jax.nn.dot_product_attention
)
SPLASH = functools.partial(fused_attention.splash_attention, interpret=True)
SOURCE = jnp.array([[5, 6, 7, 8, 2, 0], [9, 2, 0, 0, 0, 0]])
TARGET = jnp.array([[1, 6, 8, 0], [1, 10, 11, 12]])


@pytest.fixture
def fused(monkeypatch):
    """Lets JAX play cuDNN, and notes for what."""
    calls = []

    def noted(q, k, v, segments):
        calls.append((q.shape, k.shape, q.dtype.name))
        return CUDNN(q, k, v, segments)

    monkeypatch.setitem(FUSED, "cudnn", noted)
    monkeypatch.setattr(fused_attention, "LENGTH_MULTIPLE", 2)
    return calls


def packed(length, *lengths):
    ends = np.cumsum(lengths)
    segments = np.searchsorted(ends, np.arange(length), side="right") + 1
    return jnp.asarray(np.where(np.arange(length) < ends[-1], segments, 0))


@pytest.mark.parametrize(
    ("kernel", "lengths"),
    [(CUDNN, (6, 4)), (SPLASH, (256, 128))],
    ids=("cudnn", "splash"),
)
@pytest.mark.parametrize("is_causal", [False, True])
def test_it_is_equation_1_wherever_something_can_be_seen(kernel, lengths, is_causal):
    keys, queries = lengths
    queries = keys if is_causal else queries
    draw = np.random.default_rng(0)
    q, k, v = (
        jnp.asarray(draw.normal(size=(2, 3, length, 8)), jnp.float32)
        for length in (queries, keys, keys)
    )
    segments = Segments(
        jnp.stack([packed(queries, 2, 1), packed(queries, 1, 2)]),
        jnp.stack([packed(keys, 1, 3), packed(keys, 3, 2)]),
        is_causal=is_causal,
    )
    if is_causal:
        segments = dataclasses.replace(segments, key=segments.query)
    attends = segments.mask().any(axis=-1)[..., None]
    assert attends.any()

    def of_both(function):
        def total(q, k, v):
            context = jnp.where(attends, function(q, k, v), 0)
            return jnp.sin(context).sum(), context

        return jax.jit(jax.grad(total, argnums=(0, 1, 2), has_aux=True))(q, k, v)

    jax.tree.map(
        functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=2e-6),
        of_both(functools.partial(kernel, segments=segments)),
        of_both(functools.partial(attention, mask_xQxK=segments.mask())),
    )


def test_cudnn_gets_no_query_that_is_fully_masked():
    segments = Segments(jnp.array([[1, 2, 0]]), jnp.array([[1, 1, 2, 0]]))
    seen = []

    def noted(q, k, v, bias, *, scale):
        seen.extend((bias == 0).astype(int).tolist())
        return jax.nn.dot_product_attention(q, k, v, bias, scale=scale)

    q, k = jnp.ones((1, 1, 3, 8)), jnp.ones((1, 1, 4, 8))
    fused_attention.cudnn_attention(q, k, k, segments, kernel=noted)
    assert seen == [[[[1, 1, 0, 0], [0, 0, 1, 0], [1, 1, 1, 1]]]]


@pytest.mark.parametrize(
    ("queries", "keys", "d_k", "d_v", "dtype", "fitting"),
    [
        (128, 256, 8, 8, jnp.bfloat16, True),
        (128, 256, 128, 128, jnp.bfloat16, True),
        (128, 256, 8, 8, jnp.float32, False),
        (128, 256, 12, 12, jnp.bfloat16, False),
        (128, 256, 136, 136, jnp.bfloat16, False),
        (128, 256, 8, 16, jnp.bfloat16, False),
        (64, 256, 8, 8, jnp.bfloat16, False),
        (128, 192, 8, 8, jnp.bfloat16, False),
    ],
)
def test_what_there_is_no_kernel_for_is_known(queries, keys, d_k, d_v, dtype, fitting):
    q, v = jnp.zeros((2, 3, queries, d_k), dtype), jnp.zeros((2, 3, keys, d_v), dtype)
    assert fits(q, v) == fitting


@functools.cache
def drawn():
    plain = dataclasses.replace(CONFIG, attention="plain")
    return jax.jit(Transformer(plain).init)(jax.random.key(0), SOURCE, TARGET)


def logits(config, *, key=None, run=lambda function, *given: jax.jit(function)(*given)):
    drops = {} if key is None else {"deterministic": False, "rngs": {"dropout": key}}
    apply = functools.partial(Transformer(config).apply, **drops)
    return run(apply, drawn(), SOURCE, TARGET)


@pytest.mark.parametrize(
    ("positions", "key"), [("sinusoidal", jax.random.key(1)), ("rotary", None)]
)
def test_a_model_says_the_same_with_it(fused, key, positions):
    config = dataclasses.replace(CONFIG, positions=positions)
    plain = logits(dataclasses.replace(config, attention="plain"), key=key)
    assert not fused
    found = logits(config, key=key)
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
    assert (found.shape, found.dtype) == ((2, 4, 29), jnp.float32)
    # one of the encoder, two of each of two layers
    assert [dtype for _, _, dtype in fused] == ["bfloat16"] * 5


def test_decoding_token_by_token_is_plain(fused):
    def decode(variables):
        module, memory = Transformer(CONFIG).bind(variables), jnp.zeros((2, 6, 14))
        memory = memory.astype(jnp.bfloat16)
        cache = module.init_cache(memory, SOURCE > 0, num_beams=2, length=4)
        return module.step(jnp.ones((2, 2), int), cache, 0)

    jax.eval_shape(decode, drawn())
    assert not fused
