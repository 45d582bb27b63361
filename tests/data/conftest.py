"""Small text of our own, a vocabulary learnt from it, and caches of it."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from t2t_jax.data.config import DataConfig
from t2t_jax.data.corpora.corpus import Corpus
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.token_cache.token_cache import TokenCache, build_or_open
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.vocabulary import Vocabulary

ENGLISH = "the a cat dog bird house tree sees eats likes finds small old green".split()
GERMAN = "der ein Kater Hund Vogel Haus Baum sieht frisst mag findet klein alt".split()


def sentences(words: list[str], count: int, *, seed: int) -> list[str]:
    chance = random.Random(seed)
    return [
        " ".join(chance.choices(words, k=chance.randrange(1, 12))) for _ in range(count)
    ]


@pytest.fixture(autouse=True)
def cache_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keeps tests out of the cache directory of whoever runs them."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    return tmp_path / "xdg"


@pytest.fixture
def text_corpus(tmp_path: Path) -> Callable[..., Corpus]:
    """Writes two sides, given as bytes or lines, and opens them."""

    def write(
        source: bytes | list[str], target: bytes | list[str], suffix: str = ""
    ) -> Corpus:
        paths = [tmp_path / f"{side}{suffix}" for side in ("source", "target")]
        for path, side in zip(paths, (source, target), strict=True):
            if isinstance(side, list):
                side = "".join(f"{line}\n" for line in side).encode()
            path.write_bytes(side)
        return open_corpus(f"text:{paths[0]},{paths[1]}")

    return write


@pytest.fixture(scope="session")
def vocabulary() -> Vocabulary:
    return Vocabulary.train(sentences(ENGLISH + GERMAN, 300, seed=1), 97)


@pytest.fixture
def vocabularies(vocabulary: Vocabulary) -> VocabularyPair:
    return VocabularyPair(vocabulary, vocabulary)


@pytest.fixture
def encode(vocabularies: VocabularyPair, tmp_path: Path) -> Callable[..., TokenCache]:
    """Encodes a corpus, given or by its name, with the keys of a test."""

    def encode(
        corpus: Corpus | str, pair: VocabularyPair = vocabularies, **keys: object
    ) -> TokenCache:
        keys = {"max_length": 61, "cache_dir": str(tmp_path / "caches"), **keys}
        corpus = open_corpus(corpus) if isinstance(corpus, str) else corpus
        return build_or_open(corpus, pair, config=DataConfig(**keys))

    return encode


@pytest.fixture
def cache(
    text_corpus: Callable[..., Corpus], encode: Callable[..., TokenCache]
) -> TokenCache:
    """211 pairs of 2 to 30 tokens or so."""
    sides = sentences(ENGLISH, 211, seed=2), sentences(GERMAN, 211, seed=3)
    return encode(text_corpus(*sides))
