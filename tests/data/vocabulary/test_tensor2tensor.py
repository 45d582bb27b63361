"""Subwords of tensor2tensor.

Seen to fail: with the shortest subword first, without the escapes, and where a single
space at the beginning or the end is dropped.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_jax.data.vocabulary.tensor2tensor import SubwordEncoder, read_subwords
from t2t_jax.errors import DataError

ESCAPES = [*"\\u;0123456789"]
SUBWORDS = ["<pad>", "<EOS>", *"_aestlow", "lo", "low_", "est_", *ESCAPES]


@pytest.fixture(scope="module")
def encoder():
    return SubwordEncoder(SUBWORDS, num_reserved=2)


def subwords_of(encoder, text):
    return [SUBWORDS[number] for number in encoder.encode(text)]


@pytest.mark.parametrize(
    ("text", "subwords"),
    [
        ("", []),
        ("low", ["low_"]),
        ("lowest", ["lo", "w", "est_"]),
        ("a_a", ["a", "_", "\\", "u", "_", "a", "_"]),
        ("a\\", ["a", "_", "\\", "\\", "_"]),
        ("a\n", ["a", "_", "\\", "1", "0", ";", "_"]),
        ("<pad>", [*"\\60;", "_", *"\\112;", "a", *"\\100;", "_", *"\\62;", "_"]),
    ],
)
def test_a_text_becomes_subwords(encoder, text, subwords):
    assert subwords_of(encoder, text) == subwords
    assert encoder.decode(encoder.encode(text)) == text


@given(st.text(max_size=30))
def test_every_text_comes_back_but_for_spaces_between_words(encoder, text):
    """A single space between a word and another character is part of neither."""
    found = encoder.decode(encoder.encode(text))
    assert found.replace(" ", "") == text.replace(" ", "")
    if "  " not in text and text == text.strip():
        assert encoder.encode(found) == encoder.encode(text)


def test_what_cannot_be_a_character_is_a_mark(encoder):
    ids = [SUBWORDS.index(c) for c in ("\\", *"9" * 9, ";", "_")]
    assert encoder.decode(ids) == "\u3013"


def test_a_long_token_is_cut_in_one_pass_and_not_kept(encoder):
    # Seen to fail: 11 s for 100,000 letters, and 13 MB for each such token.
    before = encoder._cut_once.cache_info()
    assert subwords_of(encoder, "lowest" * 20_000)[:2] == ["lo", "w"]
    assert encoder._cut_once.cache_info() == before


def test_a_file_is_read():
    found = read_subwords("'<pad>'\n'a b_'\n\"it's_\"\n", name="v")
    assert found == ["<pad>", "a b_", "it's_"]


@pytest.mark.parametrize("text", ["", "a_\n", "'a\n", "'a'\n\n'b'\n"])
def test_another_file_is_refused(text):
    with pytest.raises(DataError, match=r"v, line \d: .* is not a subword in quotes"):
        read_subwords(text, name="v")


@pytest.mark.parametrize(
    ("subwords", "missing"),
    [(["_", "a_"], "'0', '1', '2'"), ([*"_a", "abc", *ESCAPES], "'b', 'c'")],
)
def test_a_vocabulary_that_cannot_write_every_text_is_refused(subwords, missing):
    with pytest.raises(DataError, match=f"as a subword, and has no {missing}"):
        SubwordEncoder(["<pad>", "<EOS>", *subwords], num_reserved=2)
