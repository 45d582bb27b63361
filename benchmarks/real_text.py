"""Real text for contestants: encoded once, and batched in the usual way for peers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from t2t_jax.data.arrays import Integers
from t2t_jax.data.config import DataConfig, VocabularyConfig
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.data.token_cache.token_cache import TokenCache, TokenSide, build_or_open
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.types import BOS, PAD


@dataclass(frozen=True, kw_only=True)
class RealText:
    """A corpus, and where its vocabulary and its tokens are.

    Attributes:
      source: the corpus, such as "text:a.en,a.de".
      folder: holds the vocabulary.
      data: names the cache's directory, the layout and the size of batches.
      vocabulary: its size.
    """

    source: str
    folder: Path
    data: DataConfig
    vocabulary: VocabularyConfig

    def prepare(self) -> TokenCache:
        """Learns the vocabulary and encodes the corpus."""
        found = VocabularyPair.load_or_train(
            open_corpus(self.source),
            config=self.vocabulary,
            seed=0,
            log=lambda _: None,
        )
        found.save(self.folder)
        return self.open()

    def open(self) -> TokenCache:
        """Opens the encoded corpus; of all processes, whoever comes first encodes."""
        vocabularies = VocabularyPair.load(self.folder, config=self.vocabulary)
        return build_or_open(open_corpus(self.source), vocabularies, config=self.data)


def sorted_batches(
    source_lengths: Integers,
    target_lengths: Integers,
    *,
    tokens: int,
    chance: np.random.Generator,
) -> Iterator[Integers]:
    """Cuts a corpus into batches of like length, as most programs do.

    Args:
      source_lengths: [N] tokens of each source sentence, eos included.
      target_lengths: [N] tokens of each target sentence, eos included.
      tokens: most slots of a batch: its pairs times the longest side of any of them.
      chance: orders pairs of the same lengths, and the batches.

    Yields:
      The numbers of the pairs of a batch, as many as fit.

    Example:
      >>> lengths, chance = np.array([3, 1, 3, 1]), np.random.default_rng(0)
      >>> batches = sorted_batches(lengths, lengths, tokens=6, chance=chance)
      >>> sorted(sorted(batch.tolist()) for batch in batches)
      [[0, 2], [1, 3]]
    """
    longer = np.maximum(source_lengths, target_lengths)
    shorter = np.minimum(source_lengths, target_lengths)
    order = chance.permutation(len(longer))
    order = order[np.lexsort((shorter[order], longer[order]))]
    sorted_lengths, cuts = longer[order], [0]
    for end in range(1, len(order) + 1):
        if end == len(order) or (end + 1 - cuts[-1]) * sorted_lengths[end] > tokens:
            cuts.append(end)
    for number in chance.permutation(len(cuts) - 1):
        yield order[cuts[number] : cuts[number + 1]]


def padded(side: TokenSide, pairs: Integers) -> npt.NDArray[np.int64]:
    """Lays sentences out as rows, each followed by padding: [B, L] ids.

    Args:
      side: one language of a corpus.
      pairs: [B] numbers of the sentences.

    Example:
      >>> side = TokenSide(np.array([5, 2, 7, 8, 2]), np.array([0, 2, 5]))
      >>> padded(side, np.array([0, 1])).tolist()
      [[5, 2, 0], [7, 8, 2]]
    """
    starts, stops = side.offsets[pairs], side.offsets[pairs + 1]
    rows = np.full((len(pairs), int((stops - starts).max())), PAD, np.int64)
    for row, start, stop in zip(rows, starts, stops, strict=True):
        row[: stop - start] = side.tokens[start:stop]
    return rows


def shifted_right(outputs_BxT: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Makes what a decoder reads of what it must say: bos, and all but the last.

    Example:
      >>> shifted_right(np.array([[5, 2, 0], [7, 8, 2]])).tolist()
      [[1, 5, 2], [1, 7, 8]]
    """
    inputs = np.roll(outputs_BxT, 1, axis=1)
    inputs[:, 0] = BOS
    return inputs
