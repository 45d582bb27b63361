import dataclasses
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from t2t_jax.data.token_cache.known_words import KnownWords, distinct_hashes
from t2t_jax.decoding.text import translator as translator_module
from t2t_jax.decoding.text.translation import EMPTY_TRANSLATION
from t2t_jax.errors import DataError
from tests.decoding.models import Recurrent, recurrent
from tests.decoding.words import (
    WORDS,
    Counted,
    V,
    WordVocabulary,
    sentences,
    translator,
)


def test_every_line_is_translated_in_its_place():
    lines = sentences(23)
    assert translator().translate(lines) == lines


def test_the_eos_is_no_text_and_the_count_includes_it():
    (found,) = translator().translations(["der Hund schläft"])
    assert (found.text, found.num_tokens) == ("der Hund schläft", 4)
    assert not found.truncated
    assert not found.source_cut
    expected = found.log_probability / ((5 + 4) / 6) ** 0.6
    assert math.isclose(found.score, expected, rel_tol=1e-5)


class Never(Recurrent):
    """Must not be asked."""

    def encode(self, source_BxS):
        raise AssertionError("there is nothing to decode")


@pytest.mark.parametrize("lines", [[], [""], ["", " \t ", "\u3000", "\u200b"]])
def test_lines_without_words_are_empty_and_not_decoded(lines):
    never = Never(*jax.tree.leaves(recurrent(0, V)))
    assert translator(never).translations(lines) == [EMPTY_TRANSLATION] * len(lines)


def test_a_line_of_words_never_seen_is_unfamiliar():
    known = KnownWords(distinct_hashes(["Der Hund und die Katze."]))
    knowing = dataclasses.replace(translator(), known_words=known)
    lines = ["der HUND rot", "der Hund schläft nicht", "42!", ""]
    found = knowing.translations(lines)
    assert [one.unseen_words for one in found] == [1 / 3, 1 / 2, 0.0, 0.0]
    statuses = ["ok", "unfamiliar", "ok", "empty"]
    assert [one.status for one in found] == statuses
    # A model that does not know its training text says nothing of it.
    assert [one.unseen_words for one in translator().translations(lines)] == [None] * 4
    assert [one.text for one in found] == translator().translate(lines)


def test_strings_that_were_no_utf_8_are_marked():
    found = translator().translations(["der Hund", "der \udcff", "\0", "rot"])
    assert [one.invalid_utf8 for one in found] == [False, True, True, False]
    begun = translator().translations(["rot", "rot"], prefixes=["die", "\udcfc"])
    assert [one.status for one in begun] == ["ok", "invalid_utf8"]


ODD = st.sampled_from(
    ["", " ", "\t", "🙂", "der 🙂", "\u2028", "\x85", "a\u200bb", "\x0b"]
)
ANY_LINE = st.text(st.characters(exclude_characters="\n"), max_size=12)
KNOWN = st.lists(st.sampled_from(WORDS), max_size=20).map(" ".join)


@settings(max_examples=40, deadline=None)
@given(st.lists(ODD | ANY_LINE | KNOWN, max_size=9))
def test_n_lines_in_give_n_lines_out_whatever_they_are(lines):
    found = translator().translations(lines)
    vocabulary = WordVocabulary()
    expected = vocabulary.decode(vocabulary.encode(lines))
    assert [translation.text for translation in found] == expected
    assert not any("\n" in translation.text for translation in found)


def test_the_lines_around_a_line_change_nothing():
    model = recurrent(11, V, eos_bias=1.0)
    lines = sentences(19)
    together = translator(model).translations(lines)
    assert len({translation.text for translation in together}) > 9
    order = np.random.default_rng(3).permutation(19)
    shuffled = translator(model).translations([lines[number] for number in order])
    alone = [translator(model).translations([line])[0] for line in lines]
    for number, found in enumerate(together):
        for other in (shuffled[list(order).index(number)], alone[number]):
            assert other.text == found.text
            # float32 in batches of other shapes
            assert math.isclose(other.score, found.score, rel_tol=1e-5)


def test_the_same_lines_give_the_same_bits():
    model = recurrent(11, V, eos_bias=1.0)
    lines = sentences(7)
    assert translator(model).translations(lines) == translator(model).translations(
        lines
    )


def test_every_line_comes_once_as_it_is_done():
    lines = ["", *sentences(23), " "]
    numbers = [number for number, _ in translator().iter_translations(lines)]
    assert sorted(numbers) == list(range(25))
    assert numbers[:2] == [0, 24]
    assert len(lines[numbers[2]].split()) == max(len(line.split()) for line in lines)


def test_an_output_that_does_not_end_is_marked_as_truncated():
    endless = recurrent(0, V, eos_bias=-50.0)
    found = translator(endless).translations(["der Hund", "", "das Haus schläft nicht"])
    assert [translation.truncated for translation in found] == [True, False, True]
    assert [translation.num_tokens for translation in found] == [7, 0, 9]
    assert [len(translation.text.split()) for translation in found] == [7, 0, 9]


def test_batches_and_new_weights_compile_nothing_new():
    def decode(seed, lines):
        model = Counted(*jax.tree.leaves(recurrent(seed, V, eos_bias=-50.0)))
        return translator(model).translate(lines)

    decode(0, sentences(4))
    first = len(Counted.times)
    assert first > 0
    for seed in range(1, 4):
        decode(seed, sentences(31, seed))  # as many batches as it takes, 4 rows each
    assert len(Counted.times) == first


def test_a_line_that_comes_alone_finds_its_programs_made():
    class Cold(Counted):
        """Has programs of its own."""

    model = Cold(*jax.tree.leaves(recurrent(0, V)))
    warm = translator(model, max_source_length=64, tokens_per_batch=84)
    asked = []
    warm.warm_up(lambda: asked.append(None) or len(asked) > 2)
    assert len(asked) == 3  # of lengths 16 and 32, not of 64
    before = len(Counted.times)
    warm.translate(["der Hund"])
    warm.translate(["der " * 20])
    assert len(Counted.times) == before > 0
    warm.translate(["der " * 40])
    assert len(Counted.times) > before


def test_what_does_not_fit_when_warming_up_is_told_later(monkeypatch):
    def fail(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr(translator_module, "chunked_search", fail)
    translator().warm_up()


def test_scores_that_are_no_numbers_are_an_error_that_names_the_line():
    model = recurrent(0, V)
    damaged = model.replace(out=model.out * jnp.nan)
    message = re.escape("The score of line 2 must be a finite number but is nan")
    with pytest.raises(DataError, match=message):
        translator(damaged).translate(["", "der Hund"])
    with pytest.raises(DataError, match="The score of line 9 must be a finite"):
        translator(damaged).translations(["", "der Hund"], first=7)


def test_half_a_character_is_one_that_is_not_known():
    lines = ["der \ud800", "\udc00 Hund", "\ud83d\ude42"]
    assert translator().translate(lines) == ["der ?", "? Hund", "🙂"]
