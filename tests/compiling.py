"""How programs of the tests are compiled: in haste, but where users' own are asked for.

Most programs here run once or a few times on models of a few thousand parameters, and
to compile them is two thirds of the time that the tests take. `IN_HASTE` makes it three
times cheaper: a training step of one layer took 1.5 s of CPU, 4.4 s with the first flag
alone, and 6.5 s without them (JAX 0.10.2). `OPTIMIZED` in the environment compiles
as users do: the long suite does, with all its kills and resumed runs, and of the
everyday checks one run that is stopped and resumed to the bit, and README.md's program
(`compiled_as_for_users`).
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version

OPTIMIZED = "T2T_JAX_TEST_OPTIMIZED"
IN_HASTE = "--xla_backend_optimization_level=0"
if version("jaxlib").startswith("0.10."):
    # The older and simpler generator of loops, in one module, as each of many begins
    # with the same work. Later versions do not have it, and XLA ends the process at a
    # flag that it does not know. The preset saves another 5 to 12 %.
    IN_HASTE += " --xla_cpu_use_fusion_emitters=false"
    IN_HASTE += " --xla_cpu_parallel_codegen_split_count=1"
    IN_HASTE += " --xla_cpu_opt_preset=CPU_OPT_PRESET_FAST_COMPILE"


def xla_flags(devices: int) -> str:
    """Returns what XLA_FLAGS is for a process of so many simulated devices."""
    count = f"--xla_force_host_platform_device_count={devices}"
    if os.environ.get(OPTIMIZED):
        return count
    return f"{count} {IN_HASTE}"


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
