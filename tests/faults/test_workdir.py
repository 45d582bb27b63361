"""A workdir that cannot be one, or is another run's, given to the real command line.

Seen to fail: without `forbidden_changes` in cli/flags/parse_argv.py, without
`check_fingerprints` in prepared_data.py, without the lock in run/start.py, without the
checks of `Workdir.create`, without those of `read_json_object`, and with a file that is
made in the place of a lock: what a killed process has left keeps everybody out then.
"""

import os
import shutil
import signal
import time

import pytest

from tests.faults import running
from tests.faults.running import hashes, refused
from tests.integration import tiny

PAIRS = [(f"sentence number {n} .", f"Satz Nummer {n} .") for n in range(60)]
SHORT = {
    "vocabulary__size": 60,
    "checkpoint__every_steps": 1,
    "evaluation__every_steps": 9,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of two steps on text of its own, in a path with spaces and umlauts."""
    folder = tmp_path_factory.mktemp("Läufe für alle")
    workdir = folder / "größe und maß"
    text = {
        "data__train": tiny.text_of(folder, "train", PAIRS),
        "data__dev": tiny.text_of(folder, "dev", PAIRS[:7]),
    }
    running.finish(workdir, steps=2, **SHORT, **text)
    assert running.saved(workdir)[-1] == running.last_step(workdir) == 2
    return workdir, text


def _again(run, *flags, timeout=240, **changed):
    workdir, text = run
    given = {"steps": 3, **SHORT, **text, **changed}
    return tiny.run(*tiny.arguments(workdir, **given), *flags, timeout=timeout)


def test_a_changed_configuration_is_refused_key_by_key(run):
    before = hashes(run[0])
    how = {"seed": 7, "model__d_ff": 48, "training__skip_gradient_norm": 5.0}
    done = _again(run, data__max_length=60, **how)
    errors = refused(
        done,
        78,
        "seed was 0 when this run began and is 7 now",
        *("model.d_ff was 32", "skip_gradient_norm was 0.0", "data.max_length was 64"),
    )
    # One line each, and none of what may change.
    assert len(errors.strip().splitlines()) == 4
    assert hashes(run[0]) == before


@pytest.mark.parametrize("side", ["train", "dev"])
def test_changed_text_is_refused_by_the_name_of_its_corpus(run, side, tmp_path):
    before = hashes(run[0])
    other = [*PAIRS[:5], ("another sentence .", "ein anderer Satz .")]
    done = _again(run, **{f"data__{side}": tiny.text_of(tmp_path, side, other)})
    refused(done, 65, f"began with other content of: {side}.", "Restore it")
    assert hashes(run[0]) == before


def test_the_same_text_elsewhere_is_the_same_text(run, tmp_path):
    # A copy of the run, which a test that goes on may change.
    workdir, _ = run
    copy = shutil.copytree(workdir, tmp_path / "copy")
    how = {"training__max_bad_steps": 3, "training__step_timeout": 300.0}
    how |= {"logging__every_steps": 1}
    moved = tiny.text_of(tmp_path, "moved", PAIRS)
    done = _again((copy, run[1]), data__train=moved, **how)
    assert done.returncode == 0, done.stderr.decode()
    assert running.last_step(copy) == 3


def test_a_second_trainer_is_refused_at_once_and_told_who_holds_the_workdir(tmp_path):
    workdir = tmp_path / "run"
    with running.running(workdir, fault="sleep@1") as first:
        running.wait_for(workdir / "config.json", first)
        began = time.monotonic()
        done = tiny.run(*tiny.arguments(workdir), timeout=240)
        refused(done, 73, f"by process {running.fork_of(first)} on ", "another workdir")
        # A bound against waiting for the first, not a measurement.
        assert time.monotonic() - began < 120
        assert first.poll() is None


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path):
    workdir = tmp_path / "run"
    short = {"steps": 2, "checkpoint__every_steps": 1}
    killed = running.finish(workdir, code=-signal.SIGKILL, fault="kill@1", **short)
    held = (workdir / "lock").read_text()
    assert "process" in held, killed
    running.finish(workdir, **short)
    assert (workdir / "lock").read_text() != held
    assert running.last_step(workdir) == 2


@pytest.mark.parametrize("place", ["run", "run/below", "/proc/t2t_jax/run"])
def test_what_stands_in_the_way_is_named_in_one_line(tmp_path, place):
    """A file, and what is not even root's."""
    (tmp_path / "run").touch()
    require_refused(tmp_path / place, tmp_path, "Cannot create ")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_workdir_that_is_read_only_is_named_in_one_line(tmp_path):
    (tmp_path / "run").mkdir(mode=0o500)
    require_refused(tmp_path / "run", tmp_path, "must be writable")


def require_refused(workdir, tmp_path, said):
    done = tiny.run(*tiny.arguments(workdir, data__cache_dir=tmp_path / "cache"))
    (line,) = refused(done, 73, said).strip().splitlines()
    assert line.startswith("error: ")


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("config.json", '{"steps": NaN}', "NaN is not a number"),
        ("config.json", '{"steps":' * 100_000, "nested too deeply"),
        ("config.json", '{"stpes": 3}', "Did you mean steps?"),
        ("overrides.json", "[]", "overrides.json is damaged"),
        ("fingerprints.json", "7", "fingerprints.json is damaged"),
    ],
)
def test_a_damaged_file_of_a_run_is_named(run, tmp_path, name, content, said):
    copy = shutil.copytree(run[0], tmp_path / "copy")
    (copy / name).write_text(content)
    errors = refused(_again((copy, run[1])), 65, said)
    assert str(copy / name) in errors
