"""An `.argosmodel` is laid out as Argos Translate reads it.

Seen to fail: with the vocabulary of CTranslate2's export among the files of the model;
with a name in the place of a code.
"""

import dataclasses
import json
import zipfile
from types import SimpleNamespace

import pytest

from t2t_jax.config import Config
from t2t_jax.data.config import VocabularyConfig
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.tokenizers import table_file
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import UserError
from t2t_jax.exchange.exporting.base import ExportSpec, Original
from t2t_jax.exchange.exporting.ctranslate2.argos import ArgosFormat
from t2t_jax.exchange.exporting.ctranslate2.format import write_ctranslate2
from tests.exchange.exporting.test_marian import MODEL, SIZE, vocabulary
from tests.model.tiny import tiny_params

ctranslate2 = pytest.importorskip("ctranslate2")

LINES = ["one two", "three four five", "two"]


def original(*, languages=("en", "de"), shared=None):
    shared = shared or vocabulary()
    return Original(
        model=SimpleNamespace(
            params=tiny_params(MODEL),
            vocabularies=VocabularyPair(shared, shared),
            step=7,
        ),
        config=Config(vocabulary=VocabularyConfig(size=SIZE), model=MODEL),
        origin={"step": 7, "examples": ["one two"]},
        languages=languages,
    )


def write(to, **changed):
    to.mkdir()
    ArgosFormat().write(to, original(**changed), ExportSpec("argos"))
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


def test_argos_own_call_gives_what_the_model_of_ctranslate2_gives(tmp_path):
    package = write(tmp_path / "to")
    with zipfile.ZipFile(package) as file:
        file.extractall(tmp_path / "packages")
    (content,) = (tmp_path / "packages").iterdir()
    same = original()
    write_ctranslate2(
        tmp_path / "ct2",
        same.model.params,
        config=same.config,
        vocabularies=same.model.vocabularies,
    )
    pieces = Vocabulary((content / "sentencepiece.model").read_bytes())
    tokens = [pieces.pieces(ids) for ids in pieces.encode(LINES)]
    found = [
        ctranslate2.Translator(str(path)).translate_batch(
            tokens,
            replace_unknowns=True,
            max_batch_size=32,
            batch_type="tokens",
            beam_size=4,
            num_hypotheses=1,
            length_penalty=0.2,
            return_scores=True,
            max_decoding_length=20,
        )
        for path in (content / "model", tmp_path / "ct2")
    ]
    texts = [[one.hypotheses[0] for one in side] for side in found]
    assert texts[0] == texts[1]
    assert len({tuple(text) for text in texts[0]}) > 1


def test_languages_that_are_not_known_are_asked_for(tmp_path):
    with pytest.raises(UserError, match="Set --languages=SOURCE,TARGET"):
        write(tmp_path / "to", languages=None)


def test_two_vocabularies_are_refused():
    config = Config(
        vocabulary=VocabularyConfig(size=SIZE, source_size=SIZE),
        model=dataclasses.replace(MODEL, source_vocab_size=SIZE, tying="none"),
    )
    with pytest.raises(UserError, match="one vocabulary of both sides"):
        ArgosFormat().check_supported(config)


def test_a_table_of_pieces_is_refused(tmp_path):
    pieces = ["<pad>", "<s>", "</s>", "<unk>", *map(str, range(SIZE - 4))]
    table = Vocabulary(table_file("byte_pairs", pieces, merges=None))
    with pytest.raises(UserError, match="a vocabulary of SentencePiece"):
        write(tmp_path / "to", shared=table)


def test_the_same_model_gives_the_same_bytes(tmp_path):
    first, second = (write(tmp_path / name).read_bytes() for name in "ab")
    assert first == second
