"""How programs of the tests are compiled: in haste, but where users' own are asked for.

Most programs here run once or a few times on models of a few thousand parameters, and
to compile them is two thirds of the time that the tests take. Without the compiler's
optimisation it is a third less. `OPTIMIZED` in the environment compiles as users do:
the long suite does, and so do the processes of those tests of the everyday checks that
stop, kill and resume whole runs, and compare them to the bit (`compiled_as_for_users`).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

OPTIMIZED = "T2T_JAX_TEST_OPTIMIZED"


def xla_flags(devices: int) -> str:
    """Returns what XLA_FLAGS is for a process of so many simulated devices."""
    count = f"--xla_force_host_platform_device_count={devices}"
    if os.environ.get(OPTIMIZED):
        return count
    return f"{count} --xla_backend_optimization_level=0"


@contextmanager
def optimized() -> Iterator[None]:
    """Processes that are started in it compile as users' do."""
    before = os.environ.get(OPTIMIZED)
    os.environ[OPTIMIZED] = "1"
    try:
        yield
    finally:
        del os.environ[OPTIMIZED]
        if before is not None:
            os.environ[OPTIMIZED] = before
