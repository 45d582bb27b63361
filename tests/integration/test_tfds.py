"""The paper's experiment on a set of TFDS, from the files to a translation."""

import contextlib
import io
import json

import pytest

from t2t_jax.data.corpora.open import open_corpus
from tests.data.tfds_sets import write_wmt14
from tests.integration import tiny

# A vocabulary that so little text can fill belongs to the size of the model.
SMALLER = {
    **{key: value for key, value in tiny.TINY.items() if key.startswith("model.")},
    "vocabulary.size": 400,
    "data.tokens_per_batch": 1_024,
    "steps": 2,
    "evaluation.every_steps": 2,
    "evaluation.bleu_sentences": 5,
    "decoding.beam_size": 2,
    "decoding.max_extra_tokens": 5,
}


@pytest.fixture(scope="module")
def pairs():
    return list(open_corpus("phrasebook:train:800"))


@pytest.fixture(scope="module")
def home(pairs, tmp_path_factory):
    """A directory of TFDS with wmt14_translate/de-en in it, of these pairs."""
    path = tmp_path_factory.mktemp("tfds")
    turned = [(german, english) for english, german in pairs]
    splits = {"train": turned[100:], "validation": turned[:50], "test": turned[50:100]}
    with contextlib.redirect_stderr(io.StringIO()):
        write_wmt14(path, splits)
    return path


@pytest.fixture
def run(home, tmp_path):
    """Runs the command line on that directory, where TensorFlow is not to be had."""
    (tmp_path / "tensorflow.py").write_text("raise ImportError('no tensorflow here')\n")
    code = f"import sys, t2t_jax.main as it; sys.path.insert(0, {str(tmp_path)!r}); "
    program = "-c", f"{code} it.cli_entry_point()", f"--workdir={tmp_path / 'run'}"
    cache = f"--config.data.cache_dir={tmp_path / 'cache'}"
    where = {"TFDS_DATA_DIR": str(home)}
    return lambda *argv, **given: tiny.succeed(*program, cache, *argv, **given, **where)


def test_the_paper_s_set_is_trained_on_resumed_and_translated(run, pairs, tmp_path):
    keys = [f"--config.{key}={value}" for key, value in SMALLER.items()]
    run("--config=configs/wmt_en_de.py", *keys, fresh=True)  # imports all without it
    told = json.loads((tmp_path / "run" / "data.json").read_text(encoding="utf-8"))
    assert told["train"]["spec"] == "tfds:wmt14_translate/de-en:train:en-de"
    assert told["train"]["counts"]["read"] == 700
    assert told["dev"]["counts"]["read"] == 50
    lines = (tmp_path / "run" / "metrics.jsonl").read_text("utf-8").splitlines()
    kinds = [json.loads(line)["kind"] for line in lines]
    assert kinds == ["train", "train", "eval", "final"]
    again = run("--config=configs/wmt_en_de.py", *keys, "--config.steps=3")
    assert b"Resuming from step 2" in again.stderr

    english = "".join(f"{source}\n" for source, _ in pairs[50:53]).encode()
    assert run("--mode=translate", stdin=english).stdout.count(b"\n") == 3
