import re

import numpy as np
import pytest

from t2t_jax.data.config import DataConfig
from t2t_jax.data.report.statistics import describe_data, drop_warnings, min_batches
from t2t_jax.data.vocabulary.pair import VocabularyPair
from tests.data.conftest import ENGLISH, GERMAN, sentences

CONFIG = DataConfig(tokens_per_batch=101, row_length=61, max_length=61)


def test_the_data_are_described_for_the_record(cache, vocabularies, vocabulary):
    how = {"config": CONFIG, "train": cache, "dev": cache, "leaks": {}}
    told = describe_data(vocabularies, **how)
    assert told["vocabulary"] == {"size": 97, "fingerprint": vocabulary.fingerprint}
    assert told["dev"].items() <= told["train"].items()
    train = told["train"]
    assert train["spec"].startswith("text:")
    assert train["counts"]["read"] == 211
    mean = cache.target_lengths.mean()
    assert train["mean_length"]["target"] == pytest.approx(mean, abs=0.005)
    assert train["tokens"]["source"] == len(cache.source.tokens)
    assert train["unknown_rate"] == {"source": 0, "target": 0}
    assert "parts" not in train


def test_the_parts_of_a_mixture_are_described_with_their_weights(
    vocabulary, text_corpus, encode
):
    spec = text_corpus(*(sentences(of, 23, seed=5) for of in (ENGLISH, GERMAN))).spec
    own = VocabularyPair(vocabulary, type(vocabulary)(vocabulary.model))
    cache = encode(f"{spec}[:7]++2.5*{spec}[7:]", own)
    told = describe_data(own, config=CONFIG, train=cache, dev=cache, leaks={})
    assert {"source_vocabulary", "target_vocabulary"} < set(told)
    first, second = told["train"]["parts"]
    assert (first["weight"], second["weight"]) == (1.0, 2.5)
    assert (first["counts"]["kept"], second["counts"]["kept"]) == (7, 16)
    one, two = (np.array([*part["tokens"].values()]) for part in (first, second))
    assert min_batches(cache, CONFIG) == np.ceil(max(one + 2.5 * two) / 101)


@pytest.mark.parametrize(
    ("target", "warned"),
    [
        (["", " ", "der Hund " * 30, "der", "ein", "der", "ein"], []),
        (["", "der Hund " * 30, "der"] * 2 + [""], [r"5 .* 7 .* \(71%\).* 3 .*files"]),
        (["der"] + 6 * ["der Hund " * 30], [r"6 of the 7 .*, 6 .* config\.data\.max_"]),
    ],
)
def test_a_corpus_of_which_over_half_is_dropped_is_warned_of(
    text_corpus, encode, target, warned
):
    cache = encode(text_corpus(["cat"] * 7, target), max_length=20)
    found = drop_warnings(cache)
    assert len(found) == len(warned)
    assert all(map(re.search, warned, found))
