"""What `--mode=evaluate` scores: the files it reads, and their translations."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.console.text_io import open_output, write_lines
from t2t_jax.cli.flags.options import (
    VASWANI,
    AverageOptions,
    EvaluateOptions,
    ExportOptions,
    ModelOptions,
    ShortlistOptions,
)
from t2t_jax.cli.processes import load_mean, load_one
from t2t_jax.cli.translation.job import LineWindow, TranslationJob, distributed
from t2t_jax.cli.translation.progress import TranslationProgress
from t2t_jax.data.corpora.corpus import Corpus as CorpusOfPairs
from t2t_jax.data.corpora.corpus import directions_of_pairs, with_tags
from t2t_jax.data.corpora.open import files_of, open_corpus, train_and_dev
from t2t_jax.data.corpora.text_files import TextCorpus, undo_joins
from t2t_jax.data.files.lines import read_lines, require_files
from t2t_jax.data.report.leakage import copy_warnings
from t2t_jax.data.token_cache.token_cache import check_languages
from t2t_jax.errors import DataError, ErrorCollector, UserError, rewording

if TYPE_CHECKING:
    from t2t_jax.decoding.config import DecodingConfig
    from t2t_jax.run.inference.model import TranslationModel


class Corpus(NamedTuple):
    """The lines of the evaluation files.

    Attributes:
      references: one per source.
      baseline: another system's translations, or None.
      directions: of each line, such as en-de, of `--corpus`; else ().
      files: of `--corpus`.
    """

    sources: list[str]
    references: list[str]
    baseline: list[str] | None
    directions: Sequence[str] = ()
    files: Sequence[Path] = ()


class TranslatedCorpus(NamedTuple):
    """The translations to score, the model that made them, and the time taken.

    Attributes:
      statuses: the number of lines of each status but `ok`.
    """

    model: TranslationModel
    hypotheses: list[str]
    seconds: float
    statuses: dict[str, int]


def load_model(options: ModelOptions) -> TranslationModel:
    """Loads the checkpoint of the flags, with the search of the configuration.

    Raises:
      UserError: as `inference.load.load`.
    """
    from t2t_jax.run.inference.load import load

    path, decoding = options.workdir.path, options.config.decoding
    return load(path, checkpoint=options.checkpoint, decoding=decoding)


def open_pair(source: str, reference: str, *, joiner: str) -> TextCorpus:
    """Opens the files of `--source` and `--reference` as a corpus.

    Raises:
      InputMissingError: a file does not exist; both are named.
    """
    files = Path(source), Path(reference)
    require_files(*files, change="--source or --reference")
    return TextCorpus(f"text:{source},{reference}", *files, joiner)


def open_text(
    options: AverageOptions | ExportOptions | ShortlistOptions, *, split: str = "dev"
) -> CorpusOfPairs:
    """Opens the pairs of `--source` and `--reference`, or of a text of the run.

    Args:
      split: which text, "train" or "dev"; its sources have their tags.

    Raises:
      UserError: a file does not exist.
    """
    data, joiner = options.config.data, options.config.data.subword_joiner
    if options.source:
        return open_pair(options.source, options.reference, joiner=joiner)
    spec = train_and_dev(data)[split == "dev"]
    corpus = open_corpus(spec, key=f"data.{split}", joiner=joiner)
    both = options.workdir.read_vocabularies(options.config.vocabulary)
    return with_tags(corpus, both.source)


def read_corpus(options: EvaluateOptions) -> Corpus:
    """Reads `source`, `reference` and `baseline`, and checks their line counts.

    Or reads `corpus`, its sources with tags. Joins of subwords are undone if the run
    has a `data.subword_joiner`.

    Raises:
      UserError: a file cannot be read, is empty, or has another number of lines.
    """
    joiner = options.config.data.subword_joiner
    if options.corpus:
        both = options.workdir.read_vocabularies(options.config.vocabulary)
        with rewording(lambda problem: problem.replace("config.corpus", "--corpus")):
            corpus = open_corpus(options.corpus, key="corpus", joiner=joiner)
            check_languages(corpus, both.source)
            pairs = list(with_tags(corpus, both.source))
        sources, references = ([pair[side] for pair in pairs] for side in (0, 1))
        files = tuple(files_of(corpus))
        return Corpus(sources, references, None, directions_of_pairs(corpus), files)
    names = {"source": options.source, "reference": options.reference}
    if options.baseline:
        names["baseline"] = options.baseline
    lines = read_aligned(names, joiner=joiner)
    return Corpus(lines["source"], lines["reference"], lines.get("baseline"))


def read_aligned(
    names: Mapping[str, str], *, joiner: str, may_be_empty: bool = False
) -> dict[str, list[str]]:
    """Reads files that have as many lines as the reference; warns of copies of it.

    Args:
      names: paths by flag, one of them `reference`.
      joiner: `data.subword_joiner`; joins of subwords are undone.
      may_be_empty: whether files without lines are read.

    Raises:
      UserError: a file cannot be read, is empty, or has another number of lines.
    """
    errors, lines = ErrorCollector(), {}
    for name, path in names.items():
        raw = errors.try_call(lambda path: list(read_lines(path)), path)
        lines[name] = [undo_joins(line, joiner) for line in raw or ()]
    errors.raise_if_any()
    references, reference = lines["reference"], names["reference"]
    for name, found in lines.items():
        is_fine = bool(found) or may_be_empty
        errors.check(is_fine, f"--{name}={names[name]} must have lines. Pass another.")
        errors.check(
            len(found) == len(references),
            f"{name.capitalize()} and reference must have the same number of lines: "
            f"{names[name]} has {len(found):,}, {reference} has {len(references):,}.",
        )
    errors.raise_if_any(DataError)
    for name in names.keys() - {"reference"}:
        pairs = zip(lines[name], references, strict=True)
        copies = sum(bool(a.strip()) and a.strip() == b.strip() for a, b in pairs)
        counts = {"pairs": len(references), "copies": copies}
        spec = f"--{name}={names[name]} and --reference={reference}"
        for warning in copy_warnings({spec: counts}):
            log(warning)
    return lines


def warn_of_exchange(model: TranslationModel, pair: Sequence[Sequence[str]]) -> None:
    """Logs a warning if the references are more like the model's sources.

    Args:
      model: of known words, or there is no warning.
      pair: sources and references.
    """
    from t2t_jax.decoding.text.translation import UNFAMILIAR

    if model.known_words is None or not pair[0]:
        return
    source, reference = map(fmean, map(model.known_words.unseen_shares, pair))
    if source > max(reference, UNFAMILIAR):
        log(
            "warning: --source and --reference look exchanged: the source text of "
            f"training lacks {source:.0%} of the words of --source, and "
            f"{reference:.0%} of those of --reference. Check the order of the files."
        )


def translate_corpus(
    options: EvaluateOptions,
    corpus: Corpus,
    *,
    shown: Callable[..., list[str]] = list,
    sets: int = 1,
) -> TranslatedCorpus:
    """Translates the sources, and writes the hypotheses if a file is given.

    Args:
      shown: makes the lines of that file of the list of hypotheses.
      sets: that the corpus has of one size; warnings count the lines of each from 1.

    Raises:
      UserError: the file cannot be written.
    """
    name = options.hypotheses
    if name == "-":
        raise UserError("--hypotheses=- must be a file: stdout is for the scores.")
    given = options.source, options.reference, options.baseline, *corpus.files
    inputs = map(str, filter(None, given))
    with ExitStack() as files:
        if name:
            opened = open_output(name, flag="hypotheses", inputs=inputs)
            out = files.enter_context(opened)
        job = load_job(options)
        warn_of_exchange(job.model, (corpus.sources, corpus.references))
        began = time.perf_counter()
        with (
            distributed(job, options.processes) as translate_window,
            TranslationProgress(len(corpus.sources)) as progress,
        ):
            window = LineWindow(0, corpus.sources)
            output = iter(translate_window(window, seen=progress.advance))
            hypotheses: list[str] = []
            for _ in range(sets):
                one = islice(output, len(corpus.sources) // sets)
                hypotheses += progress.count_statuses(one, first=0)
        seconds = time.perf_counter() - began
        if name:
            write_lines(out, shown(hypotheses))
    statuses = {name: n for name, n in progress.statuses.items() if name != "ok"}
    return TranslatedCorpus(job.model, hypotheses, seconds, statuses)


def _averages(options: EvaluateOptions) -> bool:
    """Returns whether the last checkpoints are averaged: always in the paper's."""
    return options.protocol == VASWANI or options.last > 0


def _decoding_of(options: EvaluateOptions) -> DecodingConfig:
    """Returns the search settings: the paper's with its protocol, or the run's.

    All protocols compare lines as they are.
    """
    from t2t_jax.evaluation.protocol import protocol_decoding

    own = options.config.decoding
    if options.protocol == VASWANI:
        return protocol_decoding(own)
    return dataclasses.replace(own, segment="lines") if options.protocol else own


def load_job(options: EvaluateOptions) -> TranslationJob:
    """Loads a checkpoint, or an average of the last, in memory.

    Collective: call on every process.
    """
    decoding, averages = _decoding_of(options), _averages(options)
    if averages and not options.workdir.is_model:
        model = load_mean(options, decoding=decoding)
    else:
        checkpoint = "last" if averages else options.checkpoint
        model = load_one(options, checkpoint=checkpoint, decoding=decoding)
    # Of a model without tags it is that of Moses's tokenization.
    is_tag = not options.protocol or model.vocabularies.source.tags
    languages = options.languages if is_tag else {}
    return TranslationJob(
        model, model.translator(), lambda _, found: found.text, languages=languages
    )


def protocol_record(
    options: EvaluateOptions, found: TranslatedCorpus, corpus: Corpus, lines: list[str]
) -> dict[str, Any]:
    """Returns what made the scores of a protocol: model, search, files, versions.

    Args:
      lines: the hypotheses, as they are written to a file.
    """
    from t2t_jax.evaluation import protocol

    used = _decoding_of(options)
    overridden = protocol.overridden(options.config.decoding, used)
    if options.checkpoint != "best" and _averages(options):
        overridden["checkpoint"] = {"asked": options.checkpoint, "used": "average"}
    texts = {
        "source": corpus.sources,
        "reference": corpus.references,
        "baseline": corpus.baseline,
        "hypotheses": lines,
    }
    model = found.model
    return {
        "statuses": found.statuses,
        "seconds": found.seconds,
        "checkpoint_step": model.step,
        "averaged_steps": list(model.averaged_steps),
        "averaged_spacing": dict(model.spacing),
        "params_sha256": protocol.fingerprint_params(model.params),
        "vocabulary_sha256": {
            side: vocabulary.fingerprint
            for side, vocabulary in model.vocabularies._asdict().items()
        },
        "decoding": dataclasses.asdict(used),
        "overruled": overridden,
        "files": {
            name: {
                "path": getattr(options, name) or None,
                "lines": len(lines),
                "sha256": protocol.fingerprint_lines(lines),
            }
            for name, lines in texts.items()
            if lines is not None
        },
        "versions": protocol.versions(),
    }
