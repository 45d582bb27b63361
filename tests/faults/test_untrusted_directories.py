"""Models of strangers: directories that would run code, or lead out of themselves.

A file with a pickle in it runs a program when it is unpickled; each leaves a mark then,
and no test finds one. Seen to fail: with `pickle.loads` tried in `read_json_object`,
and without its bound. Token caches: tests/data/token_cache/test_token_cache.py; sets of
TFDS: tests/data/corpora/test_tfds.py; what the package never calls:
tests/architecture/test_safety.py.
"""

import json
import os
import pickle
import re
import shutil
from pathlib import Path

import pytest
import tensorstore

import t2t_jax
from t2t_jax.checkpointing.checksums import json_digest
from t2t_jax.data.vocabulary.tokenizers import SPECIAL_PIECES, table_file
from t2t_jax.errors import DataError
from t2t_jax.run.inference import load as load_module
from tests.faults.running import hashes, refused
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


@pytest.mark.parametrize("name", ["config.json", "vocab.model", "fingerprints.json"])
def test_a_pickle_in_the_place_of_a_file_is_damage(copy, bomb, name):
    (copy / name).write_bytes(bomb)
    refused(_translate(copy), 65, name)


def test_a_checkpoint_of_pickles_is_damage_to_whoever_reads_it(copy, bomb, tmp_path):
    step = copy / "checkpoints" / "1"
    for path in filter(Path.is_file, step.rglob("*")):
        path.write_bytes(bomb)
    refused(_translate(copy), 65, str(step))
    for side in ("en", "de"):
        (tmp_path / side).write_bytes(LINE)
    texts = [f"--source={tmp_path / 'en'}", f"--reference={tmp_path / 'de'}"]
    refused(tiny.run("--mode=evaluate", f"--workdir={copy}", *texts), 65, str(step))
    before = sorted(path.name for path in (copy / "checkpoints").iterdir())
    done = tiny.run(*tiny.arguments(copy, steps=2, checkpoint__every_steps=1))
    refused(done, 65, str(step))
    assert sorted(path.name for path in (copy / "checkpoints").iterdir()) == before


# Orbax lets go of what else it was reading, and its threads say so when it is too late.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_no_file_of_a_checkpoint_is_unpickled_whichever_it_is(one_step, bomb, tmp_path):
    refused = 0
    names = hashes(one_step / "checkpoints" / "1")
    for number, name in enumerate(names):
        copy = shutil.copytree(one_step, tmp_path / str(number))
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


META = ("checkpoints/1/meta/metadata", "checkpoints/1/params/_METADATA")


@pytest.mark.parametrize("name", ["config.json", "fingerprints.json", *META])
def test_huge_json_is_refused_before_it_is_read(copy, name):
    os.truncate(copy / name, TERABYTE)
    refused(_translate(copy), 65, "must have at most 67,108,864 bytes")


ARRAY = "embedding.table"
# 10 GB of zeros: a frame of zstd with 80,000 blocks of one repeated byte.
_BLOCK = ((128 << 10) << 3 | 1 << 1).to_bytes(3, "little") + b"\0"
BOMB = b"\x28\xb5\x2f\xfd\x00\x58" + 80_000 * _BLOCK + b"\1\0\0"


def _forge(copy, name, change):
    """Changes a value of the key-value store that holds the parameters."""
    base = {"driver": "file", "path": f"{copy}/checkpoints/1/params/"}
    store = tensorstore.KvStore.open({"driver": "ocdbt", "base": base}).result()
    key = f"{ARRAY}/{name}"
    value = store.read(key).result().value
    assert value, store.list().result()
    store.write(key, change(value)).result()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"chunks": [12_000_000, 16]}, "chunks of"),
        ({"chunks": [1 << 33, 16]}, "chunks of"),
        ({"compressor": {"id": "zlib", "level": 1}}, "compressed by zlib"),
        ({"dtype": "<f8"}, "float64"),
        ({"dtype": [["a", "<f4", [1 << 30]]]}, "embedding/table"),
        ({"dtype": "|V2000000000"}, "embedding/table"),
    ],
)
def test_an_array_is_not_read_in_chunks_that_it_does_not_need(copy, changed, reason):
    def change(value):
        return json.dumps({**json.loads(value), **changed}).encode()

    _forge(copy, ".zarray", change)
    refused(_translate(copy), 65, "is corrupt", ARRAY.replace(".", "/"), reason)


def test_a_chunk_that_unpacks_to_gigabytes_is_not_unpacked(copy):
    _forge(copy, "0.0", lambda value: BOMB)
    refused(_translate(copy), 65, "a chunk unpacks to more than its size")


def _change_model(copy, **changed):
    config = json.loads((copy / "config.json").read_text())
    config["model"] |= changed
    (copy / "config.json").write_text(json.dumps(config))
    (copy / "overrides.json").unlink()


@pytest.mark.parametrize("changed", [{"num_layers": 1_000}, {"d_ff": 1_000_000}])
def test_a_model_beyond_its_files_is_refused_and_not_built(copy, changed, monkeypatch):
    _change_model(copy, **changed)
    monkeypatch.setattr(load_module, "make_module", None)
    with pytest.raises(DataError, match="was written for another model"):
        t2t_jax.load(copy)
    refused(_translate(copy), 65, "was written for another model")


def test_shapes_that_no_file_holds_are_refused_before_the_model_is_built(copy):
    """A chunk that is missing is zeros: an array of any size may take no file."""
    _change_model(copy, d_ff=1_000_000)
    path = copy / "checkpoints/1/meta/metadata"
    meta = json.loads(path.read_text())
    sums = meta["checksums"]["params"]
    for name in filter(re.compile("feed_forward/").search, sums):
        sums[name] = re.sub(r"\b32([],])", r"1000000\1", sums[name])
    del meta["digest"]
    path.write_text(json.dumps({**meta, "digest": json_digest(meta)}))
    refused(_translate(copy), 65, "cannot hold")


@pytest.mark.parametrize("format", ["sentencepiece", "table"])
def test_pieces_that_are_not_text_are_a_damaged_vocabulary(copy, format):
    path = copy / "vocab.model"
    if format == "table":
        pieces = [*SPECIAL_PIECES, *(f"\ud800{number}" for number in range(146))]
        path.write_bytes(table_file("byte_pairs", pieces, merges=None))
    else:
        content = path.read_bytes()
        place = content.index("\u2581th".encode()) + 3
        path.write_bytes(content[:place] + b"\xff" + content[place + 1 :])
    (copy / "fingerprints.json").unlink()
    refused(_translate(copy), 65, "vocab.model")


def test_paths_in_a_models_configuration_are_followed_by_training_only(copy, tmp_path):
    config = json.loads((copy / "config.json").read_text())
    config["data"] |= {
        "train": f"text:{tmp_path}/../etc/passwd,/etc/passwd",
        "cache_dir": str(tmp_path / "outside"),
        "held_out": "text:../../a,/dev/zero",
    }
    config["vocabulary"]["file"] = "../../../etc/passwd"
    (copy / "config.json").write_text(json.dumps(config))
    before = sorted(tmp_path.rglob("*"))
    done = _translate(copy)
    assert done.returncode == 0, done.stderr.decode()
    assert sorted(tmp_path.rglob("*")) == before


def test_a_pipe_in_a_model_is_not_waited_for(copy):
    (copy / "config.json").unlink()
    os.mkfifo(copy / "config.json")
    done = tiny.run("--mode=translate", f"--workdir={copy}", stdin=LINE, timeout=240)
    refused(done, 65, "config.json must be a file, and is a pipe")
