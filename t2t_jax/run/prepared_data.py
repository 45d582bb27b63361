"""From corpora to something to train on: vocabulary, token caches, raw dev lines.

Runs without JAX. What the workdir or the cache holds already is not made again.

The vocabulary of a workdir is that of its run once the run has begun, which it has when
`config.json` is there: then it never changes. Before that `data.json`, which is written
before the vocabulary, says from which text and with which settings it was learnt. A
start with the same ones continues there, since learning it again would give the same;
any other start is refused, and replaces nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, NamedTuple, TextIO

from t2t_jax.config import Config
from t2t_jax.data.batching.pipeline import eval_batches, train_stream
from t2t_jax.data.batching.planner import PLAN_VERSION, batch_shapes
from t2t_jax.data.config import DataConfig
from t2t_jax.data.corpora.open import (
    Corpus,
    names_tfds,
    open_corpus,
    require_files,
    train_and_dev,
)
from t2t_jax.data.files.cache_paths import require_cache_place
from t2t_jax.data.files.progress import ProgressBar, Say
from t2t_jax.data.report.leakage import (
    copy_warnings,
    find_all_leaks,
    leak_warnings,
    open_held_out,
)
from t2t_jax.data.report.page import report_text
from t2t_jax.data.report.statistics import describe_data, summary
from t2t_jax.data.token_cache import known_words
from t2t_jax.data.token_cache.token_cache import TokenCache, build_or_open
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.errors import Attempts, ConfigError
from t2t_jax.files import atomic_write
from t2t_jax.run.partial_start import (
    lesson_settings,
    prepared_vocabularies,
    require_prepared,
    require_same_start,
)
from t2t_jax.run.resume_rules import check_fingerprints
from t2t_jax.run.workdir import Workdir
from t2t_jax.types import Batch, BatchShard, DataPosition

REPORT = "data_report.txt"
"""The file of a workdir that tells people what its text is."""


class PreparedData(NamedTuple):
    """The text of a run, ready to train on.

    Attributes:
      config: how batches are cut.
      seed: of the data order.
      vocabularies: of both languages.
      train: the training pairs.
      dev: the development pairs, for the loss; None where evaluation is off.
      dev_lines: the raw development pairs, for BLEU.
    """

    config: DataConfig
    seed: int
    vocabularies: VocabularyPair
    train: TokenCache
    dev: TokenCache | None
    dev_lines: Sequence[tuple[str, str]]

    @property
    def fingerprints(self) -> dict[str, str]:
        """Hashes of vocabulary and corpora, as checkpoints record them."""
        dev = {"dev": str(self.dev.meta["corpus"])} if self.dev else {}
        return {
            "vocabulary": self.vocabularies.fingerprint,
            "train": str(self.train.meta["corpus"]),
            **dev,
            # Other weights are another order of the data.
            "weights of train": ", ".join(f"{w:g}" for w in self.train.weights),
            "way of planning batches": PLAN_VERSION,
        }

    @property
    def batch_shapes(self) -> list[tuple[int, int]]:
        """(rows, slots of a row) of the training batches, short rows first."""
        lengths = (self.train.source_lengths, self.train.target_lengths)
        return batch_shapes(self.config, lengths)

    def train_batches(
        self, start: DataPosition, *, row_multiple: int, share: BatchShard
    ) -> AbstractContextManager[Iterator[tuple[DataPosition, Batch]]]:
        """Streams a share of batches from `start` on, with the position after each."""
        return train_stream(
            self.train,
            self.config,
            seed=self.seed,
            start=start,
            row_multiple=row_multiple,
            share=share,
        )

    def dev_batches(self, *, row_multiple: int, share: BatchShard) -> Iterator[Batch]:
        """Yields every development pair once, and of each batch a share."""
        if self.dev is None:
            return iter(())
        return eval_batches(
            self.dev, self.config, row_multiple=row_multiple, share=share
        )


def prepare_data(
    config: Config, *, workdir: Workdir, say: Say, stream: TextIO | None = None
) -> PreparedData:
    """Reads, checks, filters and encodes the text of a run.

    Args:
      workdir: where the vocabulary, data.json and data_report.txt are kept.
      say: tells people what is being done; on a terminal there is a bar too.
      stream: where the bar is drawn if it is a terminal; None means stderr.

    Raises:
      UserError: a corpus or the vocabulary is not what it must be; everything that is
        wrong with both corpora comes together.
    """
    if not workdir.has_config:
        require_same_start(config, workdir.path)
    attempts = Attempts()
    held_out = attempts.try_call(open_held_out, config.data.held_out, say=say)
    find = partial(_vocabularies, config=config, workdir=workdir, say=say)
    text = _read(config, attempts, find=find, say=say, stream=stream)
    if workdir.has_config:  # Nothing of a run may be written over by another text.
        check_fingerprints(
            workdir.read_fingerprints(),
            text.fingerprints,
            configs=(workdir.read_config(), config),
        )
    _save_known_words(text, workdir)
    _report(text, held_out, config=config, workdir=workdir, say=say)
    if not workdir.has_config:
        text.vocabularies.save(workdir.path)
    return text


def _save_known_words(text: PreparedData, workdir: Workdir) -> None:
    """Writes the source words of the training text, which a run never replaces."""
    path = workdir.path / known_words.FILE
    if text.train.source_words is None or (workdir.has_config and path.exists()):
        return
    words = known_words.KnownWords(text.train.source_words)
    atomic_write(path, words.to_bytes())


def open_prepared_data(config: Config, *, workdir: Workdir, say: Say) -> PreparedData:
    """Opens the text of a run that another process has prepared.

    Args:
      config: names the corpora, which may lie elsewhere for this process.
      workdir: holds the vocabulary; nothing is written there.
      say: tells people what is being done: on another host there may be no cache yet.

    Raises:
      UserError: a corpus or the vocabulary is not what it must be.
    """

    def find(train: Corpus) -> VocabularyPair:
        return VocabularyPair.load(workdir.path, config=config.vocabulary)

    return _read(config, Attempts(), find=find, say=say)


def _read(
    config: Config,
    attempts: Attempts,
    *,
    find: Callable[[Corpus], VocabularyPair],
    say: Say,
    stream: TextIO | None = None,
) -> PreparedData:
    """Reads and encodes both corpora; what was attempted before fails here too."""
    specs = attempts.try_call(train_and_dev, config.data) or (None, None)
    evaluates = config.evaluation.every_steps > 0
    dev_spec = specs[1] if evaluates else None
    if any(spec and names_tfds(spec) for spec in specs):
        _check_before_downloads(config, specs[0], dev_spec, attempts=attempts)
    train = attempts.try_call(open_corpus, specs[0], key="data.train", say=say)
    if dev_spec and names_tfds(dev_spec) and attempts.have_failed:
        attempts.raise_if_any_failed()  # It would be downloaded for nothing.
    dev = attempts.try_call(partial(_open_dev, config, say=say), dev_spec)
    attempts.try_call(require_cache_place, config.data)
    dev_lines = attempts.try_call(list, dev) if evaluates else ()
    if attempts.have_failed:  # Nothing is learnt for a run that cannot begin.
        attempts.try_call(_read_through, train)
    attempts.raise_if_any_failed()
    vocabularies = attempts.try_call(find, train)
    every = config.logging.every_seconds
    progress = ProgressBar(say, every_seconds=every, stream=stream)
    caches = {
        name: attempts.try_call(
            build_or_open,
            corpus,
            vocabularies=vocabularies,
            config=settings,
            progress=progress,
        )
        for name, corpus, settings in (
            ("train", train, config.data),
            ("dev", dev, _without_filters(config.data)),
        )
        if vocabularies is not None
    }
    attempts.raise_if_any_failed()
    return PreparedData(
        config.data, config.seed, vocabularies, **caches, dev_lines=dev_lines
    )


def _check_before_downloads(
    config: Config, train: str | None, dev: str | None, *, attempts: Attempts
) -> None:
    """Checks what is on this machine before sets of TFDS are downloaded.

    Raises:
      UserError: a file is missing, or something attempted before has failed.
    """
    attempts.try_call(require_files, train, key="data.train")
    attempts.try_call(partial(_require_dev_files, config), dev)
    attempts.try_call(require_cache_place, config.data)
    attempts.raise_if_any_failed()


def _require_dev_files(config: Config, spec: str) -> None:
    require_files(spec, key=_dev_key(config, spec))


def _open_dev(config: Config, spec: str, *, say: Say) -> Corpus:
    """Opens the development corpus of a run that evaluates.

    Raises:
      UserError: there is none, or it cannot be read.
    """
    return open_corpus(spec, key=_dev_key(config, spec), say=say)


def _dev_key(config: Config, spec: str) -> str:
    """Names the key that a development corpus comes from.

    Raises:
      ConfigError: there is none.
    """
    if not spec:
        raise ConfigError(
            f"evaluation.every_steps={config.evaluation.every_steps} needs development "
            "text, and data.dev is empty. Set config.data.dev, or "
            "config.data.dev_pairs to hold pairs out of data.train, or "
            "config.evaluation.every_steps=0 to train without evaluation."
        )
    # What is cut from the training corpus is the training corpus's fault.
    return "data.dev" if config.data.dev else "data.train"


def _read_through(corpus: Corpus) -> None:
    """Reads a corpus for what is wrong with it."""
    for _ in corpus:
        pass


def _without_filters(config: DataConfig) -> DataConfig:
    """Turns those filters off that would choose what a model is judged by."""
    return dataclasses.replace(
        config, max_length_ratio=0.0, drop_copies=False, drop_duplicates=False
    )


def _report(
    text: PreparedData,
    held_out: Sequence[Corpus],
    *,
    config: Config,
    workdir: Workdir,
    say: Say,
) -> None:
    """Says what the text is, and writes it down for people and for programs."""
    dev = text.dev.corpora if text.dev else ()
    leaks = find_all_leaks(text.train, [*dev, *held_out])
    told = describe_data(
        text.vocabularies,
        config=config.data,
        train=text.train,
        dev=text.dev,
        leaks=leaks,
    )
    for cache in filter(None, (text.train, text.dev)):
        say(summary(cache))
    copies = {**told["train"]["copies"], **leaks}
    for warning in [*leak_warnings(leaks), *copy_warnings(copies)]:
        say(f"{warning} See {workdir.path / REPORT}.")
    atomic_write(workdir.path / REPORT, report_text(told))
    lesson = _lesson(config, train=str(text.train.meta["corpus"]))
    workdir.write_json("data.json", {**told, "vocabulary_lesson": lesson})


def _lesson(config: Config, *, train: str) -> dict[str, Any]:
    """Tells all that a vocabulary depends on, if it was learnt from the corpus."""
    return {**lesson_settings(config), "corpus": train}


def _vocabularies(
    train: Corpus, config: Config, *, workdir: Workdir, say: Say
) -> VocabularyPair:
    """Finds the vocabularies: the run's, else the configured ones, else new ones."""
    asked = config.vocabulary
    if workdir.has_config:
        return VocabularyPair.load(workdir.path, config=asked)
    vocabularies = prepared_vocabularies(train, config, workdir.path)
    if vocabularies is None:
        vocabularies = VocabularyPair.load_or_train(
            train, config=asked, seed=config.seed, say=say
        )
        vocabularies.require_sizes(asked, name=asked.file or asked.source_file)
    require_prepared(vocabularies, workdir.path)
    return vocabularies
