import numpy as np
import pytest

from t2t_jax.data import encoding
from t2t_jax.data.config import VocabularyConfig
from t2t_jax.data.token_cache import build_or_open
from t2t_jax.data.vocabularies import Vocabularies
from t2t_jax.data.vocabulary import EOS, UNK, Vocabulary
from t2t_jax.errors import DataError


@pytest.fixture
def encode(text_corpus, vocabularies, tmp_path):
    def build(source, target, max_length=61):
        corpus = text_corpus(source, target)
        return build_or_open(
            corpus, vocabularies, max_length=max_length, cache_dir=tmp_path / "caches"
        )

    return build


def sentence(side, pair):
    return side.tokens[side.offsets[pair] : side.offsets[pair + 1]].tolist()


def test_the_files_hold_the_encoded_sentences_with_eos(encode, vocabulary, monkeypatch):
    monkeypatch.setattr(encoding, "_CHUNK_PAIRS", 2)
    source = ["the cat", "a dog sees", "old", "a", "the house tree"]
    target = ["der Kater", "Hund", "klein alt", "ein", "Haus"]
    cache = encode(source, target)
    assert cache.num_pairs == 5
    for side, lines in ((cache.source, source), (cache.target, target)):
        for pair, ids in enumerate(vocabulary.encode(lines)):
            assert sentence(side, pair) == [*ids, EOS]
    lengths = [len(ids) + 1 for ids in vocabulary.encode(target)]
    assert cache.target_lengths.tolist() == lengths
    assert cache.source.tokens.dtype == np.uint16


def test_dropped_pairs_are_counted_by_reason_and_keep_their_line(encode):
    long = "the cat sees " * 30
    cache = encode(
        ["a", "", "a cat", long, "old", "a", "\u200b"],
        ["ein", "der", " \t\u2003", "der", long, "alt", "der"],
    )
    counts = {"read": 7, "kept": 2, "empty": 3, "too_long": 2}
    assert cache.counts == counts
    assert cache.line_numbers.tolist() == [1, 6]


def test_the_maximum_length_counts_eos(encode, vocabulary):
    (ids,) = vocabulary.encode(["the cat sees"])
    shorter = encode(["a", "the cat sees"], ["ein", "der"], len(ids))
    assert shorter.counts["too_long"] == 1
    exact = encode(["a", "the cat sees"], ["ein", "der"], len(ids) + 1)
    assert exact.source_lengths.max() == len(ids) + 1


def test_a_line_of_a_megabyte_is_counted_and_never_encoded(
    encode, vocabulary, monkeypatch
):
    longest = 0
    plain = type(vocabulary).encode

    def watched(self, lines):
        nonlocal longest
        longest = max(longest, *map(len, lines))
        return plain(self, lines)

    monkeypatch.setattr(type(vocabulary), "encode", watched)
    cache = encode(["a", "x" * 1_000_000, "old"], ["ein", "der", "y " * 500_000])
    assert cache.counts == {"read": 3, "kept": 1, "empty": 0, "too_long": 2}
    assert longest < 10


def test_unknown_pieces_are_counted_on_each_side(encode, vocabulary):
    cache = encode(["the Ω cat", "a Ω Ω"], ["der", "ein Ψ"])
    assert cache.meta["unknown"] == {"source": 3, "target": 1}
    assert np.count_nonzero(cache.source.tokens == UNK) == 3


def test_a_corpus_of_which_nothing_is_left_is_told(encode):
    with pytest.raises(
        DataError, match="no pair is left of 2: 1 have an empty side, 1"
    ):
        encode(["", "the cat sees"], ["ein", "der"], max_length=2)


def test_large_vocabularies_take_four_bytes(encode, monkeypatch, vocabulary):
    monkeypatch.setattr(vocabulary, "size", 65_537)
    assert encode(["a"], ["ein"]).source.tokens.dtype == np.uint32


def test_each_side_is_cut_by_its_own_vocabulary(text_corpus, vocabulary, tmp_path):
    english, german = ["the cat sees", "a dog"], ["der Kater sieht", "ein Hund"]
    config = VocabularyConfig(size=29, character_coverage=1.0)
    own = Vocabulary.train(english, config=config, seed=0)
    cache = build_or_open(
        text_corpus(english, german),
        Vocabularies(own, vocabulary),
        max_length=61,
        cache_dir=tmp_path,
    )
    (source, _), (target, _) = own.encode(english), vocabulary.encode(german)
    assert sentence(cache.source, 0) == [*source, EOS]
    assert sentence(cache.target, 0) == [*target, EOS]
    assert source != vocabulary.encode(english)[0]
