"""No order of events replaces what a run cannot do without.

Every refusal is compared by the hashes of all files, before and after. Seen to fail:
with `Workdir.require_whole`, `require_unchanged`, `require_own_checkpoint`,
`require_same_start`, `require_outside_run` or the order of a first start taken out, and
with `write_whole` in the place of `write_once`.
"""

import hashlib
import os
import shutil
import signal
from pathlib import Path

import pytest

from t2t_jax import files
from t2t_jax.cli import prepare, train
from t2t_jax.main import main
from t2t_jax.workdir import Workdir
from tests.faults import running
from tests.integration import tiny

IRREPLACEABLE = {"vocab.model", "vocab_source.model", "config.json"}
OTHER = {"vocabulary__size": 140, "model__d_ff": 48}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of one step, with everything that a run makes but pictures."""
    workdir = tmp_path_factory.mktemp("run files") / "run"
    running.finish(
        workdir, steps=1, checkpoint__every_steps=1, evaluation__every_steps=1
    )
    return workdir


@pytest.fixture
def copy(run, tmp_path):
    return shutil.copytree(run, tmp_path / "run")


@pytest.fixture(autouse=True)
def _as_it_was(tmp_path, monkeypatch):
    """Gives the signals back, and trains nothing unless a test says so."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(train, "_train", lambda *_: 0)
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)
    before = {number: signal.getsignal(number) for number in numbers}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def hashes(workdir):
    """Returns the SHA-256 of every file but the lock, which every start writes."""
    return {
        str(path.relative_to(workdir)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in workdir.rglob("*")
        if path.is_file() and path.name != "lock"
    }


def refused(capsys, argv, code, *expected):
    assert main(argv) == code
    errors = capsys.readouterr().err
    assert "Traceback" not in errors
    for words in expected:
        assert words in errors
    return errors


def started(workdir, **changed):
    return tiny.arguments(workdir, steps=3, checkpoint__every_steps=1, **changed)


def _without(name):
    def hurt(workdir):
        (workdir / name).unlink()

    return hurt


def _only(*kept):
    def hurt(workdir):
        for path in workdir.iterdir():
            if path.name not in kept:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    return hurt


def _written(name, content):
    def hurt(workdir):
        (workdir / name).write_text(content)

    return hurt


@pytest.mark.parametrize("changed", [{}, OTHER], ids=["the same", "another"])
@pytest.mark.parametrize("mode", ["train", "prepare"])
@pytest.mark.parametrize(
    ("hurt", "expected"),
    [
        (_without("config.json"), ["no config.json", "checkpoints", "--mode=recover"]),
        (_written("config.json", ""), ["config.json is damaged", "--mode=recover"]),
        (_written("config.json", "{}}"), ["config.json is damaged"]),
        (_only("checkpoints"), ["no config.json", "left: checkpoints."]),
        (_only("metrics.jsonl"), ["metrics.jsonl", "Restore it from a copy"]),
        (_only("samples"), ["left: samples."]),
        (_only("fingerprints.json", "vocab.model"), ["left: fingerprints.json"]),
        (_only("vocab.model"), ["vocab.model there may be that of a run"]),
    ],
    ids=lambda value: "" if callable(value) else value[-1][:30],
)
def test_what_is_left_of_a_run_is_not_started_in(
    copy, capsys, hurt, expected, mode, changed
):
    hurt(copy)
    before = hashes(copy)
    argv = [f"--mode={mode}", *started(copy, **changed)]
    errors = refused(capsys, argv, 65, "Nothing was changed" * (hurt is None))
    for words in expected:
        assert words in errors
    assert len(errors.strip().splitlines()) <= 3
    assert hashes(copy) == before


def test_the_default_command_in_it_is_refused_too(copy, capsys):
    (copy / "config.json").unlink()
    before = hashes(copy)
    refused(capsys, [f"--workdir={copy}"], 65, "Nothing was changed", "--mode=recover")
    assert hashes(copy) == before


@pytest.mark.parametrize("mode", ["translate", "evaluate", "score", "average"])
def test_who_reads_is_told_how_to_bring_the_configuration_back(copy, capsys, mode):
    (copy / "config.json").unlink()
    (copy.parent / "text").write_text("a\n")
    flags = {
        "evaluate": ["--source=text", "--reference=text"],
        "score": ["--source=text", "--reference=text"],
        "average": ["--to=mean"],
    }
    argv = [f"--mode={mode}", f"--workdir={copy}", *flags.get(mode, [])]
    refused(capsys, argv, 65, "no config.json", "--mode=recover")


@pytest.mark.parametrize("mode", ["train", "prepare"])
def test_a_lost_vocabulary_is_not_learnt_again(copy, capsys, mode):
    (copy / "vocab.model").unlink()
    before = hashes(copy)
    argv = [f"--mode={mode}", *started(copy)]
    refused(capsys, argv, 66, "vocab.model: no such file", "--mode=recover")
    assert hashes(copy) == before


def test_another_vocabulary_is_not_used_though_fingerprints_are_lost(copy, capsys):
    other = copy.parent / "other"
    main(["--mode=prepare", *tiny.arguments(other, data__train="phrasebook:train:200")])
    shutil.copy(other / "vocab.model", copy)
    (copy / "fingerprints.json").unlink()
    (copy.parent / "text").write_text("a\n")
    for argv in (["--mode=translate", "--input=text"], ["--mode=average", "--to=mean"]):
        argv += [f"--workdir={copy}", *["--last=1"] * ("--to=mean" in argv)]
        refused(capsys, argv, 65, "another vocabulary than its model was trained with")
    assert not Path("mean").exists()


def test_lost_fingerprints_come_back_from_a_checkpoint(copy, capsys):
    before = hashes(copy)
    (copy / "fingerprints.json").unlink()
    other = started(copy, data__train="phrasebook:train:299")
    refused(capsys, other, 65, "began with other content of: train")
    assert hashes(copy) == before
    assert main(started(copy)) == 0


@pytest.mark.parametrize("mode", ["train", "prepare"])
def test_a_configuration_over_a_run_is_refused(copy, capsys, mode):
    before = hashes(copy)
    argv = [f"--mode={mode}", *started(copy, **OTHER)]
    refused(capsys, argv, 78, "vocabulary.size was 150", "model.d_ff was 32")
    assert hashes(copy) == before


def test_preparing_over_a_run_changes_nothing_that_it_needs(copy):
    before = hashes(copy)
    assert main(["--mode=prepare", *started(copy)]) == 0
    assert hashes(copy) == before


@pytest.mark.parametrize("mode", [train, prepare])
def test_a_run_that_begins_between_the_look_and_the_lock_is_kept(
    copy, capsys, monkeypatch, mode
):
    """The second of two starts in one second has seen an empty directory."""
    elsewhere = copy.rename(copy.parent / "elsewhere")
    locked = Workdir.locked

    def late(self):
        shutil.copytree(elsewhere, self.path, dirs_exist_ok=True)
        return locked(self)

    monkeypatch.setattr(Workdir, "locked", late)
    name = mode.__name__.rpartition(".")[2]
    argv = [f"--mode={name}", *started(copy, **OTHER)]
    refused(capsys, argv, 78, "vocabulary.size was 150")
    assert hashes(copy) == hashes(elsewhere)


def test_of_two_starts_at_once_one_is_refused(tmp_path, capsys):
    workdir = Workdir(tmp_path / "run")
    workdir.create()
    with workdir.locked():
        before = hashes(workdir.path)
        refused(capsys, started(workdir.path), 73, f"by process {os.getpid()} on")
    assert hashes(workdir.path) == before


class Killed(BaseException):
    """What `kill -9` is to a test in the same process."""


def _writes_of_a_first_start(workdir, monkeypatch, *, end_after=None, **own):
    """Starts a run that ends just after a write; returns how many there were."""
    count = 0

    def counted(act):
        def write(*args, **kwargs):
            nonlocal count
            act(*args, **kwargs)
            count += str(workdir) in str(args[1])
            if count == end_after:
                raise Killed

        return write

    with monkeypatch.context() as patch:
        for name in ("link", "replace"):
            patch.setattr(files.os, name, counted(getattr(os, name)))
        try:
            code = main(tiny.arguments(workdir, **own))
            assert code == 0
        except Killed:
            assert end_after is not None
    return count


@pytest.mark.parametrize(
    "own",
    [{}, {"vocabulary__source_size": 110, "model__tying": "decoder"}],
    ids=["shared", "two"],
)
def test_a_first_start_that_is_killed_after_any_file_is_continued(
    tmp_path, capsys, monkeypatch, own
):
    own |= {"data__cache_dir": tmp_path / "cache"}
    whole = tmp_path / "whole"
    count = _writes_of_a_first_start(whole, monkeypatch, **own)
    expected = hashes(whole)
    assert count == len(expected) == (9 if "vocabulary__source_size" in own else 7)
    for number in range(1, count + 1):
        part = tmp_path / f"killed-{number}"
        _writes_of_a_first_start(part, monkeypatch, end_after=number, **own)
        left = hashes(part)
        assert len(left) == number
        if left.keys() & IRREPLACEABLE:
            # Another start replaces nothing.
            another = tiny.arguments(part, **{**own, **OTHER})
            refused(capsys, another, 78 if "config.json" in left else 65)
            assert hashes(part) == left
        assert main(tiny.arguments(part, **own)) == 0
        assert hashes(part) == expected
