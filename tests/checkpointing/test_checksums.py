"""Checksums detect changes and do not depend on the sharding.

Seen to fail: without the index in `_mix` (exchanged elements are not detected), and
without the comparison of `json_digest` in `verify_checksums`.
"""

import itertools

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from jax.sharding import AxisType, Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from t2t_jax.checkpointing.checksums import (
    add_checksums,
    checksum_jax,
    checksum_numpy,
    checksums,
    verify_checksums,
)

DTYPES = (
    np.float32,
    np.int32,
    np.uint32,
    np.float16,
    ml_dtypes.bfloat16,
    np.int16,
    np.uint8,
    np.int8,
    np.bool_,
)


def drawn(shape, dtype=np.float32, seed=3):
    """Draws any bits, those of infinities and of NaN among them."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    bits = np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8)
    return (bits & 1 if dtype is np.bool_ else bits).view(dtype).reshape(shape)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
@pytest.mark.parametrize("shape", [(), (1,), (13,), (7, 5), (2, 3, 4, 5), (3, 0, 2)])
def test_host_and_device_agree(shape, dtype):
    array = drawn(shape, dtype)
    on_device = jnp.asarray(array)
    assert on_device.dtype == array.dtype
    assert checksums({"x": on_device}) == checksums({"x": array})
    computed = jax.jit(checksum_jax)(on_device)
    np.testing.assert_array_equal(computed, checksum_numpy(array))


def test_any_sharding_over_eight_devices_gives_the_same():
    mesh = Mesh(
        np.asarray(jax.devices()[:8]).reshape(4, 2),
        ("data", "fsdp"),
        axis_types=(AxisType.Auto,) * 2,
    )
    array = drawn((8, 16, 24))
    truth = checksums({"x": array})
    specs = [
        *itertools.permutations((None, "data", "fsdp")),
        *itertools.permutations((None, None, ("data", "fsdp"))),
        (),
    ]
    for spec in specs:
        placed = jax.device_put(array, NamedSharding(mesh, P(*spec)))
        assert checksums({"x": placed}) == truth, spec
    alone = jax.device_put(array, SingleDeviceSharding(jax.devices()[5]))
    assert checksums({"x": alone}) == truth


def test_a_large_array_gives_the_same_in_pieces(monkeypatch):
    array = drawn((101, 103))
    whole = checksum_numpy(array)
    monkeypatch.setattr("t2t_jax.checkpointing.checksums._CHUNK", 97)
    np.testing.assert_array_equal(checksum_numpy(array), whole)
    np.testing.assert_array_equal(checksum_numpy(array[:, ::-1][:, ::-1]), whole)


@given(
    array=npst.arrays(
        st.sampled_from([np.uint8, np.uint16, np.uint32]),
        npst.array_shapes(max_dims=3, max_side=6),
        elements=st.integers(0, 255),
    ),
    data=st.data(),
)
def test_each_single_bit_counts_in_both_sums(array, data):
    place = data.draw(st.integers(0, array.size - 1))
    bit = data.draw(st.integers(0, 8 * array.itemsize - 1))
    changed = array.copy()
    changed.reshape(-1)[place] ^= array.dtype.type(1 << bit)
    assert (checksum_numpy(changed) != checksum_numpy(array)).all()


def test_the_order_of_elements_counts():
    array = drawn((6, 7), np.uint8)
    others = [array[::-1], array[:, ::-1], array.T, np.roll(array, 1), array * 0]
    assert len({tuple(checksum_numpy(other)) for other in [array, *others]}) == 6


def test_zeros_at_the_end_count():
    sums = [tuple(checksum_numpy(np.zeros(size, np.float32))) for size in range(9)]
    assert len(set(sums)) == 9


@pytest.mark.parametrize(
    "change",
    [{"step": 8}, {"step": "7"}, {"more": None}, {"checksums": {}}, {"format": 2}],
)
def test_a_changed_value_breaks_the_seal(change):
    sealed = add_checksums(
        {"step": 7, "kinds": ("final",)}, {"params": {"x": np.ones(2, "f4")}}
    )
    assert verify_checksums(sealed) == ""
    assert verify_checksums({**sealed, **change}) != ""
    del sealed["digest"]
    assert verify_checksums(sealed) != ""
