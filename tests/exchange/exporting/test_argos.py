"""An `.argosmodel` is laid out as Argos Translate reads it.

Seen to fail: with the vocabulary of CTranslate2's export among the files of the model;
with a name in the place of a code.
"""

import dataclasses
import json
import zipfile

import pytest

from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.tokenizers import table_file
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import UserError
from t2t_jax.exchange.exporting.argos import ArgosFormat
from t2t_jax.exchange.exporting.base import ExportSpec
from tests.exchange.exporting.counting import SIZE, original
from tests.exchange.exporting.test_marian import MODEL

pytest.importorskip("ctranslate2")


def write(to, **changed):
    to.mkdir()
    changed = {"languages": ("en", "de"), **changed}
    ArgosFormat().write(to, original(MODEL, **changed), ExportSpec("argos"))
    (package,) = to.iterdir()
    return package


def test_argos_finds_a_directory_with_model_tokenizer_and_metadata(tmp_path):
    package = write(tmp_path / "to")
    assert package.name == "translate-en_de.argosmodel"
    with zipfile.ZipFile(package) as file:
        file.extractall(tmp_path / "packages")
    (content,) = (tmp_path / "packages").iterdir()
    names = {path.relative_to(content).as_posix() for path in content.rglob("*")}
    assert names == {
        "metadata.json",
        "README.md",
        "sentencepiece.model",
        "model",
        "model/config.json",
        "model/model.bin",
        "model/shared_vocabulary.json",
    }
    assert json.loads((content / "metadata.json").read_text()) == {
        "package_version": "1.0",
        "argos_version": "1.0",
        "from_code": "en",
        "from_name": "English",
        "to_code": "de",
        "to_name": "German",
    }


def test_languages_that_are_not_known_are_asked_for(tmp_path):
    with pytest.raises(UserError, match="Set --languages=SOURCE,TARGET"):
        write(tmp_path / "to", languages=None)


def test_two_vocabularies_are_refused():
    network = dataclasses.replace(MODEL, source_vocab_size=SIZE, tying="none")
    with pytest.raises(UserError, match="one vocabulary of both sides"):
        ArgosFormat().check_supported(original(network).config)


def test_a_table_of_pieces_is_refused(tmp_path):
    pieces = ["<pad>", "<s>", "</s>", "<unk>", *map(str, range(SIZE - 4))]
    table = Vocabulary(table_file("byte_pairs", pieces, merges=None))
    with pytest.raises(UserError, match="a vocabulary of SentencePiece"):
        write(tmp_path / "to", vocabularies=VocabularyPair(table, table))
