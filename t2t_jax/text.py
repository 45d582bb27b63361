"""From corpora to something to train on: vocabulary, token caches, raw dev lines.

Runs without JAX. What the workdir or the cache holds already is not made again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from t2t_jax.config import Config
from t2t_jax.data.config import DataConfig
from t2t_jax.data.corpora import Corpus, open_corpus
from t2t_jax.data.pipeline import describe_data, one_pass, stream
from t2t_jax.data.token_cache import TokenCache, build_or_open
from t2t_jax.data.vocabularies import Vocabularies
from t2t_jax.errors import Attempts
from t2t_jax.types import Batch, DataPosition
from t2t_jax.workdir import Workdir

Say = Callable[[str], None]


class Text(NamedTuple):
    """The text of a run, ready to train on.

    Attributes:
      config: how batches are cut.
      seed: of the data order.
      vocabularies: of both languages.
      train: the training pairs.
      dev: the development pairs, for the loss.
      dev_lines: the raw development pairs, for BLEU.
    """

    config: DataConfig
    seed: int
    vocabularies: Vocabularies
    train: TokenCache
    dev: TokenCache
    dev_lines: Sequence[tuple[str, str]]

    @property
    def fingerprints(self) -> dict[str, str]:
        """Hashes of vocabulary and corpora, as checkpoints record them."""
        return {
            "vocabulary": self.vocabularies.fingerprint,
            "train": str(self.train.meta["corpus"]),
            "dev": str(self.dev.meta["corpus"]),
        }

    def train_batches(
        self, start: DataPosition, *, num_rows: int
    ) -> AbstractContextManager[Iterator[tuple[DataPosition, Batch]]]:
        """Streams batches from `start` on, each with the position after it."""
        return stream(
            self.train, self.config, seed=self.seed, start=start, num_rows=num_rows
        )

    def dev_batches(self, *, num_rows: int) -> Iterator[Batch]:
        """Yields every development pair once."""
        return one_pass(self.dev, self.config, num_rows=num_rows)


def prepare_text(config: Config, *, workdir: Workdir, say: Say) -> Text:
    """Reads, checks and encodes the text of a run.

    Args:
      config: names the corpora.
      workdir: where the vocabulary and data.json are kept.
      say: tells people what is being done.

    Raises:
      UserError: a corpus or the vocabulary is not what it must be; everything that is
        wrong with both corpora comes together.
    """
    attempts = Attempts()
    train = attempts.attempt(open_corpus, config.data.train, key="data.train")
    dev = attempts.attempt(open_corpus, config.data.dev, key="data.dev")
    dev_lines = attempts.attempt(list, dev)
    vocabularies = attempts.attempt(
        _vocabularies, train, config=config, workdir=workdir, say=say
    )
    caches = {
        name: attempts.attempt(
            _encoded, corpus, vocabularies=vocabularies, config=config.data
        )
        for name, corpus in (("train", train), ("dev", dev))
        if vocabularies is not None
    }
    attempts.raise_if_any_failed()
    if not workdir.has_config:
        vocabularies.save(workdir.path)
    for cache in caches.values():
        say(_kept(cache))
    workdir.write_json("data.json", describe_data(vocabularies, **caches))
    return Text(config.data, config.seed, vocabularies, **caches, dev_lines=dev_lines)


def _encoded(
    corpus: Corpus, *, vocabularies: Vocabularies, config: DataConfig
) -> TokenCache:
    return build_or_open(
        corpus,
        vocabularies,
        max_length=config.max_length,
        cache_dir=config.cache_dir,
    )


def _kept(cache: TokenCache) -> str:
    """Says what was read of a corpus, and what of it was dropped and why."""
    counts = cache.counts
    return (
        f"{cache.meta['spec']}: {counts['read']:,} pairs read, {counts['kept']:,} "
        f"kept, {counts['empty']:,} empty, {counts['too_long']:,} longer than "
        f"{cache.meta['max_length']} subwords"
    )


def _vocabularies(
    train: Corpus, config: Config, *, workdir: Workdir, say: Say
) -> Vocabularies:
    """Finds the vocabularies: the run's, else the configured ones, else new ones."""
    asked = config.vocabulary
    # Where no run has begun, a vocabulary is what a failed start has left.
    if workdir.has_config:
        vocabularies = Vocabularies.load(workdir.path)
        name = str(workdir.path)
    else:
        vocabularies = Vocabularies.find(train, config=asked, seed=config.seed, say=say)
        name = asked.file or asked.source_file
    vocabularies.require_sizes(asked, name=name)
    return vocabularies
