"""VocabularyPair that are none, or another model's, given to the real command line.

A corpus that is too small for a vocabulary is in tests/faults/test_training_text.py.
Seen to fail: without the comparison in `Workdir.read_vocabularies` another vocabulary
of the same size translates into other words; without `VocabularyPair.check` ids are
looked up beyond the embedding.
"""

import json
import shutil

import pytest

from tests.faults.running import refused
from tests.integration import tiny

SHORT = {"steps": 1, "checkpoint__every_steps": 1}


def _given(workdir, file, **changed):
    """Prepares the text of a new run with a vocabulary that is given."""
    argv = tiny.arguments(workdir, vocabulary__file=file, **changed)
    return tiny.run("--mode=prepare", *argv)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is not a SentencePiece model: it"),
        (b"garbage", "is not a SentencePiece model: it"),
        (None, "must have at most 268,435,456 bytes, and has 1,099,511,627,776."),
    ],
    ids=["empty", "garbage", "a terabyte"],
)
def test_what_is_no_vocabulary_is_named_with_its_key(tmp_path, content, said):
    file = tmp_path / "given.model"
    with file.open("wb") as opened:
        opened.write(content or b"")
        opened.truncate(1 << 40 if content is None else len(content))
    refused(_given(tmp_path / "run", file), 65, str(file), said)


def test_a_vocabulary_of_another_size_is_told_by_numbers_and_key(one_step, tmp_path):
    done = _given(tmp_path / "new", one_step / "vocab.model", vocabulary__size=160)
    said = "has 150 subwords and vocabulary.size=160. Set config.vocabulary.size=150."
    refused(done, 65, said)


@pytest.mark.parametrize("mode", ["translate", "train"])
def test_another_vocabulary_of_equal_size_is_told_apart(copy, another_vocabulary, mode):
    shutil.copy(another_vocabulary, copy / "vocab.model")
    if mode == "train":
        done = tiny.run(*tiny.arguments(copy, **{**SHORT, "steps": 2}))
        refused(done, 65, "began with other content of: vocabulary.")
    else:
        done = tiny.run("--mode=translate", f"--workdir={copy}", stdin=b"A book.\n")
        refused(done, 65, "another vocabulary than its model was trained with")


def test_ids_beyond_the_embedding_are_told_with_both_numbers(copy):
    config = json.loads((copy / "config.json").read_text())
    config["vocabulary"]["size"] = 140
    (copy / "config.json").write_text(json.dumps(config))
    (copy / "overrides.json").unlink()
    done = tiny.run("--mode=translate", f"--workdir={copy}", stdin=b"A book.\n")
    refused(done, 65, "has 150 subwords and vocabulary.size=140. Restore it")


def test_a_model_keeps_its_vocabulary_s_mark(one_step, another_vocabulary, tmp_path):
    to = tmp_path / "model"
    argv = ["--mode=average", f"--workdir={one_step}", "--last=1", f"--to={to}"]
    done = tiny.succeed(*argv)
    shutil.copy(another_vocabulary, to / "vocab.model")
    done = tiny.run("--mode=translate", f"--workdir={to}", stdin=b"A book.\n")
    refused(done, 65, "another vocabulary than its model was trained with")
