"""The paper's experiment on a set of TFDS, from the files to a translation."""

import contextlib
import gzip
import io
import json
import os
from pathlib import Path

import pytest

from t2t_jax.data.corpora.open import open_corpus
from tests.data.tfds_sets import write_wmt14
from tests.integration import tiny

# A vocabulary that so little text can fill belongs to the size of the model.
SMALLER = {
    "vocabulary.size": 1_500,
    "model.num_layers": 1,
    "model.d_model": 16,
    "model.d_ff": 32,
    "model.num_heads": 2,
    "model.d_k": 8,
    "model.d_v": 8,
    "steps": 3,
    "evaluation.every_steps": 3,
    "evaluation.bleu_sentences": 5,
    "decoding.beam_size": 2,
    "decoding.max_extra_tokens": 5,
}


def _english_and_german(count: int) -> list[tuple[str, str]]:
    """Reads pairs of Multi30k where it is, and takes the phrasebook's elsewhere."""
    if not (folder := os.environ.get("T2T_JAX_TEST_DATA")):
        return list(open_corpus(f"phrasebook:train:{count}"))
    sides = []
    for language in ("en", "de"):
        path = sorted(Path(folder, "multi30k").glob(f"train*.{language}*"))[0]
        read = gzip.open if path.suffix == ".gz" else open
        with read(path, "rt", encoding="utf-8") as file:
            sides.append([next(file).strip() for _ in range(count)])
    return list(zip(*sides, strict=True))


@pytest.fixture(scope="module")
def pairs():
    return _english_and_german(3_000)


@pytest.fixture(scope="module")
def home(pairs, tmp_path_factory):
    """A directory of TFDS with wmt14_translate/de-en in it, of these pairs."""
    path = tmp_path_factory.mktemp("tfds")
    turned = [(german, english) for english, german in pairs]
    splits = {"train": turned[100:], "validation": turned[:50], "test": turned[50:100]}
    with contextlib.redirect_stderr(io.StringIO()):
        write_wmt14(path, splits)
    return path


@pytest.fixture(scope="module")
def run(home, tmp_path_factory):
    """Runs the command line on that directory, where TensorFlow is not to be had."""
    path = tmp_path_factory.mktemp("without")
    (path / "tensorflow.py").write_text("raise ImportError('no tensorflow here')\n")
    cache = tmp_path_factory.mktemp("cache")
    before = {name: os.environ.get(name) for name in ("TFDS_DATA_DIR", "PYTHONPATH")}
    os.environ["TFDS_DATA_DIR"] = str(home)
    os.environ["PYTHONPATH"] = str(path)
    yield lambda *argv, **given: tiny.run(
        *argv, f"--config.data.cache_dir={cache}", **given
    )
    for name, value in before.items():
        os.environ.pop(name)
        if value is not None:
            os.environ[name] = value


@pytest.fixture(scope="module")
def trained(run, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("wmt") / "run"
    done = run(*_command(workdir))
    assert done.returncode == 0, done.stderr.decode()
    return workdir


def _command(workdir: Path, **changed: object) -> list[str]:
    keys = [f"--config.{key}={value}" for key, value in (SMALLER | changed).items()]
    return ["--config=configs/wmt_en_de.py", f"--workdir={workdir}", *keys]


def test_every_pair_is_read_from_the_set_in_the_paper_s_direction(trained, pairs):
    told = json.loads((trained / "data.json").read_text(encoding="utf-8"))
    assert told["train"]["spec"] == "tfds:wmt14_translate/de-en:train:en-de"
    assert told["train"]["counts"]["read"] == 2_900
    assert told["dev"]["counts"]["read"] == 50
    lines = (trained / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["kind"] for line in lines] == [
        *("train", "train", "eval", "final"),
    ]


def test_the_same_command_goes_on(trained, run):
    done = run(*_command(trained, steps=4))
    assert done.returncode == 0, done.stderr.decode()
    assert b"Resuming from step 3" in done.stderr


def test_what_was_learnt_translates_and_is_evaluated(trained, run, pairs, tmp_path):
    english = "".join(f"{source}\n" for source, _ in pairs[50:53]).encode()
    german = "".join(f"{target}\n" for _, target in pairs[50:53]).encode()
    done = run("--mode=translate", f"--workdir={trained}", stdin=english)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.count(b"\n") == 3
    (tmp_path / "en").write_bytes(english)
    (tmp_path / "de").write_bytes(german)
    files = [f"--source={tmp_path / 'en'}", f"--reference={tmp_path / 'de'}"]
    done = run("--mode=evaluate", f"--workdir={trained}", *files)
    assert done.returncode == 0, done.stderr.decode()
