import jax
import numpy as np
import pytest

from t2t_jax.sharding.mesh import make_mesh
from t2t_jax.sharding.rules import make_global_batch
from t2t_jax.types import Batch


def batch_of(rows, length=3):
    """Numbers all the elements of a batch, so that none can be mistaken."""
    sides = np.arange(7 * rows * length, dtype=np.int32).reshape(7, rows, length)
    return Batch(*sides, rows=np.arange(rows, dtype=np.int32))


def test_each_device_holds_its_own_rows_of_every_array():
    batch = batch_of(10)
    placed = make_global_batch(batch, make_mesh(jax.devices()[:5]))
    for name, on_host, on_devices in zip(Batch._fields, batch, placed, strict=True):
        assert len(on_devices.addressable_shards) == 5
        for i, shard in enumerate(on_devices.addressable_shards):
            np.testing.assert_array_equal(
                shard.data, on_host[2 * i : 2 * i + 2], err_msg=name
            )
        np.testing.assert_array_equal(on_devices, on_host)
        assert on_devices.dtype == np.int32


def test_rows_that_do_not_divide_are_refused():
    with pytest.raises(ValueError, match=r"partitioned 5 times, but .* size is 11"):
        make_global_batch(batch_of(11), make_mesh(jax.devices()[:5]))
