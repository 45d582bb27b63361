"""Byte-pair encoding by learned merges, beside the definition of the paper's [31].

Seen to fail: where a pair is merged once in a word only, where the last of two equal
merges counts, and without the mark of the end of a word.
"""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_jax.data.vocabulary.byte_pairs import BytePairEncoder, join_pieces, read_merges
from t2t_jax.errors import DataError


def test_pieces_of_long_words_are_not_kept():
    # Seen to fail: 7 MB for each word of 100,000 letters.
    encoder = BytePairEncoder([("l", "o"), ("lo", "lo")])
    before = encoder._merge_once.cache_info()
    assert encoder.split("lo" * 40)[0] == "lolo@@"
    assert encoder._merge_once.cache_info() == before


def test_files_of_codes_with_a_version_or_fastbpes_with_counts_are_read():
    merges = [("l", "o"), ("lo", "w</w>"), ("1", "2")]
    text = "#version: 0.2\nl o\nlo w</w>\r\n1 2\n"
    assert read_merges(text, name="codes") == merges
    text = "l o 1203\nlo w</w> 77\r\n1 2 3\n"
    assert read_merges(text, name="codes") == merges


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("l o\n", "codes does not begin with '#version: 0.2'"),
        ("#version: 0.2\nl o\nl o w\n", "codes, line 3: 'l o w' is not two pieces"),
        ("l o 3\nl o\n", "codes, line 2: 'l o' is not two pieces"),
    ],
)
def test_another_file_is_refused(text, message):
    with pytest.raises(DataError, match=message):
        read_merges(text, name="codes")


@pytest.mark.parametrize(
    ("merges", "text", "pieces"),
    [
        ([], "low", "l@@ o@@ w"),
        ([], "", ""),
        ([], " a  bc ", "a b@@ c"),
        ([("a", "b")], "ababa", "ab@@ ab@@ a"),
        ([("a", "b</w>")], "abab", "a@@ b@@ ab"),
        ([("a", "a")], "aaaaa", "aa@@ aa@@ a"),
        ([("b", "c"), ("a", "b")], "abcd", "a@@ bc@@ d"),
        ([("a", "b"), ("b", "c"), ("b", "c")], "abcd", "ab@@ c@@ d"),
        ([("b", "c"), ("a", "b"), ("b", "c")], "abcd", "a@@ bc@@ d"),
    ],
)
def test_words_are_split(merges, text, pieces):
    assert BytePairEncoder(merges).split(text) == pieces.split()


@given(st.lists(st.text("abü,.", min_size=1)))
def test_split_words_are_joined_again(words):
    encoder = BytePairEncoder([("a", "b"), ("ab", "ü</w>")])
    assert join_pieces(encoder.split(" ".join(words))) == " ".join(words)


def split_simply(merges, word):
    """Merges the pair of lowest rank everywhere, one pass over the word each."""
    ranks = {pair: rank for rank, pair in reversed([*enumerate(merges)])}
    pieces = [*word[:-1], word[-1] + "</w>"]
    while ranked := [pair for pair in pairwise(pieces) if pair in ranks]:
        lowest = min(ranked, key=ranks.__getitem__)
        merged = []
        for piece in pieces:
            if merged and (merged[-1], piece) == lowest:
                merged[-1] += piece
            else:
                merged.append(piece)
        pieces = merged
    continued = [f"{piece}@@" for piece in pieces[:-1]]
    return [*continued, pieces[-1].removesuffix("</w>")]


PIECES = st.text("ab", min_size=1, max_size=3)


@given(
    st.lists(st.tuples(PIECES, PIECES | PIECES.map("{}</w>".format)), max_size=12),
    st.text("ab", min_size=1, max_size=40),
)
def test_words_are_split_as_by_repeated_passes(merges, word):
    assert BytePairEncoder(merges).split(word) == split_simply(merges, word)


class CountedRanks(dict):
    """Ranks that count how often they are looked up."""

    lookups = 0

    def get(self, pair):
        self.lookups += 1
        return super().get(pair)


def test_a_long_word_takes_steps_in_proportion_to_its_length():
    letters = [chr(0x4E00 + number) for number in range(4_000)]
    merges = [*zip(letters[::2], letters[1::2], strict=True)]
    encoder = BytePairEncoder(merges)
    ranks = encoder._ranks = CountedRanks(encoder._ranks)
    assert len(encoder.split("".join(letters) + "a")) == 2_001
    assert 4_000 <= ranks.lookups < 5 * 4_000
