"""Prepares the text of a run: vocabularies, token caches, raw development lines.

Runs without JAX. Files that the workdir or the cache holds already are reused. Any
batch is a function of the text, the configuration and the seed: `read_batch`
reconstructs it, for debugging.

From `config.json` on the vocabulary of a workdir never changes. Before that, a start
reuses it if `data.json`, which is written first, records the same text and settings;
any other start is refused and replaces nothing.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from t2t_jax.config import Config
from t2t_jax.data.batching.modified_pairs import ModifiedPairs, open_glossary
from t2t_jax.data.batching.modifiers import VERSION as MODIFIERS_VERSION
from t2t_jax.data.batching.pipeline import START, find_batch
from t2t_jax.data.batching.planner import PLAN_VERSION, train_shapes
from t2t_jax.data.batching.sampled_epochs import SampledEpochs, load_tables
from t2t_jax.data.config import DataConfig
from t2t_jax.data.corpora.corpus import (
    Corpus,
    PairLocation,
    direction_of,
    directions_of,
    directions_of_pairs,
    parts_of,
    short_name,
    spec_error,
    with_tags,
)
from t2t_jax.data.corpora.open import open_corpus, open_held_out, train_and_dev
from t2t_jax.data.files.progress_bar import Log, ProgressBar
from t2t_jax.data.report.leakage import copy_warnings, find_all_leaks, leak_warnings
from t2t_jax.data.report.statistics import (
    describe_data,
    drop_warnings,
    report_text,
    summary_line,
)
from t2t_jax.data.source_lines import KEY as SOURCE_LINES
from t2t_jax.data.source_lines import measure_source_lines
from t2t_jax.data.token_cache import known_words
from t2t_jax.data.token_cache.cache_paths import check_cache_writable
from t2t_jax.data.token_cache.filters import VERSION as FILTERS_VERSION
from t2t_jax.data.token_cache.token_cache import TokenCache, build_or_open
from t2t_jax.data.vocabulary.bpe_dropout import SAMPLING_VERSION
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.tokenizers import shown_tags, split_tag
from t2t_jax.decoding.text.sentences import lay_out
from t2t_jax.errors import ConfigError, ErrorCollector
from t2t_jax.files import atomic_write
from t2t_jax.run.first_start import (
    BEGAN_WITH,
    imported_origin,
    load_partial_vocabularies,
    read_vocabularies,
    require_same_start,
    require_same_vocabularies,
    vocabulary_settings,
)
from t2t_jax.run.resume_rules import check_fingerprints
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.progress_and_patience import Record
from t2t_jax.types import DataPosition

REPORT = "data_report.txt"
"""The human-readable report on the text, a file of the workdir."""


class PreparedData(NamedTuple):
    """The text of a run, ready to train on.

    Attributes:
      seed: of the data order.
      dev: the development pairs, for the loss; None if evaluation is off.
      dev_lines: the raw development pairs, for BLEU.
      dev_directions: of each of them, such as en-de; "" if it is not named.
    """

    config: DataConfig
    seed: int
    vocabularies: VocabularyPair
    train: TokenCache
    dev: TokenCache | None
    dev_lines: Sequence[tuple[str, str]]
    dev_directions: Sequence[str] = ()

    @property
    def fingerprints(self) -> dict[str, str]:
        """Hashes of vocabularies and corpora, as checkpoints record them."""
        config, train = self.config, self.train.meta
        dev = self.dev.meta if self.dev else {}
        hashes: dict[str, Any] = {
            "vocabulary": self.vocabularies.fingerprint,
            "train": train["corpus"],
            # The weights determine the order of the data.
            "weights of train": ", ".join(f"{w:g}" for w in self.train.weights),
            "way of planning batches": PLAN_VERSION,
            "dev": dev.get("corpus"),
            # The hash of a corpus has the languages of its targets alone.
            "languages of train": ", ".join(map("-".join, train.get("directions", ()))),
            "languages of dev": ", ".join(map("-".join, dev.get("directions", ()))),
            "way of filtering pairs": config.filters and FILTERS_VERSION,
            "way of comparing lengths": train.get("lengths_version"),
            "way of sampling subwords": any(config.bpe_dropout) and SAMPLING_VERSION,
            "way of modifying pairs": config.modifier_rates and MODIFIERS_VERSION,
            "glossary": config.glossary and open_glossary(config).fingerprint(),
        }
        return {name: str(value) for name, value in hashes.items() if value}

    @property
    def batch_shapes(self) -> list[tuple[int, int]]:
        """(rows, tokens per row) of the training batches, short rows first."""
        return train_shapes(self.config, self.train.lengths)

    def sampled_epochs(self, *, log: Log, ahead: bool = True) -> SampledEpochs | None:
        """Returns the tokens of each epoch; None if they are those of the text.

        Args:
          ahead: whether the next epoch is sampled while one is used.
        """
        if not self.config.samples_epochs:
            return None
        text, both = self.train, self.vocabularies
        return SampledEpochs(
            text, both, config=self.config, seed=self.seed, log=log, ahead=ahead
        )


def prepare_data(
    config: Config, *, workdir: Workdir, log: Log, stream: TextIO | None = None
) -> PreparedData:
    """Reads, checks, filters and encodes the text of a run.

    Args:
      workdir: gets the vocabulary, data.json and data_report.txt.
      stream: gets a progress bar if it is a terminal; None means stderr.

    Raises:
      UserError: a corpus or the vocabulary is not valid; the errors of both corpora are
        reported at once.
    """
    if not workdir.has_config:
        require_same_start(config, workdir.path)
    errors, read = ErrorCollector(), partial(open_held_out, log=log)
    joiner = config.data.subword_joiner
    held_out = errors.try_call(read, config.data.held_out, joiner=joiner)
    load = partial(_load_vocabularies, config=config, workdir=workdir, log=log)
    text = _read(config, errors, load_vocabularies=load, log=log, stream=stream)
    if workdir.has_config:  # Before files of the run are overwritten.
        was, configs = workdir.read_fingerprints(), (workdir.read_config(), config)
        check_fingerprints(was, text.fingerprints, configs=configs)
    words, path = text.train.source_words, workdir.path / known_words.FILE
    if words is not None and not (workdir.has_config and path.exists()):
        atomic_write(path, known_words.KnownWords(words).to_bytes())
    _report(text, held_out, config=config, workdir=workdir, log=log)
    if not workdir.has_config:
        text.vocabularies.save(workdir.path)
    return text


def open_prepared_data(config: Config, *, workdir: Workdir, log: Log) -> PreparedData:
    """Opens the text of a run that another process has prepared.

    Another host may have to encode it again; nothing is written into the workdir.

    Raises:
      UserError: a corpus or the vocabulary is not valid.
    """

    def load(train: Corpus) -> VocabularyPair:
        return VocabularyPair.load(workdir.path, config=config.vocabulary)

    return _read(config, ErrorCollector(), load_vocabularies=load, log=log)


def _read(
    config: Config,
    errors: ErrorCollector,
    *,
    load_vocabularies: Callable[[Corpus], VocabularyPair],
    log: Log,
    stream: TextIO | None = None,
) -> PreparedData:
    """Reads and encodes both corpora; raises the errors collected before, too."""
    train, dev, dev_lines = _open_corpora(config, errors)
    vocabularies = errors.try_call(load_vocabularies, train)
    errors.try_call(load_tables, vocabularies, config=config.data)
    errors.raise_if_any()
    every = config.logging.every_seconds
    progress = ProgressBar(log, every_seconds=every, stream=stream)
    encode: Any = partial(
        errors.try_call, build_or_open, vocabularies=vocabularies, progress=progress
    )
    # The filters would select the development pairs.
    off: Any = dict.fromkeys(("drop_copies", "drop_duplicates"), False)
    off |= {"max_length_ratio": 0.0, "filters": "", "temperature": 1.0}
    unfiltered = dataclasses.replace(config.data, **off)
    caches = encode(train, config=config.data), encode(dev, config=unfiltered)
    errors.raise_if_any()
    directions = [""] * len(dev_lines)
    if dev is not None and directions_of(dev):
        directions = directions_of_pairs(dev)
        dev_lines = list(with_tags(dev, vocabularies.source))
    if config.data.modifier_rates:  # Raises what they cannot do.
        ModifiedPairs(caches[0], vocabularies, config=config.data, seed=config.seed)
    parts = config.data, config.seed, vocabularies, *caches
    return PreparedData(*parts, dev_lines, directions)


def _open_corpora(
    config: Config, errors: ErrorCollector
) -> tuple[Corpus, Corpus | None, Sequence[tuple[str, str]]]:
    """Opens the training and the development corpus, and reads the lines of the latter.

    Raises:
      UserError: all errors of both, and those collected before.
    """
    train_spec, dev_spec = errors.try_call(train_and_dev, config.data) or (None, None)
    joiner, evaluates = config.data.subword_joiner, config.evaluation.every_steps > 0
    train = errors.try_call(open_corpus, train_spec, key="data.train", joiner=joiner)
    dev = errors.try_call(partial(_open_dev, config), dev_spec if evaluates else None)
    errors.try_call(check_cache_writable, config.data)
    dev_lines = errors.try_call(list, dev) if evaluates else ()
    if train and dev:
        errors.check(
            bool(directions_of(train)) == bool(directions_of(dev)),
            "data.train and data.dev must both name their languages, as #en-de after "
            "each corpus, or neither. Change config.data.dev.",
        )
    if errors.messages:  # Before a vocabulary is trained.
        errors.try_call(deque(maxlen=0).extend, train)
    errors.raise_if_any()
    return train, dev, dev_lines


def _open_dev(config: Config, spec: str) -> Corpus:
    """Opens the development corpus; its errors name its configuration key."""
    if not spec:
        raise ConfigError(
            f"evaluation.every_steps={config.evaluation.every_steps} needs development "
            "text, and data.dev is empty. Set config.data.dev (dev= "
            "of t2t_jax.train), or config.data.dev_pairs to hold pairs out of "
            "data.train, or config.evaluation.every_steps=0 for no evaluation."
        )
    # Held-out pairs (`data.dev_pairs`) come from the training corpus.
    key = "data.dev" if config.data.dev else "data.train"
    dev = open_corpus(spec, key=key, joiner=config.data.subword_joiner)
    if any(weight != 1 for _, weight in parts_of(dev)):
        raise spec_error(key, spec, "have no weights: each pair is scored once")
    return dev


def _report(
    text: PreparedData,
    held_out: Sequence[Corpus],
    *,
    config: Config,
    workdir: Workdir,
    log: Log,
) -> None:
    """Logs a summary of the text; writes `data_report.txt` and `data.json`."""
    train, dev, path = text.train, text.dev, workdir.path / REPORT
    leaks = find_all_leaks(train, [*(dev.corpora if dev else ()), *held_out])
    report = describe_data(
        text.vocabularies, config=config.data, train=train, dev=dev, leaks=leaks
    )
    for cache in filter(None, (train, dev)):
        log(summary_line(cache))
    copies = copy_warnings({**report["train"]["copies"], **leaks})
    for warning in [*drop_warnings(train), *leak_warnings(leaks), *copies]:
        log(f"{warning} See {path}.")
    if dev and (missing := _unscored(train, dev)):
        log(
            f"The development text lacks {short_name(', '.join(missing))}: scores, and "
            "the choice of the best step, are of the other directions alone. "
            "Set config.data.dev to text of all."
        )
    atomic_write(path, report_text(report))
    source = text.vocabularies.source
    lines = measure_source_lines(train, source, count_sentences=_count_sentences)
    inputs = {**vocabulary_settings(config), "corpus": str(train.meta["corpus"])}
    data = {**report, SOURCE_LINES: lines.to_json(), "vocabulary_lesson": inputs}
    began_with = workdir if workdir.has_config else Workdir(Path(config.init_from))
    if config.init_from and (origin := imported_origin(began_with)):
        data[BEGAN_WITH] = origin
    workdir.write_json("data.json", data)


def _count_sentences(line: str) -> int:
    return len(lay_out(line, split="sentences").sentences)


def _unscored(train: TokenCache, dev: TokenCache) -> list[str]:
    """Lists the directions of the training text that no development pair has."""
    trained, scored = (
        dict.fromkeys("-".join(direction_of(part)) for part in cache.corpora)
        for cache in (train, dev)
    )
    return [direction for direction in trained if direction not in scored]


def _load_vocabularies(
    train: Corpus, config: Config, *, workdir: Workdir, log: Log
) -> VocabularyPair:
    """Loads the vocabularies of the run, its first model or files, or trains them."""
    settings = config.vocabulary
    if workdir.has_config:
        return VocabularyPair.load(workdir.path, config=settings)
    vocabularies = load_partial_vocabularies(train, config, workdir.path)
    if vocabularies is None and config.init_from:
        vocabularies = read_vocabularies(config)
    elif vocabularies is None:
        languages, seed = [to for _, to in directions_of(train)], config.seed
        vocabularies = VocabularyPair.load_or_train(
            train, config=settings, seed=seed, log=log, target_languages=languages
        )
        vocabularies.check(settings, name=settings.file or settings.source_file)
    require_same_vocabularies(vocabularies, workdir.path)
    if (tags := vocabularies.source.tags) and not directions_of(train):
        if not split_tag(next((source for source, _ in train), ""), tags)[1]:
            raise ConfigError(
                f"data.train={config.data.train!r} must name its languages, as #en-de "
                f"after each corpus: the vocabulary has tags of {shown_tags(tags)}. "
                "Change config.data.train."
            )
    return vocabularies


class TextPair(NamedTuple):
    """One pair of a batch.

    Attributes:
      source: decoded from its subwords, as the model reads it, unknown ones included.
      source_subwords: those of the source, separated by spaces; "" without BPE-dropout.
      target: decoded as the source is.
      target_subwords: those of the target, as of the source.
    """

    location: PairLocation
    source: str
    source_subwords: str
    target: str
    target_subwords: str


class BatchContents(NamedTuple):
    """The batch of one step."""

    position: DataPosition
    num_rows: int
    pairs: tuple[TextPair, ...]


def read_batch(
    text: PreparedData,
    step: int,
    *,
    records: Iterable[Record] = (),
    log: Log = lambda text: None,
) -> BatchContents:
    """Reads the batch of a step from the token cache.

    With BPE-dropout or modifiers its epoch is sampled again.

    Args:
      step: of training, from 1; past or future.
      log: gets lines on the sampling of subwords, if there is any.
      records: of the run's metrics.jsonl. Planning starts at the last one before the
        step that has the position of its batch; without any it starts at step 1, which
        takes 5 to 7 s per epoch of 4.5 million pairs.
    """
    known, start = _last_position(records, step)
    seed, ahead = text.seed, step - known
    sampled = text.sampled_epochs(log=log, ahead=False)
    position, batch, tokens = find_batch(
        text.train, text.config, seed=seed, start=start, ahead=ahead, tokens=sampled
    )
    columns: list[list[str]] = []
    sides = (tokens.source, tokens.target), text.config.bpe_dropout
    for vocabulary, side, dropout in zip(text.vocabularies, *sides, strict=True):
        ids = side.ids(batch.pairs)
        pieces = [" ".join(vocabulary.pieces(one[:-1])) * bool(dropout) for one in ids]
        columns += [vocabulary.decode(ids), pieces]
    places = map(text.train.locate, map(int, batch.pairs))
    pairs = starmap(TextPair, zip(places, *columns, strict=True))
    return BatchContents(position, batch.num_rows, tuple(pairs))


def _last_position(records: Iterable[Record], step: int) -> tuple[int, DataPosition]:
    """Returns the last step up to `step` whose batch position is known, and that."""
    found = (1, START)
    for record in records:
        values = [record["step"], record.get("epoch"), record.get("batch")]
        if all(type(one) is int for one in values) and found[0] <= values[0] <= step:
            found = (values[0], DataPosition(*values[1:]))
    return found
