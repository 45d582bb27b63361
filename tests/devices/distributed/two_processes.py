"""One of two processes that gather: `python -m … INDEX PORT`, run by a test."""

import os
import sys


def main(index, port):
    import jax

    jax.distributed.initialize(
        f"127.0.0.1:{port}",
        2,
        index,
        initialization_timeout=120,
        heartbeat_timeout_seconds=100,
        shutdown_timeout_seconds=100,
    )
    from t2t_jax.devices.distributed.processes import Processes

    processes = Processes(index=index, count=2)
    texts_come_to_all(processes)
    lines_are_shared(processes)
    parameters_come_whole(jax)
    jax.distributed.shutdown()
    print("all is well")


def texts_come_to_all(processes):
    from t2t_jax.devices.distributed.gather import allgather_strings

    odd = ["ä", "\ud800", "", "\n", "🙂\0", "\u2028", '"']
    for shares in ([odd, []], [[], []], [[""], odd], [["é" * 10**6] * 2, ["b"]]):
        assert allgather_strings(shares[processes.index], processes) == shares


def lines_are_shared(processes):
    from t2t_jax.devices.distributed.gather import map_lines_across_processes

    def translate(lines, first):
        seen.extend(lines)
        numbers.extend(range(first, first + len(lines)))
        return [line.upper() for line in lines]

    for number in (17, 1, 0):
        seen, numbers = [], []
        lines = [f"{'y' * (7 * n % 11)}{n}" for n in range(number)]
        found = map_lines_across_processes(translate, lines, processes)
        assert found == [line.upper() for line in lines]
        assert seen == [lines[n] for n in numbers]
        assert abs(len(seen) - number / 2) <= 1


def parameters_come_whole(jax):
    import numpy as np
    from jax.sharding import AxisType, Mesh, NamedSharding
    from jax.sharding import PartitionSpec as P

    from t2t_jax.devices.distributed.gather import gather_to_local_devices

    host = np.arange(8 * 6.0).reshape(8, 6)
    devices = sorted(jax.devices(), key=lambda d: (d.process_index, d.id))
    mesh = Mesh(
        np.asarray(devices).reshape(2, 2, 2),
        ("data", "fsdp", "tensor"),
        axis_types=(AxisType.Auto,) * 3,
    )
    specs = (P(), P("fsdp", "tensor"), P(("data", "fsdp", "tensor")))
    held = [
        jax.make_array_from_callback(
            host.shape, NamedSharding(mesh, spec), lambda index: host[index]
        )
        for spec in specs
    ]
    for array in (*gather_to_local_devices(held), gather_to_local_devices(held[0])):
        assert array.is_fully_addressable
        assert array.is_fully_replicated
        assert array.devices() == set(jax.local_devices())
        np.testing.assert_array_equal(array, host)


if __name__ == "__main__":
    from tests.compiling import xla_flags

    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["XLA_FLAGS"] = xla_flags(4)
    main(int(sys.argv[1]), int(sys.argv[2]))
