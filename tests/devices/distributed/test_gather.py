import socket
import subprocess
import sys
import threading

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from t2t_jax.devices.distributed import gather as gathering
from t2t_jax.devices.distributed.gather import (
    fetch_pipelined,
    gather_to_local_devices,
    map_lines_across_processes,
    replicate,
)
from t2t_jax.devices.distributed.processes import Processes
from t2t_jax.errors import DataError
from tests.devices.distributed import two_processes
from tests.integration import tiny

# --- texts


class Meeting:
    """Runs processes as threads, which lay down their lines and read those of all."""

    def __init__(self, count, monkeypatch):
        self.count, self.laid = count, {}
        self.barrier = threading.Barrier(count, timeout=120)
        monkeypatch.setattr(gathering, "allgather_strings", self.gather)

    def gather(self, lines, processes):
        self.laid[processes.index] = list(lines)
        self.barrier.wait()
        return [self.laid[index] for index in range(self.count)]

    def run(self, act):
        """Lists what `act(processes)` returns, or raises, in each process."""
        found = [None] * self.count

        def enter(index):
            try:
                found[index] = act(Processes(index=index, count=self.count))
            except DataError as error:
                found[index] = error

        threads = [threading.Thread(target=enter, args=(i,)) for i in range(self.count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return found


def upper(lines, first=0):
    return [f"{number} {line.upper()}" for number, line in enumerate(lines, first)]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.text(max_size=30), max_size=20), st.integers(2, 5))
def test_shares_come_back_in_order_with_their_numbers_and_nothing_is_lost(lines, count):
    with pytest.MonkeyPatch.context() as monkeypatch:
        meeting = Meeting(count, monkeypatch)
        found = meeting.run(lambda ps: map_lines_across_processes(upper, lines, ps))
        assert found == [upper(lines)] * count


def test_a_share_with_too_few_translations_is_an_error_everywhere(monkeypatch):
    def act(processes):
        cut = 1 if processes.index == 1 else 0
        return map_lines_across_processes(
            lambda lines, first: lines[cut:], ["a", "b"], processes
        )

    for error in Meeting(2, monkeypatch).run(act):
        assert isinstance(error, DataError)
        assert "process 1 has made 0" in str(error)


# --- parameters

HOST = np.arange(8 * 6.0).reshape(8, 6)


def mesh_of(*shape):
    names = ("data", "fsdp", "tensor")[: len(shape)]
    devices = np.asarray(jax.devices()[: np.prod(shape)]).reshape(shape)
    return Mesh(devices, names, axis_types=(AxisType.Auto,) * len(shape))


@pytest.mark.parametrize("spec", [P(), P("fsdp"), P(("data", "fsdp"), "tensor")])
def test_parameters_are_gathered_on_each_device_of_the_mesh(spec):
    mesh = mesh_of(2, 1, 3)
    split = {"a": jax.device_put(HOST, NamedSharding(mesh, spec)), "b": {}}
    whole = gather_to_local_devices(split)
    assert whole["a"].is_fully_replicated
    assert list(whole["a"].sharding.mesh.devices.flat) == jax.devices()[:6]
    for shard in whole["a"].addressable_shards:
        np.testing.assert_array_equal(shard.data, HOST)


def test_replicated_parameters_are_not_copied():
    held = jax.device_put(HOST, NamedSharding(mesh_of(2, 2), P()))

    def places(array):
        return [s.data.unsafe_buffer_pointer() for s in array.addressable_shards]

    assert places(gather_to_local_devices(held)) == places(held)


def test_parameters_of_no_mesh_stay_where_they_are():
    held = {"a": jax.device_put(HOST, jax.devices()[3]), "b": np.ones(2)}
    assert gather_to_local_devices(held) is held


@pytest.mark.parametrize("devices", [None, [2], [5, 3]])
def test_arrays_are_copied_to_the_devices_that_are_asked_for(devices):
    chosen = devices and [jax.devices()[number] for number in devices]
    (array,) = replicate([HOST], chosen)
    assert list(array.sharding.mesh.devices.flat) == (chosen or jax.local_devices())
    assert array.is_fully_replicated


# --- results


@pytest.mark.parametrize("at_once", [1, 3])
def test_results_come_in_order_as_numpy_and_no_more_are_begun_than_may_be(at_once):
    begun = []

    def begin():
        for k in range(10):
            begun.append(k)
            yield {"x": jax.device_put(np.full(2, k))}

    for number, one in enumerate(fetch_pipelined(begin(), at_once=at_once)):
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
    subprocess.run(
        [sys.executable, "-c", script],
        env=tiny.environment(8),
        cwd=tiny.ROOT,
        check=True,
        timeout=240,
    )


# --- processes


def test_two_processes_of_four_devices_gather_texts_and_parameters():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    started = [
        subprocess.Popen(
            [sys.executable, "-m", two_processes.__name__, str(index), str(port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tiny.ROOT,
            text=True,
        )
        for index in range(2)
    ]
    try:
        for process in started:
            out, errors = process.communicate(timeout=240)
            assert process.returncode == 0, errors
            assert "all is well" in out.splitlines()
    finally:
        for process in started:
            process.kill()
