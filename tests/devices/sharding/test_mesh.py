from types import SimpleNamespace

import jax
import numpy as np
import pytest
from jax.sharding import AxisType

from t2t_jax.devices.sharding.mesh import (
    local_batch_shard,
    make_mesh,
    row_shards,
)
from t2t_jax.errors import ConfigError
from t2t_jax.types import BatchShard


def mesh_of(devices, **sizes):
    return make_mesh(jax.devices()[:devices], **sizes)


def test_a_mesh_holds_the_devices_given_in_their_order():
    devices = jax.devices()[::-1][:6]
    mesh = make_mesh(devices, fsdp=3, tensor=2)
    assert dict(mesh.shape) == {"data": 1, "fsdp": 3, "tensor": 2}
    assert mesh.devices.ravel().tolist() == devices
    # Neighbours, which may be of one machine, are in one group of `tensor`.
    assert mesh.devices[0, 0].tolist() == devices[:2]
    assert make_mesh().devices.ravel().tolist() == jax.devices()
    assert make_mesh().axis_types == (AxisType.Auto,) * 3


@pytest.mark.parametrize(
    ("sizes", "wanted"),
    [
        ({}, (8, 1, 1)),
        ({"fsdp": 2}, (4, 2, 1)),
        ({"tensor": -1, "data": 1}, (1, 1, 8)),
        ({"data": 2, "fsdp": 2, "tensor": 2}, (2, 2, 2)),
    ],
)
def test_minus_one_is_the_rest(sizes, wanted):
    assert mesh_of(8, **sizes).devices.shape == wanted


@pytest.mark.parametrize(
    ("devices", "sizes", "message"),
    [
        (8, {"fsdp": 3}, "8 devices, which is not a multiple of 3.*config.mesh.fsdp"),
        (8, {"data": 3}, "8 devices, which is not 3. Change config.mesh.data, or"),
        (1, {"tensor": 2}, "must arrange 1 device, which is not a multiple of 2"),
        (8, {"data": 0}, r"mesh.data=0 must be at least 1, or -1"),
        (8, {"fsdp": -1}, r"Only one of mesh.data, mesh.fsdp may be -1"),
    ],
)
def test_sizes_that_do_not_fit_the_devices_are_refused_by_key(devices, sizes, message):
    with pytest.raises(ConfigError, match=message):
        mesh_of(devices, **sizes)


def test_rows_are_split_over_data_and_fsdp_but_not_tensor():
    assert row_shards(mesh_of(8, fsdp=2, tensor=2)) == 4


def processes_of(sizes, owners):
    """A stand-in for a mesh whose devices belong to several processes."""
    devices = [SimpleNamespace(process_index=owner) for owner in owners]
    shape = dict(zip(("data", "fsdp", "tensor"), sizes, strict=True))
    return SimpleNamespace(
        shape=shape, devices=np.array(devices, object).reshape(sizes)
    )


@pytest.mark.parametrize(
    ("sizes", "shares"),
    [
        ((8, 1, 1), [(0, 2), (1, 2)]),
        ((1, 8, 1), [(0, 2), (1, 2)]),
        ((1, 1, 8), [(0, 1), (0, 1)]),  # both hold all rows
        ((1, 2, 4), [(0, 2), (1, 2)]),
    ],
)
def test_two_processes_of_four_devices_share_the_rows(sizes, shares):
    mesh = processes_of(sizes, [0] * 4 + [1] * 4)
    found = [local_batch_shard(mesh, process=process) for process in (0, 1)]
    assert found == [BatchShard(index=i, count=n) for i, n in shares]


def test_a_process_that_would_hold_parts_of_shares_is_refused():
    mesh = processes_of((1, 2, 3), [0, 0, 1, 1, 2, 2])
    with pytest.raises(ConfigError, match=r"tensor=3 must divide the 2 devices of a"):
        local_batch_shard(mesh, process=0)
