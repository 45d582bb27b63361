"""The program in a card translates as the comparison does, whatever the vocabulary.

Seen to fail: with the vocabularies of both sides exchanged; with a limit that is one
token lower.
"""

import dataclasses
import re

import pytest

from t2t_jax.data.config import VocabularyConfig
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.tokenizers import SPECIAL_PIECES, table_file
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.exchange.exporting.base import ExportSpec
from t2t_jax.exchange.exporting.ctranslate2 import CTranslate2Format
from tests.exchange.exporting.counting import SIZE, WORDS, original, vocabulary
from tests.exchange.exporting.test_marian import MODEL
from tests.integration.tiny import ROOT

pytest.importorskip("ctranslate2")


def table(kind, *, own=None, **options):
    own = own or vocabulary()
    pieces = [f"<{number}>" for number in range(SIZE - own.size)]
    pieces += own.pieces(range(4, own.size))[::-1]
    return Vocabulary(table_file(kind, [*SPECIAL_PIECES, *pieces], **options))


def joint():
    return VocabularyPair(vocabulary(), vocabulary())


def tables_of_sentencepiece():
    words = [word for word in WORDS.values() for _ in range(9)]
    config = VocabularyConfig(size=SIZE - 10)
    sides = [vocabulary(), Vocabulary.train(words, config.size, config=config)]
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
    limits = {"max_extra_tokens": 7, "max_length_ratio": ratio, "min_tokens": least}
    search = {"beam_size": 1, "length_penalty": 0.0, "allow_unk": False}
    decoding = DecodingConfig(**search, **limits)
    vocabularies = make()
    own = 0 if vocabularies.shared else SIZE
    network = dataclasses.replace(MODEL, tying="none", source_vocab_size=own)
    one = original(network, vocabularies=vocabularies, decoding=decoding)
    one = one._replace(origin={"examples": [line]})
    form = CTranslate2Format()
    (tmp_path / "mine").mkdir()
    form.write(tmp_path / "mine", one, ExportSpec("ctranslate2"))
    program = program_of(form.usage(one, name="mine"))
    monkeypatch.chdir(tmp_path)
    exec(program, {})
    (wanted,) = form.load(tmp_path / "mine", one).search([line], greedy=True)
    assert capsys.readouterr().out == f"{wanted.text}\n"
    assert wanted.text
    assert len(wanted.tokens) >= least
    assert f"min_decoding_length={least}," in program


def test_the_site_shows_the_program_of_a_card():
    page = (ROOT / "docs/how_to/export_a_model.md").read_text(encoding="utf-8")
    examples = {"examples": ["Where are your new shoes?"]}
    shown = original(MODEL)._replace(origin=examples)
    usage = CTranslate2Format().usage(shown, name="mine-ct2")
    assert program_of(page) == program_of(usage)
