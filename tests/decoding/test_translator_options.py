"""Splitting, n-best, prefixes and drawing, from line to line."""

import dataclasses
import logging

import jax
import pytest

from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.errors import DataError, UserError
from tests.decoding.models import recurrent
from tests.decoding.words import (
    Counted,
    V,
    WordVocabulary,
    sentences,
    translator,
)


def test_long_sources_are_split_and_joined():
    lines = ["der " * 15, "das " * 16, "rot", "und " * 40]
    found = translator().translations(lines)
    assert [translation.text for translation in found] == [
        line.strip() for line in lines
    ]
    assert [translation.num_parts for translation in found] == [1, 2, 1, 3]
    assert [translation.status for translation in found] == [
        "ok",
        "chunked",
        "ok",
        "chunked",
    ]
    # One eos for each part is counted, and one is left among the tokens.
    assert found[3].num_tokens == 43
    assert len(found[3].hypotheses[0].tokens) == 41
    assert len(found[3].source_tokens) == 41


class Letters(WordVocabulary):
    """Spells every character with 20 ids."""

    def encode(self, lines):
        return [[4] * (20 * len(line.strip())) for line in lines]


def test_what_cannot_be_split_is_cut_and_counted_in_one_warning(caplog):
    cutting = dataclasses.replace(
        translator(), vocabularies=VocabularyPair(Letters(), WordVocabulary())
    )
    with caplog.at_level(logging.WARNING, logger="absl"):
        found = cutting.translations(["xy", "", "z"])
    assert [translation.status for translation in found] == [
        "truncated",
        "empty",
        "truncated",
    ]
    assert [translation.num_parts for translation in found] == [2, 0, 1]
    (record,) = caplog.records
    assert record.getMessage().startswith(
        "Truncated 2 of 3 lines with characters of more than"
    )
    assert "config.decoding.max_source_length" in record.getMessage()


def test_nothing_is_warned_of_when_nothing_was_cut(caplog):
    with caplog.at_level(logging.WARNING, logger="absl"):
        translator().translate([*sentences(3), "der " * 40])
    assert not caplog.records


def test_the_best_come_first_and_all_of_them_are_different():
    found = translator(recurrent(11, V, eos_bias=1.0), n_best=3).translations(
        sentences(7)
    )
    for translation in found:
        scores = [hypothesis.score for hypothesis in translation.hypotheses]
        assert len(scores) == 3
        assert scores == sorted(scores, reverse=True)
        assert len({hypothesis.tokens for hypothesis in translation.hypotheses}) == 3


def test_a_translation_begins_with_its_prefix():
    model = recurrent(11, V, eos_bias=1.0)
    lines, prefixes = sentences(3), ["der Hund", "", "rot rot rot rot"]
    forced = translator(model).translations(lines, prefixes=prefixes)
    free = translator(model).translations(lines)
    for translation, prefix in zip(forced, prefixes, strict=True):
        assert translation.text.startswith(prefix)
    assert forced[1] == free[1]
    with pytest.raises(UserError, match="there are 3 lines and 1 prefixes"):
        translator(model).translations(lines, prefixes=["der"])
    too_long = ["", "der " * 40, "rot"]
    message = "Line 9: its prefix must be shorter than the longest translation allowed"
    with pytest.raises(DataError, match=message):
        translator(model).translations(lines, first=7, prefixes=too_long)


def test_prefixes_of_any_length_need_one_program_a_shape_of_the_source():
    def decode(prefix):
        model = Counted(*jax.tree.leaves(recurrent(0, V, eos_bias=-50.0)))
        lines = ["rot " * 15] * 9
        return translator(model).translations(lines, prefixes=[prefix, *[""] * 8])

    decode("der")
    first = len(Counted.times)
    for words in (2, 5, 9, 16):
        (found, *_) = decode("der " * words)
        assert found.text.startswith(("der " * words).strip())
    assert len(Counted.times) == first


def test_the_best_of_a_split_line_come_first_too():
    model, lines = recurrent(11, V, eos_bias=1.0), ["und rot " * 30, *sentences(5)]
    for translation in translator(model, n_best=3).translations(lines):
        ranks = [(not h.ended, -h.score) for h in translation.hypotheses]
        assert ranks == sorted(ranks)


def test_the_samples_of_a_line_depend_on_its_number_alone():
    model = recurrent(11, V, eos_bias=1.0)
    drawing = translator(model, sample=True, n_best=2, seed=5)
    lines = sentences(9)

    def draw(drawing, lines, first=0):
        found = drawing.translations(lines, first=first)
        return [[h.text for h in translation.hypotheses] for translation in found]

    drawn = draw(drawing, lines)
    assert draw(drawing, lines[4:], first=4) == drawn[4:]
    assert draw(drawing, lines[4:]) != drawn[4:]
    assert draw(translator(model, sample=True, n_best=2, seed=6), lines) != drawn
    assert len({text for texts in drawn for text in texts}) > 9


def test_a_prefix_must_be_shorter_than_the_ratio_allows():
    short = translator(max_length_ratio=1.0)
    assert short.translations(["der Hund"], prefixes=["rot und"])
    with pytest.raises(DataError, match=r"longest translation allowed, 3 tokens"):
        short.translations(["der Hund"], prefixes=["rot und nicht"])


def test_the_keys_of_other_toolkits_reach_the_search():
    line = "der Hund heute"
    assert translator(max_length_ratio=0.5).translations([line])[0].num_tokens == 2
    assert translator().translate(["Maus"]) == ["?"]
    assert translator(allow_unk=False).translate(["Maus"]) != ["?"]
    power = {"length_normalization": "power", "length_penalty": 1.0}
    model = recurrent(0, V)
    for rule in ("fixed", "shrinking"):
        (found,) = translator(model, beam_rule=rule, **power).translations([line])
        mean = found.log_probability / found.num_tokens
        assert found.score == pytest.approx(mean, rel=1e-6)
