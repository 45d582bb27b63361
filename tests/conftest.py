"""The strict machine: 8 simulated devices, no silent broadcasting, warnings fatal.

What the tests and the processes that they start compile is kept beside pytest's own
cache, so that a program is compiled by the first who needs it.
"""

import gc
import os
import signal
import sys
import time
from pathlib import Path

from t2t_jax.devices import processor
from t2t_jax.devices.compilation_cache import enable_compilation_cache
from tests import compiling, tiers

# As the command line does: thousands of tests and traced programs stay, and to look for
# garbage among them after every 700 objects took a fifth of the time.
gc.set_threshold(100_000, 10, 20)
# Where Python keeps no bytecode, every process compiles all modules that it imports,
# for up to 3 s. So tests keep it, also with `python -B`.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# What a shell starts in the background ignores SIGINT, and so would what tests start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# Alike on every processor: what is compared to the bit, or with other toolkits.
os.environ.setdefault(processor.CPU_DTYPE, "float32")
if "--xla_force_host_platform_device_count=8" not in os.environ.get("XLA_FLAGS", ""):
    _before = os.environ.get("XLA_FLAGS", "")
    os.environ["XLA_FLAGS"] = f"{_before} {compiling.xla_flags(8)}".strip()
_HOME = Path(__file__).parents[1] / ".pytest_cache"
_kept = {**os.environ, "XDG_CACHE_HOME": str(_HOME)}
enable_compilation_cache(_kept)
os.environ.update({key: _kept[key] for key in _kept if key.startswith("JAX_")})

import hypothesis  # noqa: E402
import jax  # noqa: E402
import pytest  # noqa: E402

from tests.integration import tiny  # noqa: E402
from tests.made_once import made_once  # noqa: E402

jax.config.update("jax_numpy_rank_promotion", "raise")
# An example may take longer than hypothesis' 200 ms where other programs run.
hypothesis.settings.register_profile("any machine", deadline=None)
hypothesis.settings.load_profile("any machine")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Marks each test with its tier, before `-m` selects."""
    tiers.mark(items)


# A process may have 65,530 mappings, and each compiled program takes several: beyond
# that the compiler aborts the process.
_MOST_MAPPINGS = 30_000


@pytest.fixture(scope="module", autouse=True)
def _few_compiled_programs():
    """Lets go of compiled programs between files before there are too many."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and len(maps.read_bytes().splitlines()) > _MOST_MAPPINGS:
        jax.clear_caches()


@pytest.fixture(scope="module")
def compiled_as_for_users():
    """What the tests of a file start is compiled as users' programs are."""
    with compiling.optimized():
        yield


@pytest.fixture(scope="session")
def shared_directory(request, tmp_path_factory):
    """A directory that all workers of pytest-xdist have in common, for `made_once`."""
    own = tmp_path_factory.getbasetemp()
    return own.parent if hasattr(request.config, "workerinput") else own


_FLAGS = compiling.xla_flags(1)  # whatever the file that asks first compiles with


def _train(workdir, **changed):
    # Fresh: runs that are compared with it are forks of another interpreter.
    how = {"fresh": True, "XLA_FLAGS": _FLAGS}
    done = tiny.succeed(*tiny.arguments(workdir, **changed), **how)
    assert done.stdout == b""  # stdout is for results
    workdir.with_name("stderr").write_bytes(done.stderr)


@pytest.fixture(scope="session")
def tiny_run(shared_directory):
    """The whole tiny experiment. Tests read it, and change copies of it.

    Beside it is what it said, `stderr`.
    """
    name = shared_directory / "tiny"
    return made_once(name, lambda path: _train(path / "run")) / "run"


@pytest.fixture(scope="session")
def one_step(shared_directory):
    """A run of one step, which was evaluated and saved. As `tiny_run`."""
    every = {"checkpoint__every_steps": 1, "evaluation__every_steps": 1}
    name = shared_directory / "one step"
    return made_once(name, lambda path: _train(path / "run", steps=1, **every)) / "run"


@pytest.fixture
def empty_directory(tmp_path, monkeypatch):
    """Works in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def clock(monkeypatch):
    """The time in a list, for tests to change."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def own_signals():
    """Gives the signals back that a test, or `main` in it, has taken."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
