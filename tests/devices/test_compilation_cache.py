"""A directory that others can write to is never read, and a damaged program never kept.

Seen to fail: without the test of the owner and of the mode in `_make_private`, without
the mode it makes a directory with, without `unlink`, `acts` and the filter of
`_corrupt_entry_remover`, without the number or the kind of the processors in
`machine_key`, with `read` of `evict_unused` left out or taken of directories too, and
without the `except` for the default directory.
"""

import os
import re
import stat
import sys
import time
import warnings
from functools import partial

import pytest

from t2t_jax.devices.compilation_cache import (
    DIRECTORY,
    SWITCH,
    enable_compilation_cache,
    evict_unused,
    machine_key,
)
from t2t_jax.errors import UserError
from tests.docs.commands import run, run_python
from tests.faults import running
from tests.integration import tiny

DAY = 24 * 3600
# Three programs of other sizes than any other test's, and what comes out of them.
PROGRAM = """
import resource, sys
from t2t_jax.devices.compilation_cache import enable_compilation_cache
enable_compilation_cache()
if len(sys.argv) > 1:  # bytes that a file may have: a disk that is full
    size = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
import jax
for factor in (3.0, 5.0, 7.0):
    print(jax.jit(lambda x: (x * factor).sum())(jax.numpy.arange(11.0)))
"""


@pytest.fixture(autouse=True)
def _warnings_as_they_were():
    with warnings.catch_warnings():  # it puts the filters back as well
        yield


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def computed(home, *arguments):
    """Runs PROGRAM with its own cache, and returns what it printed and said."""
    environment = {**tiny.environment(), "XDG_CACHE_HOME": str(home)}
    environment.pop(DIRECTORY, None)
    argv = [sys.executable, "-c", PROGRAM, *arguments]
    done = run(argv, tiny.ROOT, environ=environment)
    return done.stdout, done.stderr


def entries(home):
    return sorted((home / "t2t_jax" / "compiled").glob("*/*-cache"))


def test_a_directory_that_is_named_is_used_as_it_is(tmp_path):
    own = {DIRECTORY: str(tmp_path), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "9"}
    environ, old = dict(own), tmp_path / "old-cache"
    tmp_path.chmod(0o755)
    old.touch()
    os.utime(old, (0, 0))
    assert enable_compilation_cache(environ) == tmp_path
    assert environ == own | {"JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}
    assert (mode(tmp_path), old.exists()) == (0o755, True)


def test_what_is_made_is_private_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        named = enable_compilation_cache({DIRECTORY: str(tmp_path / "named")})
        default = enable_compilation_cache({"XDG_CACHE_HOME": str(tmp_path)})
    finally:
        os.umask(before)
    assert default.parent == tmp_path / "t2t_jax" / "compiled"
    assert [mode(folder) for folder in (named, default, default.parent)] == [0o700] * 3


def others_write(folder, monkeypatch):
    folder.chmod(0o702)
    return r"writable by other users \(mode 702\)"


def of_another_user(folder, monkeypatch):
    owner = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    return f"belongs to user {owner}, not to user"


def a_file(folder, monkeypatch):
    folder.rmdir()
    folder.touch()
    return "cannot be created: File exists"


def no_home(folder, monkeypatch):
    def fail(path):
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("pathlib.Path.expanduser", fail)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    return f"There is no home directory. Set {DIRECTORY}"


@pytest.mark.parametrize("spoil", [others_write, of_another_user, a_file, no_home])
def test_a_directory_that_is_not_private_is_refused_or_not_used_by_default(
    tmp_path, monkeypatch, caplog, spoil
):
    folder = tmp_path / "t2t_jax" / "compiled"
    folder.mkdir(parents=True)
    message = spoil(folder, monkeypatch)
    if spoil is not no_home:
        with pytest.raises(UserError, match=message):
            enable_compilation_cache({DIRECTORY: str(folder)})
    home = {} if spoil is no_home else {"XDG_CACHE_HOME": str(tmp_path)}
    assert enable_compilation_cache(home) is None
    assert DIRECTORY not in home
    assert "Compiled programs are not cached" in caplog.text
    assert re.search(message, caplog.text)


@pytest.mark.parametrize(
    "environ", [{SWITCH: "0", DIRECTORY: "/nowhere"}, {DIRECTORY: "gs://a/b"}]
)
def test_what_is_off_or_elsewhere_is_left_alone(environ):
    before = dict(environ)
    assert enable_compilation_cache(environ) is None
    assert environ == before


# A program of its own, compiled after another one: JAX is in use before a model is.
LIBRARY = """
import jax
jax.numpy.ones(3).block_until_ready()
{before}
from t2t_jax.devices.compilation_cache import enable_cache_in_process
enable_cache_in_process()
jax.jit(lambda x: (x * 1.7).sum())(jax.numpy.arange(13.0)).block_until_ready()
print(jax.config.jax_compilation_cache_dir)
"""


@pytest.mark.parametrize(
    ("before", "environ", "kept_in"),
    [
        ("", {}, "{tmp}/t2t_jax/compiled/"),
        ("jax.config.update('jax_compilation_cache_dir', '{tmp}')", {}, "{tmp}\n"),
        ("", {DIRECTORY: "{tmp}"}, "{tmp}\n"),
        ("import os; os.environ['JAX_ENABLE_COMPILATION_CACHE'] = '0'", {}, "None"),
    ],
)
def test_a_program_that_loads_a_model_keeps_what_it_compiles(
    tmp_path, before, environ, kept_in
):
    known = {**tiny.environment(), "XDG_CACHE_HOME": str(tmp_path), DIRECTORY: ""}
    known |= {name: value.format(tmp=tmp_path) for name, value in environ.items()}
    known = {name: value for name, value in known.items() if value}
    code = LIBRARY.format(before=before.format(tmp=tmp_path))
    printed = run_python(code, environ=known)
    assert printed.startswith(kept_in.format(tmp=tmp_path))
    assert ("t2t_jax" in printed) == bool(entries(tmp_path))


def test_each_kind_of_machine_has_its_own_programs():
    cpu = ["processor : 0\n", "flags : avx2 fma\n", "cpu MHz : 1996.2\n"]
    key = partial(machine_key, cpus=2, jaxlib="0.10.2")
    others = [key(cpu, cpus=3), key(cpu, jaxlib="0.11.0"), key([])]
    others.append(key([cpu[0], "flags : avx2\n"]))
    assert len({key(cpu), *others}) == 5
    assert key(["processor : 1\n", cpu[1], "cpu MHz : 2450.0\n"]) == key(cpu)


def test_programs_unused_for_30_days_go_and_others_stay(tmp_path):
    young, old = (time.time() - days * DAY for days in (29, 31))
    times = {
        "a/used-cache": (young, old),
        "a/made-cache": (old, young),
        "a/unused-cache": (old, old),
        "b/unused-cache": (old, old),
        "c/": (time.time(), old),
    }
    for name, read_and_written in times.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.mkdir() if name.endswith("/") else path.touch()
        os.utime(path, read_and_written)
    evict_unused(tmp_path)
    left = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    # b has been written to just now, so it goes when that is 30 days ago.
    assert left == {"a", "a/used-cache", "a/made-cache", "b", "swept"}


def test_a_full_disk_and_damaged_programs_cost_time_only(tmp_path):
    printed, said = computed(tmp_path, "700")
    assert printed == "165.0\n275.0\n385.0\n"
    (line,) = said.splitlines()
    assert line.startswith(f"A compiled program could not be written to {tmp_path}")
    assert "File too large" in line
    assert all(path.stat().st_size < 700 for path in entries(tmp_path))
    # Nothing is left that is cut off; what is damaged is compiled again and kept.
    assert computed(tmp_path) == (printed, "")
    whole = {path: path.stat().st_size for path in entries(tmp_path)}
    assert len(whole) >= 3
    for number, path in enumerate(whole):
        content = path.read_bytes()
        damaged = [content[: len(content) // 2], b"", content[::-1]]
        path.write_bytes(damaged[number % 3])
    again, said = computed(tmp_path)
    assert again == printed
    (line,) = said.splitlines()
    assert line.startswith(f"A compiled program could not be read from {tmp_path}")
    assert entries(tmp_path) == list(whole)
    assert computed(tmp_path) == (printed, "")


def test_a_kept_program_trains_to_the_very_same_bits(tmp_path):
    """On 2 devices; on one it was seen by hand."""
    kept = {DIRECTORY: str(tmp_path / "programs")}
    rare = {"steps": 4, "evaluation__every_steps": 0, "devices": 2}
    first, second = tmp_path / "first", tmp_path / "second"
    for workdir in (first, second):
        said = running.finish(workdir, seconds=240, environment=kept, **rare)
        assert "WARNING" not in said
        assert "compilation cache" not in said
    assert len(list((tmp_path / "programs").glob("*-cache"))) > 5
    running.require_bit_equal(*(running.parameters(run, 4) for run in (first, second)))
