"""The host runs ahead of the devices, and not too far.

Seen to fail: with all computations begun before the first is brought (the devices that
a CPU plays then abort each other after 40 s).
"""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.runtime.async_fetch import MAX_IN_FLIGHT, fetch_pipelined
from tests.integration import tiny


@pytest.mark.parametrize(
    "count", [0, 1, MAX_IN_FLIGHT - 1, MAX_IN_FLIGHT, 3 * MAX_IN_FLIGHT + 1]
)
def test_all_come_in_their_order_as_numpy(count):
    found = list(fetch_pipelined({"x": jnp.full(2, k)} for k in range(count)))
    assert [int(one["x"][1]) for one in found] == [*range(count)]
    assert all(isinstance(one["x"], np.ndarray) for one in found)


@pytest.mark.parametrize("at_once", [1, 3])
def test_no_more_are_begun_than_may_be(at_once):
    begun = []

    def begin():
        for k in range(10):
            begun.append(k)
            yield jax.device_put(k)

    for number, _ in enumerate(fetch_pipelined(begin(), at_once=at_once), start=1):
        assert len(begun) == min(number - 1 + at_once, 10)


def test_devices_that_a_cpu_plays_do_not_wait_for_one_another_for_ever():
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
    subprocess.run(
        [sys.executable, "-c", script],
        env=tiny.environment(8),
        cwd=tiny.ROOT,
        check=True,
        timeout=240,
    )
