"""No order of events replaces what a run cannot do without.

Every refusal is compared by the hashes of all files, before and after. Seen to fail:
with `Workdir.require_complete`, `require_unchanged`, `require_own_checkpoint`,
`require_same_start`, `require_outside_run` or the order of a first start taken out, and
with `atomic_write` in the place of `write_once`.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from t2t_jax import files
from t2t_jax.cli.modes import prepare, train
from t2t_jax.errors import OutputError
from t2t_jax.main import main
from t2t_jax.run.inference import model_dir
from t2t_jax.run.workdir import Workdir
from tests.faults.running import hashes, main_refuses
from tests.integration import tiny

pytestmark = pytest.mark.usefixtures("nothing_trained")

IRREPLACEABLE = {"vocab.model", "vocab_source.model", "config.json"}
OTHER = {"vocabulary__size": 140, "model__d_ff": 48}


def refused(capsys, argv, code, *expected):
    return main_refuses(capsys, argv, (code,), *expected)


def started(workdir, **changed):
    return tiny.arguments(workdir, steps=3, checkpoint__every_steps=1, **changed)


def _only(*kept):
    def hurt(workdir):
        for path in workdir.iterdir():
            if path.name not in kept:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    return hurt


def _lost(workdir):
    (workdir / "config.json").unlink()


def _damaged(workdir):
    (workdir / "config.json").write_text("")


def _not_mounted(workdir):
    """The checkpoints are on a disk that is not there."""
    shutil.move(workdir / "checkpoints", workdir.parent / "disk")
    (workdir / "checkpoints").symlink_to(workdir.parent / "not mounted")
    (workdir / "config.json").unlink()


@pytest.mark.parametrize(("mode", "changed"), [("train", {}), ("prepare", OTHER)])
@pytest.mark.parametrize(
    ("hurt", "expected"),
    [
        (_lost, ["no config.json", "checkpoints", "--mode=recover"]),
        (_damaged, ["config.json is damaged", "--mode=recover"]),
        (_not_mounted, ["files of a run: checkpoints, fingerprints.json"]),
        (_only("checkpoints"), ["no config.json", "files of a run: checkpoints."]),
        (_only("metrics.jsonl"), ["metrics.jsonl", "Restore it from a copy"]),
        (_only("fingerprints.json", "vocab.model"), ["of a run: fingerprints.json"]),
        (_only("vocab.model"), ["vocab.model there may be that of a run"]),
    ],
    ids=lambda value: "" if callable(value) else value[-1][:30],
)
def test_no_run_starts_in_the_rest_of_one(copy, capsys, hurt, expected, mode, changed):
    hurt(copy)
    before = hashes(copy)
    argv = [f"--mode={mode}", *started(copy, **changed)]
    errors = refused(capsys, argv, 65, *expected)
    assert len(errors.strip().splitlines()) <= 3
    assert hashes(copy) == before


@pytest.mark.parametrize("flags", [["--mode=translate"], ["--mode=average", "--to=m"]])
def test_who_reads_is_told_how_to_bring_the_configuration_back(copy, capsys, flags):
    (copy / "config.json").unlink()
    argv = [*flags, f"--workdir={copy}"]
    refused(capsys, argv, 65, "no config.json", "--mode=recover")


@pytest.mark.parametrize(
    ("mode", "steps"), [("train", 1), ("train", 3), ("prepare", 3)]
)
def test_a_lost_vocabulary_is_not_learnt_again(copy, capsys, mode, steps):
    """Nor is the run, of one step, called complete."""
    (copy / "vocab.model").unlink()
    before = hashes(copy)
    argv = [f"--mode={mode}", *started(copy), f"--config.steps={steps}"]
    refused(capsys, argv, 66, "vocab.model: no such file", "--mode=recover")
    assert hashes(copy) == before


def test_another_vocabulary_is_not_used_though_fingerprints_are_lost(
    copy, capsys, another_vocabulary
):
    shutil.copy(another_vocabulary, copy / "vocab.model")
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


def test_other_text_is_refused_where_no_checkpoint_is_left(copy, capsys):
    (copy / "checkpoints").rename(copy.parent / "gone")
    other = started(copy, data__train="phrasebook:train:301")
    refused(capsys, other, 65, "other content of: train")


def test_preparing_over_a_run_changes_nothing_that_it_needs(copy):
    before = hashes(copy)
    assert main(["--mode=prepare", *started(copy)]) == 0
    assert hashes(copy) == before


@pytest.mark.parametrize("mode", [train, prepare])
def test_a_run_begun_between_look_and_lock_is_kept(copy, capsys, monkeypatch, mode):
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


def test_a_first_start_killed_after_any_file_goes_on(tmp_path, capsys, monkeypatch):
    own = {"vocabulary__source_size": 110, "model__tying": "decoder"}
    own |= {"data__cache_dir": tmp_path / "cache"}
    whole = tmp_path / "whole"
    count = _writes_of_a_first_start(whole, monkeypatch, **own)
    expected = hashes(whole)
    assert count == len(expected) == 10
    # After data.json, each vocabulary, overrides.json and config.json.
    for number in (2, 3, 5, 7, 8):
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


FILES = ("run/vocab.model", "run/../run/config.json", "link", "moved/fingerprints.json")
FOLDERS = ("run/checkpoints/2", "moved/checkpoints/1")
OUTPUTS = {
    "--mode=translate --input=text --output=": FILES,
    "--mode=score --source=text --reference=text --output=": FILES,
    "--mode=evaluate --source=text --reference=text --hypotheses=": FILES,
    "--mode=average --last=1 --to=": (*FOLDERS, "moved"),
    "--mode=export --format=model_dir --to=": (*FOLDERS, "moved"),
    "--mode=attention --text=a --to=": FOLDERS,
}


@pytest.mark.parametrize(
    ("flags", "place"), [(flags, one) for flags in OUTPUTS for one in OUTPUTS[flags]]
)
def test_no_output_replaces_a_file_of_a_run(copy, capsys, flags, place):
    Path("text").write_text("a\n")
    Path("link").symlink_to(copy / "metrics.jsonl")
    # Of another run, and one without a configuration.
    shutil.copytree(copy, "moved")
    Path("moved/config.json").unlink()
    before = hashes(Path.cwd())
    *others, name = flags.split()
    argv = [*others, f"--workdir={copy}", name + place]
    refused(capsys, argv, 73, name)
    assert hashes(Path.cwd()) == before


def test_of_two_that_make_one_directory_the_second_is_refused(tmp_path, monkeypatch):
    to, processes = tmp_path / "mean", iter((7, 11))
    monkeypatch.setattr(model_dir.os, "getpid", lambda: next(processes))

    def make(content, during):
        with model_dir.atomic_directory(to) as beside:
            (beside / "config.json").write_text(content)
            during()

    with pytest.raises(OutputError, match=r"Cannot create --to=.*mean"):
        make("second", during=lambda: make("first", during=lambda: None))
    assert [path.name for path in tmp_path.iterdir()] == ["mean"]
    assert (to / "config.json").read_text() == "first"


def test_what_a_killed_process_left_beside_a_directory_is_removed(copy):
    """Not what a running process holds, or what another program has made."""
    killed = """if True:
        import os, pathlib, signal
        from t2t_jax.run.inference.model_dir import atomic_directory
        with atomic_directory(pathlib.Path("mean")) as directory:
            (directory / "config.json").touch()
            os.kill(os.getpid(), signal.SIGKILL)
    """
    argv = [sys.executable, "-c", killed]
    assert subprocess.run(argv, check=False).returncode == -signal.SIGKILL
    (left,) = Path.cwd().glob(".mean.*")
    prefix = left.name.rpartition(".")[0]
    held, running = f"{prefix}.999999999", f"{prefix}.{os.getppid()}"
    kept = {held, running, f"{prefix}.x", ".mean.elsewhere.999999999"}
    for name in kept:
        Path(name).mkdir()
    with files.locked(Path(held), is_shared=True):
        average = ["--mode=average", f"--workdir={copy}", "--last=1"]
        assert main([*average, "--to=mean"]) == 0
        assert {path.name for path in Path.cwd().glob(".mean.*")} == kept


@pytest.mark.parametrize("name", ["a[1]", "a*", "back\\slash"])
@pytest.mark.parametrize("mode", ["train", "prepare", "average", "export"])
def test_arrays_are_not_written_where_they_cannot_be_read(copy, capsys, mode, name):
    target = Path.cwd() / name / "new"
    argv = [f"--mode={mode}", *started(target)]
    if mode in ("average", "export"):
        own = {"average": "--last=1", "export": "--format=model_dir"}[mode]
        argv = [f"--mode={mode}", f"--workdir={copy}", own, f"--to={target}"]
    refused(capsys, argv, 73, "must have none of", "Choose another directory")
    assert not Path(name).exists()


@pytest.mark.parametrize("mode", ["train", "prepare"])
@pytest.mark.parametrize(("lost", "code"), [("", 64), ("config.json", 65)])
def test_a_model_directory_is_not_trained_in(copy, capsys, lost, code, mode):
    main(["--mode=average", f"--workdir={copy}", "--last=1", "--to=mean"])
    if lost:
        Path("mean", lost).unlink()
    before = hashes(Path("mean"))
    capsys.readouterr()
    refused(capsys, [f"--mode={mode}", *started(Path("mean").absolute())], code)
    assert hashes(Path("mean")) == before


def test_a_model_whose_configuration_is_lost_gets_it_back(copy, capsys):
    main(["--mode=average", f"--workdir={copy}", "--last=1", "--to=mean"])
    before = hashes(Path("mean"))
    for name in ("config.json", "vocab.model", "fingerprints.json"):
        Path("mean", name).unlink()
    assert main(["--mode=recover", "--workdir=mean"]) == 0
    assert hashes(Path("mean")) == before


def test_a_configuration_of_another_run_is_refused_before_any_write(copy, capsys):
    told = json.loads((copy / "config.json").read_text())
    told["model"]["d_ff"] = 48
    (copy / "config.json").write_text(json.dumps(told))
    before = hashes(copy)
    argv = started(copy, model__d_ff=48)
    refused(capsys, argv, 65, "are of different experiments: 1 keys differ")
    assert hashes(copy) == before
