"""Terms of lines, from text to their status."""

import pytest

from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.decoding.text.terms import TermEncoder, missing_terms
from t2t_jax.errors import DataError, UserError
from tests.decoding.models import recurrent
from tests.decoding.words import V, WordVocabulary, sentences, translator

MODEL = recurrent(3, V, eos_bias=1.0)


def test_the_translations_of_lines_contain_their_terms():
    lines = sentences(6)
    terms = [["Hund"], [], ["das Haus", "nicht"], ["die", "die"], [], ["heute", "rot"]]
    plain = translator(MODEL, max_extra_tokens=9).translations(lines)
    found = translator(MODEL, max_extra_tokens=9).translations(lines, terms=terms)
    for number, wanted in enumerate(terms):
        text = f" {found[number].text} "
        assert all(f" {term} " in text for term in wanted)
        assert found[number].unmet_terms == ()
        if not wanted:
            assert found[number].text == plain[number].text


def test_what_does_not_fit_or_is_not_said_is_reported():
    some = translator(MODEL, max_extra_tokens=0, max_source_length=5)
    lines = ["der", "der Hund geht", "", " ".join(["rot"] * 9)]
    terms = [["das Haus"], ["nicht", "das Haus schläft"], ["Katze"], ["heute"]]
    one, two, three, four = some.translations(lines, terms=terms)
    assert one.unmet_terms == ("das Haus",)
    assert two.unmet_terms == ("das Haus schläft",)
    assert "nicht" in two.text
    assert (three.unmet_terms, three.statuses) == (("Katze",), ("unmet_terms", "empty"))
    # Of a line that is split nothing says in which part a term belongs.
    assert four.num_parts > 1
    assert four.unmet_terms == ("heute",)
    assert four.statuses == ("unmet_terms", "no_eos", "chunked")


@pytest.mark.parametrize(
    ("terms", "error", "message"),
    [
        ([["Hund", " "]], DataError, "Line 8: a term is empty. Separate terms by"),
        ([["Zebra"]], DataError, "Line 8: the term 'Zebra' has characters"),
        ([[], []], UserError, "1 lines and 2 lists"),
        (["Hund"], TypeError, "a sequence of terms of a line"),
    ],
)
def test_terms_that_no_translation_can_contain_are_refused(terms, error, message):
    with pytest.raises(error, match=message):
        translator(MODEL).translations(["der"], terms=terms, first=7)
    if error is DataError:
        with pytest.raises(DataError, match=message):
            translator(MODEL).check_terms(terms, first=7)


def test_samples_have_no_terms():
    with pytest.raises(UserError, match=r"decoding\.sample=True"):
        translator(MODEL, sample=True).translations(["der"], terms=[["Hund"]])


def test_terms_are_words_of_a_subword_vocabulary():
    words = 9 * ["low lower lowest new newest wide widest 猫 と 犬 . ,"]
    subwords = Vocabulary.train(words, 60)
    rule = TermEncoder(subwords).constraint
    terms = [["low", "new lowest", "low.", "猫"]]
    ((low, phrase, end, cat),) = TermEncoder(subwords).encode(terms)
    assert low.text == "low"
    assert subwords.decode([phrase.tokens]) == ["new lowest"]
    assert (low.ends_word, phrase.ends_word, end.ends_word) == (True, True, False)
    for text, joins in (("lowest", True), ("low.", False), ("low new", False)):
        tokens = subwords.encode([text])[0]
        parts = subwords.pieces(tokens)
        glued = [bool(rule.joins_V[token]) for token in tokens[1:]]
        assert any(glued) == (joins and len(parts) > 1)
    # A script without spaces.
    assert subwords.pieces(cat.tokens) == ["猫"]
    assert not cat.ends_word
    assert not rule.joins_V[cat.tokens[0]]


def test_words_are_found_where_they_end():
    (hund,) = TermEncoder(WordVocabulary()).encode([["Hund"]])[0]
    for text, missing in (("Hund!", ()), ("Hunde", ("Hund",)), ("ein Hund", ())):
        assert missing_terms(text, [hund]) == missing
    people = hund._replace(text="\u4eba\u3005")  # before a letter of another script
    assert not missing_terms("\u4eba\u3005\u306f\u6b69\u304f", [people])
