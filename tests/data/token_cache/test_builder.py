import math
import statistics

import numpy as np
import pytest

from t2t_jax.data.config import VocabularyConfig
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.report.statistics import drop_warnings
from t2t_jax.data.token_cache import builder, shards, token_cache
from t2t_jax.data.token_cache.filters import LENGTHS_VERSION
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import ConfigError
from tests.data.batching.test_pipeline import pairs_of
from tests.data.conftest import ENGLISH, GERMAN, sentences


@pytest.fixture
def corpus(text_corpus):
    """Pairs of which every third is a duplicate of one before, and one is empty."""
    sides = sentences(ENGLISH, 60, seed=2), sentences(GERMAN, 60, seed=3)
    for side, missing in zip(sides, ("", "leer"), strict=True):
        for place in range(2, 60, 3):
            side[place] = side[place // 2]
        side[31] = missing
    return text_corpus(*sides)


def test_a_cache_is_the_same_whatever_its_shards_and_chunks(
    corpus, encode, tmp_path, monkeypatch
):
    found = []
    for shard, chunk in ((99, 99), (11, 4), (10, 5), (1, 1), (60, 7), (30, 30)):
        monkeypatch.setattr(shards, "SHARD_PAIRS", shard)
        monkeypatch.setattr(builder, "CHUNK_PAIRS", chunk)
        home, workers = tmp_path / f"{shard} {chunk}", 2 if shard == 1 else 1
        encode(corpus, drop_duplicates=True, workers=workers, cache_dir=str(home))
        (place,) = home.iterdir()
        found.append({path.name: path.read_bytes() for path in place.iterdir()})
    assert all(content == found[0] for content in found)


def test_parts_are_counted_apart_and_their_lines_too(text_corpus, encode, monkeypatch):
    monkeypatch.setattr(shards, "SHARD_PAIRS", 3)
    sides = ["a", "", "old", "cat", "dog"], ["ein", "x", "alt", "Kater", "Hund"]
    first = text_corpus(*sides).spec
    second = text_corpus(["a", "dog"], ["ein", "der"], suffix=".2").spec
    cache = encode(f"2.5*{first}++{second}", drop_duplicates=True)
    assert cache.part_pairs == (4, 1)
    assert cache.weights == (2.5, 1.0)
    assert cache.line_numbers.tolist() == [1, 3, 4, 5, 2]
    assert [part["counts"]["duplicates"] for part in cache.meta["parts"]] == [0, 1]
    assert [part["spec"] for part in cache.meta["parts"]] == [first, second]
    again = encode(f"{first}++3*{second}", drop_duplicates=True)
    assert again.weights == (1.0, 3.0)
    assert again.fingerprint == cache.fingerprint
    assert np.array_equal(again.hashes, cache.hashes)


def with_tags(lines, size):
    vocabulary = Vocabulary.train(lines, size, target_languages=["de", "en"])
    return VocabularyPair(vocabulary, vocabulary)


@pytest.mark.parametrize("tag", ["", "#<BT>"])
def test_the_ratio_of_lengths_does_not_count_tags(encode, tmp_path, tag):
    (tmp_path / "a").write_text("a dog\tein Hund\na\tein Hund\n")
    words = VocabularyConfig(size=20, unit="words", symbols="<BT>")
    lines = ["a dog", "ein Hund"] * 5
    one = Vocabulary.train(lines, 20, config=words, target_languages=["de"])
    how = {"max_length_ratio": 1.0}
    both, spec = VocabularyPair(one, one), f"tsv:{tmp_path}/a{tag}#en-de"
    cache = encode(spec, both, **how)
    assert cache.line_numbers.tolist() == [1]
    assert cache.source.lengths.tolist() == [4 + bool(tag)]
    assert cache.meta["lengths_version"] == LENGTHS_VERSION
    assert "lengths_version" not in encode(f"tsv:{tmp_path}/a", both, **how).meta


def best_of_targets(pairs, cache_of):
    """Returns the lines that are kept: by the definition, one pair after another."""
    lengths = [[*map(len, side)] for side in cache_of(pairs)]
    ratios = [
        math.log((one + 1) / (other + 1)) for one, other in zip(*lengths, strict=True)
    ]
    usual, best = statistics.median(ratios), {}
    for line, (ratio, (_, target)) in enumerate(zip(ratios, pairs, strict=True), 1):
        found = round(abs(ratio - usual), 3), line
        best[target] = min(found, best.get(target, found))
    return sorted(line for _, line in best.values())


@pytest.mark.parametrize("shard", [7, 1000])
def test_of_repeated_targets_the_best_is_kept_in_each_direction(
    text_corpus, encode, monkeypatch, shard
):
    monkeypatch.setattr(shards, "SHARD_PAIRS", shard)
    sources = sentences(ENGLISH, 90, seed=2)
    targets = [" ".join(line.split()[:2]) for line in sentences(GERMAN[:3], 90, seed=3)]
    both = with_tags([*sources, *targets], 60)
    spec = text_corpus(sources, targets).spec
    cache = encode(f"{spec}#en-de,de-en", both, filters="duplicate_targets")

    def ids_of(pairs):
        sources, targets = map(both.source.encode, zip(*pairs, strict=True))
        return [[0, *ids] for ids in sources], targets  # with a tag

    there = [*zip(sources, targets, strict=True)]
    back = [pair[::-1] for pair in there]
    kept, kept_back = best_of_targets(there, ids_of), best_of_targets(back, ids_of)
    assert 5 < len(kept) < 40 < len(kept_back)
    assert cache.line_numbers.tolist() == kept + kept_back
    counts = [part["counts"] for part in cache.meta["parts"]]
    told = [(one["kept"], one["duplicate_targets"]) for one in counts]
    assert told == [(len(lines), 90 - len(lines)) for lines in (kept, kept_back)]
    first = next(line for line in range(1, 91) if line not in kept)
    example = cache.meta["parts"][0]["examples"]["duplicate_targets"][0]
    source, target = there[first - 1]
    assert example == {"line": first, "source": source, "target": target}
    decoded = both.target.decode(target for _, target in pairs_of(cache))
    wanted = [there[n - 1][1] for n in kept] + [back[n - 1][1] for n in kept_back]
    assert decoded == wanted
    assert f"dropped, {90 - len(kept)} whose target" in next(drop_warnings(cache))


@pytest.mark.parametrize("languages", ["", "#en-de,de-en"])
def test_text_in_the_other_language_is_found_by_the_text_itself(
    text_corpus, encode, tmp_path, monkeypatch, languages
):
    text = [*open_corpus("phrasebook:train:400")]
    long = [number for number, pair in enumerate(text) if min(map(len, pair)) > 40]
    one, two, three = (text[number] for number in long[:3])
    made = (one[::-1], two[:1] * 2, three[1:] * 2, ("Tom", "Tom"))
    wrong = dict(zip(long, made, strict=False))
    pairs = [wrong.get(number, pair) for number, pair in enumerate(text)]
    spec = text_corpus(*map(list, zip(*pairs, strict=True))).spec + languages
    both, found = with_tags([side for pair in text for side in pair], 300), []
    for workers, chunk in ((1, 400), (2, 19)):
        monkeypatch.setattr(builder, "CHUNK_PAIRS", chunk)
        how = {"workers": workers, "cache_dir": str(tmp_path / f"{workers}")}
        cache = encode(spec, both, filters="language", max_length=256, **how)
        found.append(cache.line_numbers.tolist())
    kept = [line for line in range(1, 401) if line - 1 not in long[:3]]
    assert found == 2 * [kept * (1 + bool(languages))]


def test_scripts_are_of_languages_and_filters_have_a_version(
    text_corpus, encode, monkeypatch
):
    spec = text_corpus(["Ja", "no", "we"], ["да", "x", "мы"]).spec
    both, found = with_tags(["Ja no we да мы x"], 30), []

    def build(filters, languages=""):
        cache = encode(spec + languages, both, filters=filters)
        found.append(cache.fingerprint)
        return cache.line_numbers.tolist()

    assert build("script:latin-cyrillic") == [1, 3]
    assert build("script:en=latin-de=cyrillic", "#en-de,de-en") == [1, 3, 1, 3]
    assert build("script:de=cyrillic", "#en-de") == [1, 3]
    assert build("") == [1, 2, 3]
    for named in ("latin-latin", "en=latin-fr=latin"):
        said = "names a script of (source, target|fr), and .*de, en.*de=latin-en=latin"
        with pytest.raises(ConfigError, match=said):
            build(f"script:{named}", "#en-de")
    monkeypatch.setattr(token_cache, "FILTERS_VERSION", "another")
    for filters in ("script:latin-cyrillic", ""):
        build(filters)
    assert len({*found}) == 5  # Only text without filters has its cache of before.
    assert found[3] == found[-1]
