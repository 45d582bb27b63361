import numpy as np
import pytest

from t2t_jax.data.config import VocabularyConfig
from t2t_jax.data.report.statistics import drop_warnings, summary_line
from t2t_jax.data.token_cache import builder
from t2t_jax.data.token_cache.encoder import PairEncoder
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.types import EOS, UNK
from tests.data.batching.test_pipeline import pairs_of


@pytest.fixture
def encode(encode, text_corpus):
    def encode_sides(source, target, *pair, **keys):
        return encode(text_corpus(source, target), *pair, **keys)

    return encode_sides


def test_the_files_hold_the_encoded_sentences_with_eos(encode, vocabulary, monkeypatch):
    monkeypatch.setattr(builder, "CHUNK_PAIRS", 2)
    source = ["the cat", "a dog sees", "old", "a", "the house tree"]
    target = ["der Kater", "Hund", "klein alt", "ein", "Haus"]
    cache = encode(source, target)
    ids = [[(*ids, EOS) for ids in vocabulary.encode(x)] for x in (source, target)]
    assert list(pairs_of(cache)) == list(zip(*ids, strict=True))
    assert cache.lengths[1].tolist() == [len(one) for one in ids[1]]
    assert cache.source.tokens.dtype == np.uint16


def test_dropped_pairs_are_counted_by_reason_and_keep_their_line(encode):
    long = "the cat sees " * 30
    source = ["a", "", "a cat", long, "old", "a", "\u200b"]
    cache = encode(source, ["ein", "der", " \t\u2003", "der", long, "alt", "der"])
    dropped = {"empty": 3, "too_long": 2, "ratio": 0, "copies": 0, "duplicates": 0}
    assert cache.counts == {"read": 7, "kept": 2, **dropped}
    assert cache.line_numbers.tolist() == [1, 6]


def test_every_filter_drops_its_own(encode, monkeypatch):
    monkeypatch.setattr(builder, "CHUNK_PAIRS", 2)
    source = ["the cat", "the", "old", " old", "the cat ", "the cat"]
    long = "der Hund sieht Haus Baum der Hund"  # as many pieces as words, as "the" has
    target = ["der Hund", long, "old", "der Baum", "der Hund", "alt alt"]
    keys = {"max_length_ratio": 3.0, "drop_copies": True, "drop_duplicates": True}
    cache = encode(source, target, **keys)
    dropped = {"empty": 0, "too_long": 0, "ratio": 1, "copies": 1, "duplicates": 1}
    assert cache.counts == {"read": 6, "kept": 3, **dropped}
    assert cache.line_numbers.tolist() == [1, 4, 6]
    (again,) = cache.meta["examples"]["duplicates"]
    assert again == {"line": 5, "source": "the cat ", "target": "der Hund"}
    assert encode(source, target).num_pairs == 6


def test_a_filter_by_name_counts_and_has_examples_and_a_cache_of_its_own(encode):
    source = ["the cat", "a cat 7", "old", "a dog 5", "the dog 6", "a dog 8"]
    long = "der Hund " * 12
    target = ["der Hund", f"{long}8", "alt", "ein Hund", "der Hund 6", "alt"]
    plain, cache = encode(source, target), encode(source, target, filters="digits")
    assert plain.fingerprint != cache.fingerprint
    assert cache.counts == {**plain.counts, "kept": 3, "digits": 3}
    assert cache.line_numbers.tolist() == [1, 3, 5]
    examples = cache.meta["examples"]
    assert examples.keys() - plain.meta["examples"].keys() == {"digits"}
    assert [pair["line"] for pair in examples["digits"]] == [2, 4, 6]
    assert examples["digits"][0]["target"] == f"…{long[-40:]}8"
    assert summary_line(cache).endswith(", 3 by the filter digits")
    assert [*drop_warnings(cache)] == []


def test_the_maximum_length_counts_eos(encode, vocabulary):
    (ids,) = vocabulary.encode(["the cat sees"])
    both = (["a", "the cat sees"], ["ein", "der"])
    assert encode(*both, max_length=len(ids)).counts["too_long"] == 1
    assert encode(*both, max_length=len(ids) + 1).lengths[0].max() == len(ids) + 1


def test_a_line_of_a_megabyte_is_counted_and_never_encoded(encode, monkeypatch):
    longest = 0
    plain = PairEncoder.encode

    def watched(self, chunk):
        nonlocal longest
        longest = max(longest, *map(len, chunk.sources), *map(len, chunk.targets))
        return plain(self, chunk)

    monkeypatch.setattr(PairEncoder, "encode", watched)
    cache = encode(["a", "x" * 1_000_000, "old"], ["ein", "der", "y " * 500_000])
    assert cache.counts["too_long"] == 2
    assert cache.num_pairs == 1
    assert longest == 64 * 61 + 1  # no more of it is even held


def test_unknown_pieces_are_counted_on_each_side(encode):
    cache = encode(["the Ω cat", "a Ω Ω"], ["der", "ein Ψ"])
    assert cache.meta["unknown"] == {"source": 3, "target": 1}
    assert np.count_nonzero(cache.source.tokens == UNK) == 3


def test_each_side_is_cut_by_its_own_vocabulary(encode, vocabulary):
    english, german = ["the cat sees", "a dog"], ["der Kater sieht", "ein Hund"]
    own = Vocabulary.train(english, 29, config=VocabularyConfig(character_coverage=1.0))
    cache = encode(english, german, VocabularyPair(own, vocabulary))
    (source, _), (target, _) = own.encode(english), vocabulary.encode(german)
    assert next(pairs_of(cache)) == ((*source, EOS), (*target, EOS))
    assert source != vocabulary.encode(english)[0]
