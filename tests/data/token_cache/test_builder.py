import numpy as np
import pytest

from t2t_jax.data.config import DataConfig
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.files.progress_bar import ProgressBar
from t2t_jax.data.token_cache import builder, shards
from t2t_jax.data.token_cache.encoder import PairEncoder
from t2t_jax.data.token_cache.token_cache import build_or_open
from tests.data.conftest import ENGLISH, GERMAN, sentences


class PlugPulledError(Exception):
    pass


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


@pytest.mark.parametrize("pulled", [1, 7, 12, 16, "joining"])
def test_after_a_stop_the_complete_shards_are_not_encoded_again(
    build, tmp_path, monkeypatch, pulled
):
    build("undisturbed", drop_duplicates=True)
    calls, plain = [], PairEncoder.encode

    def encode(self, sources, targets, *language):
        calls.append(len(sources))
        if len(calls) == pulled:
            raise PlugPulledError
        return plain(self, sources, targets, *language)

    def join(*_):
        raise PlugPulledError

    with monkeypatch.context() as patch:
        patch.setattr(PairEncoder, "encode", encode)
        if pulled == "joining":
            patch.setattr(shards, "join_shards", join)
        with pytest.raises(PlugPulledError):
            build(drop_duplicates=True)
    # A shard of 11 pairs is three chunks, and is written when the fourth is encoded.
    whole = 60 if pulled == "joining" else max(0, 11 * ((pulled - 2) // 3))
    calls.clear()
    pulled = None
    monkeypatch.setattr(PairEncoder, "encode", encode)
    said = []
    build(drop_duplicates=True, said=said)
    assert sum(calls) == 60 - whole
    assert any(f"Resuming after {whole} encoded pairs" in line for line in said) == (
        whole > 0
    )
    assert content(tmp_path / "caches") == content(tmp_path / "undisturbed")


def mixture(tmp_path, *sides):
    specs = []
    for number, (source, target) in enumerate(sides):
        for name, side in (("en", source), ("de", target)):
            (tmp_path / f"{number}.{name}").write_bytes(
                "".join(f"{line}\n" for line in side).encode("latin-1")
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
