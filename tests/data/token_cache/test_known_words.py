"""Which words are unseen, in any script.

Seen to fail: with Thai, Chinese or Japanese taken as words between spaces, without the
folding of case or the composition of accents, and with digits taken for words.
"""

import pickle

import pytest

from t2t_jax.data.token_cache import known_words
from t2t_jax.data.token_cache.known_words import KnownWords, distinct_hashes, words_of


def shares(training, lines):
    return KnownWords(distinct_hashes(training)).unseen_shares(lines)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("42 + 3.14 = … !?", []),
        ("snake_case x1y", ["snake", "case", "x", "y"]),
        ("Straße STRASSE", ["strasse", "strasse"]),
        ("na\u00efve nai\u0308ve ＡＢ", ["na\u00efve", "na\u00efve", "ab"]),
        ("हिन्दी भाषा।", ["हिन्दी", "भाषा"]),  # vowel signs are inside words
        ("١٢ كِتَاب", ["كِتَاب"]),
        ("猫は3匹。", ["猫", "は", "匹"]),
        ("แมวดำ", ["แ", "ม", "ว", "ด", "า"]),  # NFKC splits the last sign
        ("𠮷野家GPU", ["𠮷", "野", "家", "gpu"]),
        ("a\0b\udcff c", ["a", "b", "c"]),
    ],
)
def test_words_are_runs_of_letters_or_letters_where_no_spaces_are(text, words):
    assert words_of(text) == words


def test_shares_count_words_as_often_as_they_come():
    found = shares(
        ["The OLD man"], ["the man", "the dog dog", "a dog", "7 !", "an old"]
    )
    assert found == [0.0, 2 / 3, 1.0, 0.0, 0.5]
    assert shares(["the man"], ["the man dog"]) == [1 / 3]
    assert shares([], ["the"]) == [1.0]


@pytest.mark.parametrize(
    "damage",
    [
        lambda whole: whole[:-3],
        lambda whole: b"nothing of NumPy's",
        lambda whole: b"\x93NUMPY\x01\x00\x88\x13" + b"{" * 5_000,
        lambda whole: whole.replace(b"<u8", b"|O8"),
        lambda whole: whole.replace(b"<u8", b"<f8"),
        lambda whole: whole.replace(b"(3,)", b"(9999999999999,)"),
        lambda whole: pickle.dumps([1]),
    ],
)
def test_what_is_written_is_read_again_and_damage_is_as_if_absent(tmp_path, damage):
    known = KnownWords(distinct_hashes(["the old man"]))
    assert KnownWords.load(tmp_path) is None
    path = tmp_path / known_words.FILE
    path.write_bytes(known.to_bytes())
    assert KnownWords.load(tmp_path).unseen_shares(["old dog"]) == [0.5]
    path.write_bytes(damage(known.to_bytes()))
    assert KnownWords.load(tmp_path) is None
