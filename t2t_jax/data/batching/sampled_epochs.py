"""The tokens of each epoch with modifiers or BPE-dropout, sampled ahead in a thread.

The tokens of an epoch are a pure function of those of the cache, of the seed, of the
epoch and of each pair's number: not of chunks, threads or processes. So nothing is
stored, and a resumed run samples its epoch again. Each process samples all pairs and
holds two epochs in memory, about two bytes a token each.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np

from t2t_jax.data.arrays import Integers
from t2t_jax.data.batching.modified_pairs import ModifiedPairs
from t2t_jax.data.config import SIDES, DataConfig
from t2t_jax.data.token_cache.token_cache import TokenCache, TokenSide
from t2t_jax.data.vocabulary.bpe_dropout import (
    MergeTable,
    load_merges,
    random_base,
    random_keys,
    sample_segmentations,
)
from t2t_jax.data.vocabulary.pair import VocabularyPair

CHUNK_PAIRS = 4_000
"""Sentences that are segmented at once: about 40 MB of arrays."""

_SLOW_SECONDS = 0.5  # of waiting, above which it is reported


@dataclass(eq=False)
class SampledEpochs:
    """The sampled tokens of one epoch after another.

    Args:
      cache: the tokens of the text, which are not longer than `data.max_length`. A
        sentence that would be keeps them in this epoch: so every epoch has every pair.
      seed: the run's.
      log: gets a line on the first epoch, and one for each that is waited for.
      ahead: whether the next epoch is sampled while one is used.

    Raises:
      ConfigError: the vocabulary of a side with dropout has no merges, or as
        `ModifiedPairs`.
    """

    cache: TokenCache
    vocabularies: VocabularyPair
    config: DataConfig
    seed: int
    log: Callable[[str], None]
    ahead: bool = True

    def __post_init__(self) -> None:
        self._tables = load_tables(self.vocabularies, self.config)
        self._modified: ModifiedPairs | None = None
        if self.config.modifier_rates:
            self._modified = ModifiedPairs(
                self.cache, self.vocabularies, config=self.config, seed=self.seed
            )
        self._closed = threading.Event()
        self._next: tuple[int, Future[TokenCache]] | None = None

    def open(self, epoch: int) -> TokenCache:
        """Returns the tokens of an epoch; begins to sample those of the next.

        Raises:
          CancelledError: `close` has been called.
        """
        if self._next is None or self._next[0] != epoch:
            sampled = self._sample_first(epoch)
        else:
            sampled = self._wait_for(*self._next)
        if self.ahead:
            self._next = (epoch + 1, self._start(epoch + 1))
        return sampled

    def close(self) -> None:
        """Ends sampling, and `open` in another thread."""
        self._closed.set()

    def _sample_first(self, epoch: int) -> TokenCache:
        self.log(
            f"{describe_sampling(self.config)}: sampling the subwords of "
            f"{self.cache.num_pairs:,} pairs for epoch {epoch} …"
        )
        began, sampled = time.monotonic(), self._start(epoch).result()
        both = self.cache, sampled
        before, after = (len(x.source.tokens) + len(x.target.tokens) for x in both)
        self.log(
            f"Sampled {after:,} subwords, {after / max(before, 1):.2f} times those "
            f"of the text as it is, in {time.monotonic() - began:,.1f} s."
        )
        return sampled

    def _wait_for(self, epoch: int, future: Future[TokenCache]) -> TokenCache:
        began = time.monotonic()
        with suppress(TimeoutError):
            return future.result(timeout=_SLOW_SECONDS)
        self.log(f"Waiting for the sampled subwords of epoch {epoch} …")
        sampled = future.result()
        self.log(f"Waited {time.monotonic() - began:,.1f} s for epoch {epoch}.")
        return sampled

    def _start(self, epoch: int) -> Future[TokenCache]:
        future: Future[TokenCache] = Future()

        def work() -> None:
            try:
                future.set_result(self.sample(epoch))
            except BaseException as error:
                future.set_exception(error)

        # Python waits for it at its end: a thread that it kills in SentencePiece would
        # abort the process.
        threading.Thread(target=work, name="sampled-epochs", daemon=False).start()
        return future

    def sample(self, epoch: int) -> TokenCache:
        """Samples the tokens of an epoch: the same ones each time.

        Raises:
          CancelledError: `close` has been called.
        """
        sides = [self.cache.source, self.cache.target]
        if self._modified:
            both = [self._modified.encode(*one, epoch) for one in self._chunks()]
            sides = [*map(_joined, sides, zip(*both, strict=True))] if both else sides
        source, target = (self._resample(*one, epoch) for one in enumerate(sides))
        return replace(self.cache, source=source, target=target)

    def _chunks(self) -> Iterator[tuple[int, int]]:
        """Yields the bounds of chunks of pairs.

        Raises:
          CancelledError: `close` has been called, or Python ends.
        """
        count = self.cache.num_pairs
        for bounds in pairwise([*range(0, count, CHUNK_PAIRS), count]):
            if self._closed.is_set() or not threading.main_thread().is_alive():
                raise CancelledError
            yield bounds

    def _resample(self, number: int, side: TokenSide, epoch: int) -> TokenSide:
        if (table := self._tables[number]) is None:
            return side
        base = random_base(self.seed, epoch, number)
        sample = partial(
            sample_segmentations,
            table=table,
            dropout=self.config.bpe_dropout[number],
            max_length=self.config.max_length,
        )
        parts = []
        for first, last in self._chunks():
            offsets = side.offsets[first : last + 1]
            tokens, keys = side.tokens[offsets[0] : offsets[-1]], np.arange(first, last)
            parts.append(sample(tokens, np.diff(offsets), keys=random_keys(base, keys)))
        return _joined(side, parts)


def _joined(side: TokenSide, parts: Sequence[tuple[Integers, Integers]]) -> TokenSide:
    """Joins tokens and lengths of chunks to a side, with the dtype of another."""
    tokens = [side.tokens[:0], *(one.astype(side.tokens.dtype) for one, _ in parts)]
    lengths = [np.zeros(1, np.int64), *(numbers for _, numbers in parts)]
    return TokenSide(np.concatenate(tokens), np.cumsum(np.concatenate(lengths)))


def describe_sampling(config: DataConfig) -> str:
    """Names the sides with BPE-dropout and its probabilities, and the modifiers.

    Example:
      >>> describe_sampling(DataConfig(source_bpe_dropout=0.1, modifiers="upper:0.05"))
      'BPE-dropout of source (0.1), modifiers upper:0.05'
    """
    rates = zip(SIDES, config.bpe_dropout, strict=True)
    sides = " and ".join(f"{side} ({rate:g})" for side, rate in rates if rate)
    dropout = f"BPE-dropout of {sides}" if sides else ""
    modifiers = f"modifiers {config.modifiers}" if config.modifier_rates else ""
    return ", ".join(filter(None, [dropout, modifiers]))


def load_tables(
    vocabularies: VocabularyPair, config: DataConfig
) -> tuple[MergeTable | None, ...]:
    """Reads the merges of the sides that have BPE-dropout; None for the others.

    Raises:
      ConfigError: the vocabulary of such a side has no merges.
    """
    sides = zip(SIDES, vocabularies, config.bpe_dropout, strict=True)
    return tuple(
        load_merges(vocabulary.model, key=f"data.{side}_bpe_dropout") if rate else None
        for side, vocabulary, rate in sides
    )
