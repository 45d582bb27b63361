"""Text of made-up words whose lengths are like those of WMT14, for measuring."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from t2t_jax.data.config import VocabularyConfig
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.vocabulary.pair import VocabularyPair

MEAN_LENGTH = 28

# Measured in subwords of BPE and eos, of text that WMT trains or tests on: the standard
# deviation of a length's logarithm is 0.61 and 0.63 in newstest2012 (3,003 pairs of
# English and French), 0.60 in newstest2013 (3,000 lines of English), 0.55 and 0.56 in
# a sample of 20,000 pairs of Europarl (English and French). The logarithms of
# a pair's two lengths differ by 0.20 and 0.24. Vocabularies of 8,000 and 32,000 agree
# within 0.02. Text of other kinds, English and German: 0.67 in Debian's descriptions
# and manuals, 0.33 in Tatoeba's sentences, 0.32 in Multi30k's.
SPREAD = 0.6
_OF_A_SIDE = 0.14  # so that the two sides differ by 0.2
MAX_LENGTH = 256
_NUM_WORDS = 2_000


def draw_lengths(pairs: int, *, spread: float = SPREAD) -> npt.NDArray[Any]:
    """Draws lengths in subwords, eos included.

    Args:
      pairs: how many, N.
      spread: standard deviation of the logarithm of a pair's length.

    Returns:
      [2, N] lengths of both sides, int32: log-normal with a mean of 28 subwords and
      eos. The logarithms of the two sides of a pair differ by 0.2, in standard
      deviation. None is above 256.
    """
    chance = np.random.default_rng(0)
    lengths = np.empty((2, pairs), np.int32)
    done = 0
    while done < pairs:
        count = min(pairs - done, 1_000_000)
        middle = chance.normal(np.log(MEAN_LENGTH) - spread**2 / 2, spread, count)
        sides = np.exp(middle + chance.normal(0, _OF_A_SIDE, (2, count)))
        drawn = np.maximum(np.rint(sides), 1).astype(np.int32) + 1
        drawn = drawn[:, drawn.max(axis=0) <= MAX_LENGTH]
        lengths[:, done : done + drawn.shape[1]] = drawn
        done += drawn.shape[1]
    return lengths


def write_text(folder: Path, lengths: npt.NDArray[Any]) -> str:
    """Writes sentences of so many words less one, and returns the corpus's spec.

    Words are drawn by Zipf's law from 2,000, so few that each becomes a subword.
    """
    syllables = [a + b for a, b in itertools.product("bdfgklmnprst", "aeiou")]
    words = np.array(["".join(w) for w in itertools.product(syllables, repeat=2)])
    chance = np.random.default_rng(1)
    words = chance.permutation(words)[:_NUM_WORDS].astype(object)
    shares = 1 / np.arange(1, _NUM_WORDS + 1)
    up_to = np.cumsum(shares / shares.sum())
    paths = [folder / "made_up.source", folder / "made_up.target"]
    for path, side in zip(paths, lengths, strict=True):
        with path.open("w", encoding="utf-8") as file:
            for some in np.array_split(side, max(1, len(side) // 20_000)):
                drawn = np.searchsorted(up_to, chance.random(int((some - 1).sum())))
                text = words[np.minimum(drawn, _NUM_WORDS - 1)].tolist()
                ends = np.cumsum(some - 1).tolist()
                for start, end in itertools.pairwise([0, *ends]):
                    file.write(" ".join(text[start:end]) + "\n")
    return f"text:{paths[0]},{paths[1]}"


def learn_vocabulary(spec: str, size: int, folder: Path) -> None:
    """Trains a vocabulary on a sample of a corpus, and saves it."""
    config = VocabularyConfig(size=size, sample_sentences=100_000)

    def say(text: str) -> None:
        print(text, file=sys.stderr)

    vocabularies = VocabularyPair.load_or_train(
        open_corpus(spec), config=config, seed=0, log=say
    )
    vocabularies.save(folder)
