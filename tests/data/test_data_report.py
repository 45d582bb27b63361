import numpy as np
import pytest

from t2t_jax.data.config import DataConfig
from t2t_jax.data.corpora import open_corpus
from t2t_jax.data.data_report import (
    describe_data,
    histogram,
    least_batches,
    report_text,
    summary,
)
from t2t_jax.data.leaks import find_leaks
from t2t_jax.data.token_cache import build_or_open
from t2t_jax.data.vocabularies import Vocabularies
from tests.data.conftest import ENGLISH, GERMAN, sentences

CONFIG = DataConfig(tokens_per_batch=101, row_length=61, max_length=61)


@pytest.fixture
def told(cache, vocabularies):
    leaks = find_leaks(cache, [("nowhere", "nirgends")])
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
    assert told["leaks"]["both"] == 0


def test_a_histogram_counts_every_sentence_once(told, cache):
    bins = told["train"]["length_histogram"]
    edges = np.arange(1, len(bins["target"]) * bins["width"] + 2, bins["width"])
    expected = np.histogram(cache.target_lengths, edges)[0]
    assert bins["target"] == expected.tolist()
    assert sum(bins["source"]) == cache.num_pairs
    assert len(bins["source"]) <= 16


@pytest.mark.parametrize("longest", [1, 15, 16, 17, 256, 1000])
def test_there_are_never_more_than_sixteen_bins(longest):
    bins = histogram({"source": [0] * longest + [1], "target": [0, 3]})
    assert len(bins["source"]) == len(bins["target"]) <= 16
    assert sum(bins["source"]) == 1
    assert bins["target"][0] == 3


def test_the_page_tells_what_people_ask(told, cache):
    page = report_text(told)
    for words in ("97 subwords", "211 pairs read", "mean length", "at least"):
        assert words in page
    assert f"{len(cache.source.tokens):,}" in page
    assert "No development sentence is in the training text." in page
    assert max(map(len, page.splitlines())) < 200


def test_the_page_quotes_what_was_dropped(text_corpus, vocabularies, tmp_path):
    corpus = text_corpus(["a", "", "the cat"], ["ein", "leer", "Kater"])
    config = DataConfig(max_length=61, cache_dir=str(tmp_path / "caches"))
    cache = build_or_open(corpus, vocabularies, config=config)
    leaks = find_leaks(cache, [("the cat", "Kater")])
    told = describe_data(
        vocabularies, config=config, train=cache, dev=cache, leaks=leaks
    )
    page = report_text(told)
    assert "1 with an empty side" in page
    assert "line 2: ''" in page
    assert "'leer'" in page
    assert "of 1 development pairs 1 are in the training text" in page
    assert "line 1, training line 3" in page
    assert "3 pairs read, 2 kept, 1 empty, 0 longer than 61 subwords" in summary(cache)


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
    own = Vocabularies(vocabulary, type(vocabulary)(vocabulary.model))
    cache = build_or_open(corpus, own, config=config)
    told = describe_data(
        own,
        config=config,
        train=cache,
        dev=cache,
        leaks=find_leaks(cache, [("a", "b")]),
    )
    assert {"source_vocabulary", "target_vocabulary"} < set(told)
    first, second = told["train"]["parts"]
    assert (first["weight"], second["weight"]) == (1.0, 2.5)
    assert (first["counts"]["kept"], second["counts"]["kept"]) == (7, 16)
    most = max(
        first["tokens"][side] + 2.5 * second["tokens"][side]
        for side in ("source", "target")
    )
    assert least_batches(cache, config) == -(-most // 64)
    assert "weight 2.5" in report_text(told)
