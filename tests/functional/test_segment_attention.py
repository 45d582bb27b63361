"""Attention in packed rows without a mask: extents and ranges against the mask.

A stand-in for cuDNN's kernel builds its own mask from nothing but offsets and lengths,
as the kernel would read them, and fills with NaN what the kernel would not write.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.functional.attention import attention
from t2t_jax.functional.masks import causal_segment_mask, segment_mask
from t2t_jax.functional.segment_attention import (
    Segments,
    key_ranges,
    packed_attention,
    ranged_attention,
    segment_extents,
)

# Row lengths 11 and 13; three segments, one, none, and a full row.
QUERY = np.array(
    [
        [1, 1, 2, 2, 2, 2, 3, 3, 0, 0, 0],
        [1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0],
        [0] * 11,
        [1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5],
    ]
)
KEY = np.array(
    [
        [1, 1, 1, 1, 2, 2, 3, 3, 3, 3, 3, 0, 0],
        [1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
        [0] * 13,
        [1, 1, 2, 2, 2, 3, 3, 4, 4, 4, 5, 5, 5],
    ]
)


def mask_of(q_seqlen, kv_seqlen, q_offsets, kv_offsets, *, causal, sizes):
    """What cuDNN's layout describes: [B, Q, K], and [B, Q] the queries it writes."""
    rows, queries, keys = sizes
    mask, written = np.zeros((rows, queries, keys), bool), np.zeros((rows, queries))
    for row in range(rows):
        for segment in range(q_seqlen.shape[1]):
            first_query, first_key = q_offsets[row, segment], kv_offsets[row, segment]
            if first_query < 0:
                continue
            for query in range(q_seqlen[row, segment]):
                written[row, first_query + query] = 1
                for key in range(kv_seqlen[row, segment]):
                    if not causal or key <= query:
                        mask[row, first_query + query, first_key + key] = True
    return mask, written.astype(bool)


def kernel(q, k, v, *, scale, mask_type, **extents):
    """Plays cuDNN: [B, L, H, D] in and out."""
    assert {x.dtype.name for x in extents.values()} == {"int32"}
    sizes = (q.shape[0], q.shape[1], k.shape[1])
    shapes = [jax.ShapeDtypeStruct(shape, bool) for shape in (sizes, sizes[:2])]
    is_causal = mask_type == "PADDING_CAUSAL"

    def build(*given):
        return mask_of(*map(np.asarray, given), causal=is_causal, sizes=sizes)

    names = ("q_seqlen", "kv_seqlen", "q_offsets", "kv_offsets")
    assert extents["q_offsets"].shape[1] == extents["q_seqlen"].shape[1] + 1
    given = [extents[name] for name in names]
    mask, written = jax.pure_callback(build, shapes, *given)
    q, k, v = (jnp.swapaxes(x, 1, 2) for x in (q * scale * q.shape[-1] ** 0.5, k, v))
    context = attention(q, k, v, mask_xQxK=mask[:, None])
    return jnp.where(written[..., None, None], jnp.swapaxes(context, 1, 2), jnp.nan)


def drawn(keys=13):
    draw = np.random.default_rng(0)
    return [
        jnp.asarray(draw.normal(size=(4, 3, length, 8)), jnp.float32)
        for length in (11, keys, keys)
    ]


def of_both(function, arrays):
    def total(*arrays):
        context = function(*arrays)
        return jnp.sin(context).sum(), context

    return jax.grad(total, argnums=(0, 1, 2), has_aux=True)(*arrays)


def require_close(found, expected):
    close = functools.partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-5)
    jax.tree.map(close, found, expected)


def cases():
    cross = Segments(jnp.asarray(QUERY), jnp.asarray(KEY), is_causal=False)
    own = Segments(jnp.asarray(QUERY), jnp.asarray(QUERY), is_causal=True)
    encoder = Segments(jnp.asarray(QUERY), jnp.asarray(QUERY), is_causal=False)
    return {
        "cross": (cross, segment_mask(QUERY, KEY), 13),
        "causal": (own, causal_segment_mask(QUERY), 11),
        "encoder": (encoder, segment_mask(QUERY, QUERY), 11),
    }


@pytest.mark.parametrize("name", cases())
@pytest.mark.parametrize("max_segments", [0, 5])
def test_packed_rows_are_attention_with_the_mask(name, max_segments):
    segments, mask, keys = cases()[name]
    arrays = drawn(keys)
    packed = functools.partial(
        packed_attention, segments=segments, max_segments=max_segments, kernel=kernel
    )
    plain = functools.partial(attention, mask_xQxK=mask[:, None])
    require_close(of_both(packed, arrays), of_both(plain, arrays))


def test_extents_are_what_was_drawn():
    offsets, lengths = segment_extents(QUERY, 4)
    assert offsets.tolist() == [
        [0, 2, 6, -1, -1],
        [0, -1, -1, -1, -1],
        [-1, -1, -1, -1, -1],
        [0, 3, 5, 7, -1],
    ]
    assert lengths.tolist() == [
        [2, 4, 2, -1],
        [5, -1, -1, -1],
        [-1, -1, -1, -1],
        [3, 2, 2, 2],
    ]


def test_a_row_with_too_many_segments_is_nan_and_not_wrong():
    segments, _, keys = cases()["cross"]
    context = packed_attention(
        *drawn(keys), segments=segments, max_segments=4, kernel=kernel
    )
    assert np.isnan(context[3]).all()
    assert np.isfinite(context[:3]).all()


def test_a_segment_without_keys_is_nan_and_not_another_s():
    key = jnp.asarray(np.where(np.array(KEY) == 3, 0, KEY))
    segments = Segments(jnp.asarray(QUERY), key, is_causal=False)
    context = packed_attention(*drawn(), segments=segments, kernel=kernel)
    assert np.isnan(context[0][:, :8]).all()


@pytest.mark.parametrize("name", cases())
def test_ranges_are_the_mask(name):
    segments, mask, keys = cases()[name]
    start, end = key_ranges(segments)
    slots = np.arange(keys)
    first, behind = np.asarray(start)[..., None], np.asarray(end)[..., None]
    inside = (slots >= first) & (slots < behind)
    np.testing.assert_array_equal(inside, mask)
    assert start.dtype == end.dtype == jnp.int32


@pytest.mark.parametrize("name", cases())
def test_tokamax_computes_attention_with_the_mask(name):
    pytest.importorskip("tokamax", reason="needs the extra tokamax, and Python 3.12")
    segments, mask, keys = cases()[name]
    arrays = drawn(keys)
    found = of_both(
        functools.partial(ranged_attention, segments=segments, implementation="xla"),
        arrays,
    )
    plain = of_both(functools.partial(attention, mask_xQxK=mask[:, None]), arrays)
    require_close(found, plain)


@pytest.mark.parametrize("name", cases())
def test_jax_takes_the_extents(name, monkeypatch):
    """Traces JAX's own function, forwards and backwards, as for a GPU."""
    cudnn = pytest.importorskip("jax._src.cudnn.fused_attention_stablehlo")
    monkeypatch.setattr(cudnn, "check_cudnn_version", lambda: 92_300)
    monkeypatch.setattr(cudnn, "check_compute_capability", lambda _: True)
    monkeypatch.setattr(cudnn, "is_cuda_compute_capability_equal", lambda _: False)
    segments, _, _ = cases()[name]
    # It takes even lengths only.
    even = dataclasses.replace(
        segments,
        **{
            side: jnp.pad(getattr(segments, side), ((0, 0), (0, 1)))
            for side in ("query", "key")
        },
    )
    arrays = [
        jnp.zeros((4, 3, side.shape[1], 8), jnp.bfloat16)
        for side in (even.query, even.key, even.key)
    ]

    def total(*arrays):
        return packed_attention(*arrays, segments=even).astype(jnp.float32).sum()

    traced = jax.jit(jax.grad(total, argnums=(0, 1, 2))).trace(*arrays)
    assert [x.shape for x in traced.out_info] == [x.shape for x in arrays]
    text = traced.lower(lowering_platforms=("cuda",)).as_text()
    calls = [line for line in text.splitlines() if "@__cudnn$fmha" in line]
    assert ["Backward" in call for call in calls] == [False, True]
    for call in calls:
        assert ("PADDING_CAUSAL" in call) == segments.is_causal
        assert "max_seg_per_batch\\22: 6" in call  # of rows of 12 and 14
        assert call.count("x6xi32>") == call.count("x7xi32>") == 2  # lengths, offsets
