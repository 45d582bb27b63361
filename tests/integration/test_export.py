"""`--mode=export`, as a user runs it: what is written is the model that was asked for.

Seen to fail: with the checkpoint `last` in the place of the one that is asked for. What
is wrong and must not be written: tests/exchange/exporting/test_exporter.py.
"""

import hashlib
import json
import os
import re
import shutil
import sys

import jax
import numpy as np
import pytest

from t2t_jax.cli.flags.parse_argv import parse_argv
from t2t_jax.cli.modes import export
from t2t_jax.errors import DataError, OutputError
from t2t_jax.run.workdir import Workdir
from tests.docs.commands import run as command
from tests.docs.commands import run_python
from tests.faults.running import refused
from tests.integration import tiny

pytest.importorskip("safetensors")

FEW = "--check_lines=20"


@pytest.fixture(scope="module")
def workdir(counting):
    return counting


def run(workdir, *flags):
    """Runs the mode in this process."""
    return export.run(parse_argv(["--mode=export", f"--workdir={workdir}", *flags]))


def exported(workdir, form, place, *flags):
    run(workdir, f"--format={form}", f"--to={place}", FEW, *flags)
    return place


@pytest.fixture(scope="module")
def one_file(workdir, tmp_path_factory):
    place = tmp_path_factory.mktemp("one file") / "a model"
    return exported(workdir, "safetensors", place, "--checkpoint=100")


def same(params, others):
    pairs = zip(*map(jax.tree.leaves, (params, others)), strict=True)
    return all(np.asarray(a).tobytes() == np.asarray(b).tobytes() for a, b in pairs)


def snippet(place):
    """Runs the Python of the card, beside the directory, and returns what it prints."""
    card = (place / "README.md").read_text()
    (script,) = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    environ = {**tiny.environment(), "PYTHONPATH": str(tiny.ROOT)}
    return run_python(script, place.parent, environ=environ).rstrip("\n")


def files_are_whole(place):
    done = command(["sha256sum", "--check", "--strict", "SHA256SUMS"], place)
    there = sum(path.is_file() for path in place.rglob("*"))
    return done.stdout.count(": OK\n") == there - 1


def test_an_export_is_packed_into_the_same_bytes_each_time(one_file, tmp_path):
    archives = []
    for place in ("a", "b"):
        model = shutil.copytree(one_file, tmp_path / place / "my model's")
        os.utime(model / "README.md", (0, len(archives)))
        script = [sys.executable, tiny.ROOT / "tools/pack_model.py", model]
        done = command(script, tmp_path)
        archives.append(model.with_name("my model's.tar.gz").read_bytes())
        assert hashlib.sha256(archives[-1]).hexdigest() in done.stdout
    assert archives[0] == archives[1]
    again = command(script, tmp_path, code=1)
    assert again.stderr.endswith("gz exists. Move it away to pack again.\n")
    (there := tmp_path / "c").mkdir()
    (there / "my model's.tar.gz").write_bytes(archives[0])
    lines = done.stdout.partition("What a stranger runs:\n")[2]
    command(["sh", "-e"], there, stdin=lines)
    assert files_are_whole(there / "my model's")
    model = tiny.load(there / "my model's")
    assert model.translate(["one two"]) == tiny.load(one_file).translate(["one two"])
    (tmp_path / "a/my model's/config.json").write_text("{}")
    (tmp_path / "a/my model's.tar.gz").unlink()
    script[-1] = tmp_path / "a/my model's"
    done = command(script, tmp_path, code=1)
    assert "must be as `t2t-jax export` wrote it" in done.stderr
    assert not (tmp_path / "a/my model's.tar.gz").exists()


def test_one_file_holds_the_model_that_was_asked_for(workdir, one_file):
    own, model = tiny.load(workdir, checkpoint=100), tiny.load(one_file)
    assert model.step == own.step == 100
    assert same(model.params, own.params)
    assert not same(model.params, tiny.load(workdir, checkpoint="last").params)
    lines = (workdir.parent / "a.en").read_text().splitlines()[:20]
    search = {"beam_size": 4, "length_penalty": 0.0}
    with jax.default_matmul_precision("highest"):
        assert model.translate(lines, **search) == own.translate(lines, **search)
    assert files_are_whole(one_file)
    card = (one_file / "README.md").read_text()
    for words in ("from en to de", "step 100", "a.de`, 400 pairs", "20 of 20 |"):
        assert words in card
    # Parameters are as readable as the configuration.
    modes = {path.stat().st_mode for path in one_file.iterdir() if path.is_file()}
    assert len(modes) == 1


def test_every_mode_reads_one_file_and_the_lines_of_the_card_run(one_file, tmp_path):
    # What the card translates is of the run's own text.
    (example, *_) = json.loads((one_file / "model.json").read_text())["examples"]
    assert example in (one_file / "README.md").read_text()
    (tmp_path / "text").write_text(f"{example}\n")
    texts = [f"--{name}={tmp_path / 'text'}" for name in ("source", "reference")]
    found = {}
    for mode, rows in {"translate": 1, "score": 2, "evaluate": 1}.items():
        files = texts if mode != "translate" else [f"--input={tmp_path / 'text'}"]
        done = tiny.succeed(f"--mode={mode}", f"--workdir={one_file}", *files)
        found[mode] = done.stdout.decode()
        assert found[mode].count("\n") == rows
    assert snippet(one_file) == found["translate"].rstrip("\n")


def test_a_damaged_file_ends_in_one_line(one_file, tmp_path):
    copy = shutil.copytree(one_file, tmp_path / "copy")
    path = copy / "model.safetensors"
    os.truncate(path, path.stat().st_size - 1)
    done = tiny.run("--mode=translate", f"--workdir={copy}", stdin=b"A dog.\n")
    (line,) = refused(done, 65).splitlines()
    assert done.stdout == b""
    assert line.startswith(f"error: {path} is damaged: ")


def test_a_model_directory_made_of_it_is_the_same_again(one_file, workdir, tmp_path):
    # An export does not tell where the development text is.
    text = [f"--source={workdir.parent}/a.en", f"--reference={workdir.parent}/a.de"]
    place = exported(one_file, "model_dir", tmp_path / "again", *text)
    model = tiny.load(place, checkpoint="last")
    assert same(model.params, tiny.load(one_file).params)
    first, second = (
        json.loads((path / "model.json").read_text()) for path in (one_file, place)
    )
    assert first == second
    assert second["run"] == "run"
    assert files_are_whole(place)
    words = [(path / "known_words.npy").read_bytes() for path in (one_file, place)]
    assert words[0] == words[1]


def test_ctranslate2_gives_the_same_and_the_card_says_how(workdir, tmp_path):
    pytest.importorskip("ctranslate2")
    place = tmp_path / "ct2"
    flags = ["--format=ctranslate2", f"--to={place}", FEW]
    # As many devices as here, for whose programs are kept.
    argv = ("--mode=export", f"--workdir={workdir}", *flags)
    done = tiny.succeed(*argv, devices=8, fresh=True)
    found = json.loads(done.stdout)
    assert (found["lines"], found["equal"] + found["ties"]) == (20, 20)
    assert 0 < found["largest_difference"] < 1e-4
    assert b"to be verified on 20 lines" in done.stderr
    assert files_are_whole(place)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ct2"]
    card = (place / "README.md").read_text()
    assert f"{found['equal']} of 20" in card
    assert "On the development text" in card  # which step 12 was scored on
    snippet(place)
    with pytest.raises(DataError, match=r"a CTranslate2 model. Pass the run"):
        Workdir(place).read_config()


def test_a_package_for_argos_is_a_file_or_a_directory_with_it(workdir, tmp_path):
    pytest.importorskip("ctranslate2")
    place = exported(workdir, "argos", tmp_path / "a")
    names = {path.name for path in place.iterdir()}
    assert names == {"README.md", "SHA256SUMS", "translate-en_de.argosmodel"}
    assert files_are_whole(place)
    # What the card translates, with Argos's own call.
    assert snippet(place)
    alone = exported(workdir, "argos", tmp_path / "b" / "mine.argosmodel")
    assert list(alone.parent.iterdir()) == [alone]
    package = (place / "translate-en_de.argosmodel").read_bytes()
    assert alone.read_bytes() == package
    with pytest.raises(OutputError, match="exists and is not a directory"):
        run(workdir, "--format=argos", f"--to={alone}")
