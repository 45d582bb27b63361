import re

import pytest

from t2t_jax.data.config import DataConfig
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.report.statistics import (
    describe_data,
    drop_warnings,
    min_batches,
)
from t2t_jax.data.token_cache.token_cache import build_or_open
from t2t_jax.data.vocabulary.pair import VocabularyPair
from tests.data.conftest import ENGLISH, GERMAN, sentences

CONFIG = DataConfig(tokens_per_batch=101, row_length=61, max_length=61)


@pytest.fixture
def told(cache, vocabularies):
    leaks = {"tsv:a": {"pairs": 1, "source": 0, "target": 0, "both": 0}}
    return describe_data(
        vocabularies, config=CONFIG, train=cache, dev=cache, leaks=leaks
    )


def test_the_data_are_described_for_the_record(told, cache, vocabulary):
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
    assert told["leaks"]["tsv:a"]["pairs"] == 1


def test_the_parts_of_a_mixture_are_described_with_their_weights(
    vocabularies, vocabulary, tmp_path
):
    for name, words in (("en", ENGLISH), ("de", GERMAN)):
        lines = sentences(words, 23, seed=5)
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    spec = f"text:{tmp_path}/en,{tmp_path}/de"
    corpus = open_corpus(f"{spec}[:7]++2.5*{spec}[7:]")
    config = DataConfig(
        tokens_per_batch=64, row_length=61, max_length=61, cache_dir=str(tmp_path / "c")
    )
    own = VocabularyPair(vocabulary, type(vocabulary)(vocabulary.model))
    cache = build_or_open(corpus, own, config=config)
    told = describe_data(
        own,
        config=config,
        train=cache,
        dev=cache,
        leaks={},
    )
    assert {"source_vocabulary", "target_vocabulary"} < set(told)
    first, second = told["train"]["parts"]
    assert (first["weight"], second["weight"]) == (1.0, 2.5)
    assert (first["counts"]["kept"], second["counts"]["kept"]) == (7, 16)
    most = max(
        first["tokens"][side] + 2.5 * second["tokens"][side]
        for side in ("source", "target")
    )
    assert min_batches(cache, config) == -(-most // 64)


@pytest.mark.parametrize(
    ("target", "warned"),
    [
        (["", " ", "der Hund " * 30, "der", "ein", "der", "ein"], []),
        (["", "der Hund " * 30, "der"] * 2 + [""], [r"5 .* 7 .* \(71%\).* 3 .*files"]),
        (
            ["der"] + 6 * ["der Hund " * 30],
            [r"6 of the 7 .*, 6 .* config\.data\.max_le"],
        ),
    ],
)
def test_a_corpus_of_which_over_half_is_dropped_is_warned_of(
    text_corpus, vocabularies, tmp_path, target, warned
):
    config = DataConfig(max_length=20, cache_dir=str(tmp_path))
    corpus = text_corpus(["cat"] * 7, target)
    found = drop_warnings(build_or_open(corpus, vocabularies, config=config))
    assert len(found) == len(warned)
    assert all(map(re.search, warned, found))
