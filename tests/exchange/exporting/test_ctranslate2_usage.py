"""The program in a card translates as the comparison does, whatever the vocabulary.

Seen to fail: with the vocabularies of both sides exchanged; with a limit that is one
token lower.
"""

import dataclasses
import re
from types import SimpleNamespace

import pytest

from t2t_jax.config import Config
from t2t_jax.data.config import VocabularyConfig
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.tokenizers import SPECIAL_PIECES, table_file
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.exchange.exporting.base import ExportSpec, Original
from t2t_jax.exchange.exporting.ctranslate2.backend import piece_names
from t2t_jax.exchange.exporting.ctranslate2.format import CTranslate2Format
from tests.exchange.exporting.counting import WORDS
from tests.exchange.exporting.test_marian import MODEL, SIZE, vocabulary
from tests.integration.tiny import ROOT
from tests.model.tiny import tiny_params

pytest.importorskip("ctranslate2")


def table(kind, *, own=None, **options):
    own = own or vocabulary()
    pieces = [f"<{number}>" for number in range(SIZE - own.size)]
    pieces += own.pieces(range(4, own.size))[::-1]
    return Vocabulary(table_file(kind, [*SPECIAL_PIECES, *pieces], **options))


def joint():
    shared = vocabulary()
    return VocabularyPair(shared, shared)


def tables_of_sentencepiece():
    words = [word for word in WORDS.values() for _ in range(9)]
    config = VocabularyConfig(size=SIZE - 10)
    sides = [vocabulary(), Vocabulary.train(words, config=config, seed=0)]
    return VocabularyPair(
        *(table("sentencepiece_table", own=x, sentencepiece=x.model) for x in sides)
    )


def pieces_that_are_given():
    shared = table("byte_pairs", merges=None)
    return VocabularyPair(shared, shared)


def program_of(text):
    (program,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return program


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (joint, "one fünf"),
        (tables_of_sentencepiece, "one fünf"),
        (pieces_that_are_given, "▁on e ▁fünf"),
    ],
)
@pytest.mark.parametrize(("ratio", "least"), [(0.0, 0), (1.5, 0), (0.0, 6)])
def test_the_program_of_the_card_runs(
    tmp_path, monkeypatch, capsys, make, line, ratio, least
):
    decoding = DecodingConfig(
        beam_size=1,
        length_penalty=0.0,
        max_extra_tokens=7,
        max_length_ratio=ratio,
        min_tokens=least,
        allow_unk=False,
    )
    vocabularies = make()
    own = 0 if vocabularies.shared else SIZE
    config = Config(
        vocabulary=VocabularyConfig(size=SIZE, source_size=own),
        model=dataclasses.replace(MODEL, tying="none", source_vocab_size=own),
        decoding=decoding,
    )
    original = Original(
        model=SimpleNamespace(
            params=tiny_params(config.model), vocabularies=vocabularies
        ),
        config=config,
        origin={"examples": [line]},
    )
    form = CTranslate2Format()
    (tmp_path / "mine").mkdir()
    form.write(tmp_path / "mine", original, ExportSpec("ctranslate2"))
    program = program_of(form.usage(original, name="mine"))
    monkeypatch.chdir(tmp_path)
    exec(program, {})
    (wanted,) = form.load(tmp_path / "mine", original).search([line], greedy=True)
    assert capsys.readouterr().out == f"{wanted.text}\n"
    assert wanted.text
    assert len(wanted.tokens) >= least
    assert f"min_decoding_length={least}," in program


def test_the_site_shows_the_program_of_a_card():
    page = (ROOT / "docs/how_to/export_a_model.md").read_text(encoding="utf-8")
    config = Config(vocabulary=VocabularyConfig(size=SIZE), model=MODEL)
    examples = {"examples": ["Where are your new shoes?"]}
    model = SimpleNamespace(vocabularies=joint())
    original = Original(model=model, config=config, origin=examples)
    usage = CTranslate2Format().usage(original, name="mine-ct2")
    assert program_of(page) == program_of(usage)


def test_equal_pieces_get_names_of_their_own():
    pieces = [*SPECIAL_PIECES, "a", "b", "a", "</s>", "a<6>"]
    shared = Vocabulary(table_file("byte_pairs", pieces, merges=None))
    source, target = piece_names(VocabularyPair(shared, shared))
    assert source == target
    assert len(set(source)) == len(pieces)
    assert source[:6] == pieces[:6]
