import re
from types import SimpleNamespace

import numpy as np
import pytest

from t2t_jax.data.config import DataConfig
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.report.leakage import find_all_leaks
from t2t_jax.data.report.statistics import (
    describe_data,
    drop_warnings,
    min_batches,
    report_text,
)
from t2t_jax.data.token_cache.filters import REASONS
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
    mean = cache.lengths[1].mean()
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
    found = [*drop_warnings(encode(text_corpus(["cat"] * 7, target), max_length=20))]
    assert len(found) == len(warned)
    assert all(map(re.search, warned, found))


def test_of_reasons_that_drop_as_many_pairs_the_first_is_named():
    counts = {**dict.fromkeys(reversed(REASONS), 2), "read": 99, "kept": 1}
    cache = SimpleNamespace(meta={"parts": [{"spec": "tsv:a", "counts": counts}]})
    (warning,) = drop_warnings(cache)
    assert "2 with an empty side" in warning


@pytest.fixture
def page(vocabularies, encode):
    """Words the page of a corpus that is trained on, and of held-out ones."""

    def page(train: str, *held_out: str) -> str:
        cache = encode(train)
        leaks = find_all_leaks(cache, [open_corpus(spec) for spec in held_out])
        how = {"config": CONFIG, "train": cache, "dev": cache, "leaks": leaks}
        return report_text(describe_data(vocabularies, **how))

    return page


def test_the_page_has_all_sections(page, cache, text_corpus):
    clean = text_corpus(["nowhere"], ["nirgends"], suffix=".dev").spec
    told = page(cache.meta["spec"], clean)
    for words in ("97 subwords", "211 pairs read", "mean length", "at least"):
        assert words in told
    assert f"{len(cache.source.tokens):,}" in told
    assert f"Checked against the training text: {clean}" in told
    assert "None of its lines is in the training text." in told
    assert max(map(len, told.splitlines())) < 400


def test_a_line_of_the_corpus_is_quoted_as_it_is(page, text_corpus):
    line = "<script>alert('&')</script> \x1b[2J {{ 7 * 7 }}"
    told = page(text_corpus(["a", line], ["ein", ""]).spec)
    assert f"\n                  {line!r}\n                  ''\n" in told
    assert "\x1b" not in told
