"""Models of strangers: directories that would run code, or lead out of themselves.

A file with a pickle in it runs a program when it is unpickled; each leaves a mark then,
and no test finds one. Seen to fail: with `pickle.loads` tried in `read_json_object`,
and without its bound. Token caches: tests/data/token_cache/test_token_cache.py; sets of
TFDS: tests/data/corpora/test_tfds_reader.py; what the package never calls:
tests/architecture/test_safety.py.
"""

import json
import os
import pickle
import shutil
from pathlib import Path

import pytest

import t2t_jax
from t2t_jax.errors import DataError
from tests.integration import tiny

LINE = b"The old teacher reads a book.\n"
TERABYTE = 1 << 40


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


@pytest.fixture
def run(one_step):
    return one_step


@pytest.fixture
def copy(run, tmp_path):
    return shutil.copytree(run, tmp_path / "copy")


@pytest.fixture
def bomb(tmp_path):
    """The bytes of a bomb that no test may set off."""
    mark = tmp_path / "mark"
    content = pickle.dumps(Bomb(mark))
    yield content
    assert not mark.exists(), "a pickle was loaded"


def test_the_bomb_is_one(tmp_path):
    pickle.loads(pickle.dumps(Bomb(tmp_path / "mark")))
    assert (tmp_path / "mark").exists()


def _translate(workdir):
    return tiny.run("--mode=translate", f"--workdir={workdir}", stdin=LINE)


def _refused(done, *expected):
    errors = done.stderr.decode()
    assert done.returncode == 65, errors
    assert "Traceback" not in errors
    assert done.stdout == b""
    for words in expected:
        assert words in errors


@pytest.mark.parametrize("name", ["config.json", "vocab.model", "fingerprints.json"])
def test_a_pickle_in_the_place_of_a_file_is_damage(copy, bomb, name):
    (copy / name).write_bytes(bomb)
    _refused(_translate(copy), name)


def test_a_checkpoint_of_pickles_is_damage_to_whoever_reads_it(copy, bomb, tmp_path):
    step = copy / "checkpoints" / "1"
    for path in filter(Path.is_file, step.rglob("*")):
        path.write_bytes(bomb)
    _refused(_translate(copy), str(step))
    for side in ("en", "de"):
        (tmp_path / side).write_bytes(LINE)
    texts = [f"--source={tmp_path / 'en'}", f"--reference={tmp_path / 'de'}"]
    _refused(tiny.run("--mode=evaluate", f"--workdir={copy}", *texts), str(step))
    before = sorted(path.name for path in (copy / "checkpoints").iterdir())
    done = tiny.run(*tiny.arguments(copy, steps=2, checkpoint__every_steps=1))
    _refused(done, str(step))
    assert sorted(path.name for path in (copy / "checkpoints").iterdir()) == before


def _files_of_a_checkpoint(run):
    step = run / "checkpoints" / "1"
    return sorted(p.relative_to(step) for p in step.rglob("*") if p.is_file())


# Orbax lets go of what else it was reading, and its threads say so when it is too late.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_file_of_a_checkpoint_is_unpickled_whichever_it_is(run, bomb, tmp_path):
    refused = 0
    for number, name in enumerate(_files_of_a_checkpoint(run)):
        copy = shutil.copytree(run, tmp_path / str(number))
        (copy / "checkpoints" / "1" / name).write_bytes(bomb)
        try:
            t2t_jax.load(copy)
        except DataError:
            refused += 1
    # The optimizer's files are not what a translation reads.
    assert refused > 3


def test_files_that_nobody_asked_for_are_not_opened(copy, bomb):
    expected = _translate(copy)
    assert expected.returncode == 0, expected.stderr.decode()
    step = copy / "checkpoints" / "1"
    for folder in (copy, copy / "checkpoints", step, step / "params"):
        for name in ("model.pkl", "params.pickle", "aux.npy", "conftest.py", "jax.py"):
            (folder / name).write_bytes(bomb)
    assert _translate(copy).stdout == expected.stdout


@pytest.mark.parametrize(
    "name",
    [
        "config.json",
        "fingerprints.json",
        "checkpoints/1/meta/metadata",
        "checkpoints/1/params/_METADATA",
    ],
)
def test_huge_json_is_refused_before_it_is_read(copy, name):
    os.truncate(copy / name, TERABYTE)
    _refused(_translate(copy), "must have at most 67,108,864 bytes")


def test_paths_in_a_models_configuration_are_followed_by_training_only(copy, tmp_path):
    config = json.loads((copy / "config.json").read_text())
    outside = tmp_path / "outside"
    config["data"] |= {
        "train": f"text:{tmp_path}/../etc/passwd,/etc/passwd",
        "cache_dir": str(outside),
        "held_out": "text:../../a,/dev/zero",
    }
    config["vocabulary"]["file"] = "../../../etc/passwd"
    (copy / "config.json").write_text(json.dumps(config))
    before = sorted(path for path in tmp_path.rglob("*"))
    done = _translate(copy)
    assert done.returncode == 0, done.stderr.decode()
    assert sorted(path for path in tmp_path.rglob("*")) == before


def test_a_pipe_in_a_model_is_not_waited_for(copy):
    (copy / "config.json").unlink()
    os.mkfifo(copy / "config.json")
    done = tiny.run("--mode=translate", f"--workdir={copy}", stdin=LINE, timeout=240)
    _refused(done, "config.json must be a file, and is a pipe or a device")
