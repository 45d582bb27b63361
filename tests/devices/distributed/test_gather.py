import jax
import numpy as np
import pytest

from t2t_jax.devices.distributed import gather
from t2t_jax.devices.distributed.gather import (
    fetch_pipelined,
    gather_to_local_devices,
    replicate,
)
from tests.devices.distributed import two_processes
from tests.devices.distributed.pair import run_two
from tests.docs.commands import run_python
from tests.integration import tiny

# --- parameters

HOST = np.arange(8 * 6.0).reshape(8, 6)


def test_replicated_parameters_are_not_copied():
    held = replicate(HOST, jax.devices()[:4])

    def places(array):
        return [s.data.unsafe_buffer_pointer() for s in array.addressable_shards]

    assert places(gather_to_local_devices(held)) == places(held)


def test_parameters_of_no_mesh_stay_where_they_are():
    held = {"a": jax.device_put(HOST, jax.devices()[3]), "b": np.ones(2)}
    assert gather_to_local_devices(held) is held


# --- results


@pytest.mark.parametrize("at_once", [1, 3])
def test_results_come_in_order_as_numpy_and_few_begin_ahead(at_once, monkeypatch):
    monkeypatch.setattr(gather, "MAX_IN_FLIGHT", at_once)
    begun = []

    def begin():
        for k in range(10):
            begun.append(k)
            yield {"x": jax.device_put(np.full(2, k))}

    for number, one in enumerate(fetch_pipelined(begin())):
        assert len(begun) == min(number + at_once, 10)
        assert isinstance(one["x"], np.ndarray)
        assert one["x"][1] == number
    assert number == 9


def test_devices_that_a_cpu_plays_do_not_wait_for_one_another_for_ever():
    """With all begun before the first is fetched they abort each other after 40 s."""
    script = """
import jax, numpy as np
from t2t_jax.checkpointing.checksums import checksums
from jax.sharding import NamedSharding, PartitionSpec
mesh = jax.make_mesh((2, 4), ("a", "b"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
place = NamedSharding(mesh, PartitionSpec("b"))
arrays = [jax.device_put(np.full(64, k, np.float32), place) for k in range(300)]
for _ in range(3):
    sums = checksums(arrays)
assert len(set(sums.values())) == 300
"""
    run_python(script, environ=tiny.environment(8))


# --- processes


def test_two_processes_of_four_devices_gather_texts_and_parameters():
    run_two(two_processes.__name__)
