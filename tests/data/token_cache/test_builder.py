import itertools
import math
import statistics

import numpy as np
import pytest

from t2t_jax.data.config import DataConfig
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.files.progress_bar import ProgressBar
from t2t_jax.data.report.statistics import drop_warnings
from t2t_jax.data.token_cache import builder, shards, token_cache
from t2t_jax.data.token_cache.token_cache import build_or_open
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import ConfigError
from tests.data.conftest import ENGLISH, GERMAN, sentences


@pytest.fixture
def lines():
    """Pairs of which every third is a duplicate of one before, and some are empty."""
    pairs = list(
        zip(sentences(ENGLISH, 60, seed=2), sentences(GERMAN, 60, seed=3), strict=True)
    )
    for place in range(2, 60, 3):
        pairs[place] = pairs[place // 2]
    pairs[31] = ("", "leer")
    return pairs


@pytest.fixture
def corpus(text_corpus, lines):
    sources, targets = zip(*lines, strict=True)
    return text_corpus(list(sources), list(targets))


@pytest.fixture
def build(corpus, vocabularies, tmp_path, monkeypatch):
    """Builds the corpus's cache with the shards and chunks and filters of a test."""

    def run(home="caches", *, shard=11, chunk=4, said=None, **keys):
        monkeypatch.setattr(shards, "SHARD_PAIRS", shard)
        monkeypatch.setattr(builder, "CHUNK_PAIRS", chunk)
        keys = {"workers": 1, **keys}
        config = DataConfig(max_length=61, cache_dir=str(tmp_path / home), **keys)
        progress = ProgressBar(None if said is None else said.append)
        return build_or_open(corpus, vocabularies, config=config, progress=progress)

    return run


def content(home):
    """Returns every file of the only thing in a directory of caches."""
    (place,) = home.iterdir()
    return {path.name: path.read_bytes() for path in place.iterdir()}


def test_a_cache_is_the_same_whatever_its_shards_and_chunks(build, tmp_path):
    build("one", shard=1000, chunk=1000, drop_duplicates=True)
    for shard, chunk in ((11, 4), (10, 5), (1, 1), (60, 7), (30, 30)):
        home = f"{shard} {chunk}"
        workers = 2 if shard == 1 else 1
        build(home, shard=shard, chunk=chunk, drop_duplicates=True, workers=workers)
        assert content(tmp_path / home) == content(tmp_path / "one")


def mixture(tmp_path, *sides):
    specs = []
    for number, (source, target) in enumerate(sides):
        for name, side in (("en", source), ("de", target)):
            (tmp_path / f"{number}.{name}").write_bytes(
                "".join(f"{line}\n" for line in side).encode()
            )
        specs.append(f"text:{tmp_path}/{number}.en,{tmp_path}/{number}.de")
    return specs


def test_parts_are_counted_apart_and_their_lines_too(
    vocabularies, tmp_path, monkeypatch
):
    monkeypatch.setattr(shards, "SHARD_PAIRS", 3)
    first, second = mixture(
        tmp_path,
        (["a", "", "old", "cat", "dog"], ["ein", "x", "alt", "Kater", "Hund"]),
        (["a", "dog"], ["ein", "der"]),
    )
    corpus = open_corpus(f"2.5*{first}++{second}")
    config = DataConfig(
        max_length=61, cache_dir=str(tmp_path / "caches"), drop_duplicates=True
    )
    cache = build_or_open(corpus, vocabularies, config=config)
    assert cache.part_pairs == (4, 1)
    assert cache.weights == (2.5, 1.0)
    assert cache.line_numbers.tolist() == [1, 3, 4, 5, 2]
    assert [part["counts"]["duplicates"] for part in cache.meta["parts"]] == [0, 1]
    assert [part["spec"] for part in cache.meta["parts"]] == [first, second]
    reweighted = open_corpus(f"{first}++3*{second}")
    again = build_or_open(reweighted, vocabularies, config=config)
    assert again.weights == (1.0, 3.0)
    assert again.fingerprint == cache.fingerprint
    again.source.tokens.tolist()
    assert np.array_equal(again.hashes, cache.hashes)


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
    tmp_path, monkeypatch, shard
):
    monkeypatch.setattr(shards, "SHARD_PAIRS", shard)
    sides = sentences(ENGLISH, 90, seed=2), sentences(GERMAN[:3], 90, seed=3)
    targets = [" ".join(line.split()[:2]) for line in sides[1]]
    (spec,) = mixture(tmp_path, (sides[0], targets))
    lines = [line for side in (sides[0], targets) for line in side]
    vocabulary = Vocabulary.train(lines, 60, target_languages=["de", "en"])
    pairs = VocabularyPair(vocabulary, vocabulary)
    both = open_corpus(f"{spec}#en-de,de-en")
    config = DataConfig(
        filters="duplicate_targets", workers=1, cache_dir=str(tmp_path / "caches")
    )
    cache = build_or_open(both, pairs, config=config)
    there = [*zip(sides[0], targets, strict=True)]

    def ids_of(pairs):
        sources, targets = map(vocabulary.encode, zip(*pairs, strict=True))
        return [[0, *ids] for ids in sources], targets  # with a tag

    expected = [
        best_of_targets(some, ids_of) for some in (there, [p[::-1] for p in there])
    ]
    assert 5 < len(expected[0]) < 40 < len(expected[1])
    assert cache.line_numbers.tolist() == [*expected[0], *expected[1]]
    counts = [part["counts"] for part in cache.meta["parts"]]
    for found, kept in zip(counts, expected, strict=True):
        assert (found["kept"], found["duplicate_targets"]) == (
            len(kept),
            90 - len(kept),
        )
    first = next(line for line in range(1, 91) if line not in expected[0])
    example = cache.meta["parts"][0]["examples"]["duplicate_targets"][0]
    source, target = there[first - 1]
    assert example == {"line": first, "source": source, "target": target}
    decoded = vocabulary.decode(
        cache.target.tokens[begin:end]
        for begin, end in itertools.pairwise(cache.target.offsets)
    )
    assert decoded == [
        pair[side]
        for side, lines in zip((1, 0), expected, strict=True)
        for pair in (there[line - 1] for line in lines)
    ]
    assert (
        drop_warnings(cache)[0]
        .split("dropped, ")[1]
        .startswith(f"{90 - len(expected[0])} whose target")
    )


@pytest.mark.parametrize("languages", ["", "#en-de,de-en"])
def test_text_in_the_other_language_is_found_by_the_text_itself(
    tmp_path, monkeypatch, languages
):
    text = [*open_corpus("phrasebook:train:400")]
    long = [number for number, pair in enumerate(text) if min(map(len, pair)) > 40]
    one, two, three = (text[number] for number in long[:3])
    made = (one[::-1], two[:1] * 2, three[1:] * 2, ("Tom", "Tom"))
    wrong = dict(zip(long, made, strict=False))
    pairs = [wrong.get(number, pair) for number, pair in enumerate(text)]
    (spec,) = mixture(tmp_path, zip(*pairs, strict=True))
    lines = (side for pair in text for side in pair)
    vocabulary = Vocabulary.train(lines, 300, target_languages=["de", "en"])
    found = []
    for workers in (1, 2):
        monkeypatch.setattr(builder, "CHUNK_PAIRS", 400 if workers == 1 else 19)
        config = DataConfig(
            filters="language", workers=workers, cache_dir=str(tmp_path / f"{workers}")
        )
        cache = build_or_open(
            open_corpus(spec + languages),
            VocabularyPair(vocabulary, vocabulary),
            config=config,
        )
        found.append(cache.line_numbers.tolist())
    kept = [line for line in range(1, 401) if line - 1 not in long[:3]]
    assert found == 2 * [kept * (1 + bool(languages))]


def test_scripts_are_of_languages_and_filters_have_a_version(tmp_path, monkeypatch):
    (spec,) = mixture(tmp_path, (["Ja", "no", "we"], ["yes", "x", "wir"]))
    text = (tmp_path / "0.de").read_text()
    (tmp_path / "0.de").write_text(text.replace("yes", "да").replace("wir", "мы"))
    vocabulary = Vocabulary.train(
        ["Ja no we да мы x"], 30, target_languages=["de", "en"]
    )
    pair = VocabularyPair(vocabulary, vocabulary)
    found = []

    def build(filters, languages=""):
        config = DataConfig(filters=filters, cache_dir=str(tmp_path / "caches"))
        cache = build_or_open(open_corpus(spec + languages), pair, config=config)
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
