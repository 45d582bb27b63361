"""`--mode=distill`: a teacher translates text, as training text of a student.

Source: sequence-level knowledge distillation, Kim and Rush 2016 (arXiv 1606.07947).

The directory `--to` gets, in this order, `sources.txt`, each line once;
`translations.tsv`, by the resumable job of `--mode=translate`; with a reverse model
`targets.txt` and `back.tsv`; `pairs.tsv.gz` and `distill.json`. Each command makes them
again, but for what the job has kept, and compares: none is ever replaced.
"""

from __future__ import annotations

import dataclasses
import gzip
import json
import math
import re
from collections.abc import Iterable, Iterator
from itertools import chain, compress, islice, repeat
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt

from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.console.text_io import make_directory, open_output, write_lines
from t2t_jax.cli.flags.options import DistillOptions
from t2t_jax.cli.flags.parse_argv import explaining_foreign
from t2t_jax.cli.processes import start_processes
from t2t_jax.cli.translation.sharded_job import OutputShards, translate_shards
from t2t_jax.data.corpora.corpus import (
    direction_of,
    directions_of,
    parts_of,
    tag_of,
    truncate,
)
from t2t_jax.data.corpora.open import open_corpus, train_and_dev
from t2t_jax.data.corpora.text_files import undo_joins
from t2t_jax.data.files.file_facts import count_lines
from t2t_jax.data.files.lines import read_lines
from t2t_jax.data.token_cache.filters import DuplicateFilter, text_hashes
from t2t_jax.data.token_cache.known_words import words_of
from t2t_jax.data.vocabulary.tokenizers import known_languages, shown_tags
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.devices.distributed.processes import barrier
from t2t_jax.errors import DataError, InputMissingError, UserError, rewording
from t2t_jax.files import sha256_of
from t2t_jax.run.workdir import Workdir

REASONS = {
    "failed": "the translation is empty, cut, without an end or short",
    "copy": "the translation is the source, of more than three words",
    "repetition": "it has words or letters three times in a row, the source has not",
    "length_ratio": "the sides differ in length far more than usual, not both short",
    "low_score": "of the lowest log-probability a token (--drop_worst)",
    "low_agreement": "of the lowest chrF of the translation back (--drop_worst)",
}
"""Why a pair is left out, in the order of the checks -> what that means."""

_KEPT = len(REASONS)
_GOOD = ("ok", "chunked", "unfamiliar")  # statuses of lines
_REPETITION = re.compile(  # within words, as of Chinese; or of words, but not thousands
    r"([^\W\d_].{1,40}?)\1{2,}"
    r"|(?<!\w)(\w.{0,80}?)(?:(?![.,'\u2019\s]\d{3}(?!\d))\W+\2){2,}(?!\w)",
    re.IGNORECASE,
)
Floats = npt.NDArray[np.float64]
_WINDOW, _EXAMPLES = 10_000, 3
_SHORT_WORDS, _SHORT_CHARACTERS = 3, 20
# A tenth of a window at least, and for large text all of one, so that few batches are
# partial: an accelerator translates that in seconds.
_LEAST_LINES, _MOST_LINES, _SHARDS = 1_000, 10_000, 100


def run(options: DistillOptions) -> None:
    """Writes pairs of sources and translations; prints what was left out, and why.

    Of several processes, each translates shards; process 0 does the rest.

    Raises:
      UserError: options, models or text are invalid, or a file of the directory is not
        what was written.
    """
    start_processes(options)
    reverse = _reversed(options) if options.reverse else None
    if options.export:
        _require_export(options)
    to, processes = Path(options.to), options.processes
    sources, targets = to / "sources.txt", to / "targets.txt"
    if processes.is_first:
        make_directory(options.to)
        _write_once(sources, _sources(options))
    barrier(processes, "sources are written")
    # Without --reverse, a language that the teacher does not take is refused.
    teacher = _with_known_languages(options) if options.reverse else options
    found = _translate(teacher, sources, to / "translations.tsv")
    back = None
    if reverse:
        if processes.is_first:
            _write_once(targets, (row[-1] for row in _rows(found)))
        barrier(processes, "targets are written")
        back = _translate(reverse, targets, to / "back.tsv")
    if processes.is_first:
        _write_pairs(options, sources, found, back)


def _require_export(options: DistillOptions) -> None:
    """Checks that `--export` is an export that can search as the options say."""
    if not (Path(options.export) / "model.bin").is_file():
        raise InputMissingError(
            f"--export={options.export} has no model.bin, so it is no export to "
            "CTranslate2. Make one with --mode=export --format=ctranslate2."
        )
    decoding, usual = options.config.decoding, DecodingConfig()
    others = [
        f"config.decoding.{key}"
        for key in ("sample", "mbr", "constraint", "shortlist")
        if getattr(decoding, key) != getattr(usual, key)
    ] + ["--ensemble"] * bool(options.ensemble)
    if others:
        raise UserError(
            f"--export searches with a beam over one model, without "
            f"{', '.join(others)}. Unset it, or leave --export out."
        )


def _sources(options: DistillOptions) -> Iterator[str]:
    """Yields the lines to translate that are not blank, each once."""
    files = chain.from_iterable(map(read_lines, options.sources))
    given = (undo_joins(line, options.config.data.subword_joiner) for line in files)
    lines = given if options.sources else _training_sources(options)
    seen = DuplicateFilter()
    while window := list(islice(lines, _WINDOW)):
        texts = [line for line in window if line.strip()]
        yield from compress(texts, seen.is_new(text_hashes(texts)))
    if not len(seen.values()):
        raise DataError("There is no line to translate. Pass other --sources.")


def _training_sources(options: DistillOptions) -> Iterator[str]:
    """Yields the sources of the teacher's text but for those that are translations."""
    data = options.config.data
    with rewording(lambda problem: f"{problem} Or pass --sources=FILE."):
        spec, _ = train_and_dev(data)
        corpus = open_corpus(spec, key="data.train", joiner=data.subword_joiner)
    source, target = options.source_language, options.target_language
    every = directions_of(corpus)
    fitting = [d for d in every if source in ("", d[0]) and target in ("", d[1])]
    if len(targets := sorted({target for _, target in fitting})) > 1:
        raise UserError(
            f"{options.workdir.path} translates into {', '.join(targets)}. Pass "
            "--target_language, one of them."
        )
    for part, _ in parts_of(corpus):
        if direction_of(part) in (("", ""), *fitting) and not tag_of(part):
            yield from (source for source, _ in part)


def _translate(options: DistillOptions, source: Path, to: Path) -> Path:
    """Translates a file by shards, or continues to."""
    lines = count_lines(source)
    shards = -(-lines // min(max(_LEAST_LINES, lines // _SHARDS), _MOST_LINES))
    known = OutputShards(to, count=1, lines=lines)
    if options.processes.is_first:
        if to.exists() and not (known.directory.exists() or known.record.exists()):
            raise DataError(
                f"{to} is complete, but {known.record.name}, which says what it was "
                f"made of, is missing. Remove {to.name}, or choose another --to."
            )
        log(f"Translating {source} with {options.export or options.workdir.path} …")
    advice = "With --mode=distill, which resumes: remove the file, or change --to."
    job = dataclasses.replace(options, input=str(source), output=str(to))
    with rewording(lambda problem: f"{problem} {advice}"):
        translate_shards(dataclasses.replace(job, shards=options.shards or shards))
    return to


def _reversed(options: DistillOptions) -> DistillOptions:
    """Returns the options of translating back, by the model's own beam search.

    Raises:
      UserError: the model does not exist, or a language that it needs is missing.
    """
    workdir = Workdir(Path(options.reverse))
    with (
        explaining_foreign({"reverse": workdir}),
        rewording(lambda problem: f"--reverse={problem}"),
    ):
        config = workdir.read_config()
    own = dataclasses.replace(config.decoding, sample=False, n_best=1, mbr="none")
    changes: dict[str, Any] = {
        "workdir": workdir,
        "config": dataclasses.replace(config, decoding=own),
        "checkpoint": "best",
        "ensemble": (),
        "export": "",
        "source_language": options.target_language,
        "target_language": options.source_language,
    }
    known = _with_known_languages(dataclasses.replace(options, **changes))
    side = workdir.read_vocabularies(config.vocabulary).source
    needs = (
        f"--reverse={workdir.path} translates from --target_language into "
        f"--source_language, and has tags of {shown_tags(side.tags)}. Pass these flags."
    )
    with rewording(lambda _: needs):
        side.split_tags(["a line"], **known.languages)
    return known


def _with_known_languages(options: DistillOptions) -> DistillOptions:
    """Returns the options with those of the languages that the model's tags name."""
    # Not those of `options.languages`, which are None where none is given.
    names = {name: getattr(options, name) for name in options.languages}
    if not any(names.values()):
        return options
    side = options.workdir.read_vocabularies(options.config.vocabulary).source
    known: dict[str, Any] = known_languages(side, **names)
    return dataclasses.replace(options, **known)


def _rows(path: Path) -> Iterator[list[str]]:
    """Yields the best translation of each line, in the columns of `--format=tsv`.

    Raises:
      DataError: a line is missing.
    """
    rows = (line.split("\t") for line in read_lines(path))
    for number, row in enumerate((row for row in rows if row[1] == "1"), start=1):
        if row[0] != str(number):
            raise DataError(f"{path} lacks line {number:,}. Remove it.")
        yield row


def _write_pairs(
    options: DistillOptions, sources: Path, found: Path, back: Path | None
) -> None:
    """Writes the pairs that are kept, and what was left out."""
    scores, reasons = _judge(options, sources, found, back)
    dropped: dict[str, Any] = {
        name: {"pairs": int((reasons == number).sum()), "examples": []}
        for number, name in enumerate(REASONS)
    }

    def kept() -> Iterator[str]:
        rows = zip(reasons, scores, read_lines(sources), _rows(found), strict=True)
        for reason, numbers, source, row in rows:
            pair = source.replace("\t", " "), row[-1]
            if reason == _KEPT:
                yield "\t".join((*pair, *(f"{one:.4f}" for one in numbers), row[0]))
                continue
            examples = dropped[[*REASONS][reason]]["examples"]
            if len(examples) < _EXAMPLES:
                examples.append([int(row[0]), *pair])

    to = Path(options.to)
    _write_once(pairs := to / "pairs.tsv.gz", kept())
    files = [path for path in (sources, found, back, pairs) if path]
    report: dict[str, Any] = {
        "teacher": options.export or str(options.workdir.path),
        "lines": len(reasons),
        "pairs": int((reasons == _KEPT).sum()),
        "dropped": dropped,
        "sha256": {path.name: sha256_of(path) for path in files},
    }
    text = json.dumps(report, indent=1, ensure_ascii=False)
    _write_once(to / "distill.json", text.split("\n"))
    if 2 * report["pairs"] < len(reasons):
        log("warning: over half of the pairs are left out. Look at the reasons.")
    with open_output("-") as out:
        write_lines(out, _summary(report, pairs))


def _judge(
    options: DistillOptions, sources: Path, found: Path, back: Path | None
) -> tuple[Floats, npt.NDArray[np.int8]]:
    """Returns the scores of each pair, and why it is left out.

    Returns:
      [P, 1 or 2] log-probability of a token, in nats, and chrF of the translation
      back; [P] an index into `REASONS`, or `_KEPT`.
    """
    from t2t_jax.report.inspection.inspector import unusual_ratios

    agreements = _agreements(sources, back) if back else repeat(())
    rows = zip(read_lines(sources), _rows(found), agreements, strict=False)
    dtype = np.dtype((np.float64, 5 if back else 4))
    first, is_long, ratios, *scores = np.fromiter((_facts(*r) for r in rows), dtype).T
    reasons = first.astype(np.int8)

    def drop(name: str, mask: npt.NDArray[np.bool_]) -> None:
        reasons[mask & (reasons == _KEPT)] = [*REASONS].index(name)

    unusual = unusual_ratios(ratios, among=reasons == _KEPT)
    drop("length_ratio", unusual & (is_long > 0))
    left = np.flatnonzero(reasons == _KEPT)
    for name, column in zip(("low_score", "low_agreement"), scores, strict=False):
        worst = left[np.argsort(column[left], kind="stable")]
        worst = worst[: round(options.drop_worst * len(left))]
        drop(name, np.isin(np.arange(len(reasons)), worst))
    return np.stack(scores, axis=1), reasons


def _facts(source: str, row: list[str], agreement: tuple[float, ...]) -> Any:
    """Returns what decides about a pair; of short ones copies and ratios do not.

    Returns:
      The first of the reasons that need no other pair, or `_KEPT`; whether a side is
      long; the logarithm of the ratio of the lengths; and the scores.
    """
    target = row[-1]
    has_words = len(words_of(source)) > _SHORT_WORDS
    fails = (
        row[2] not in _GOOD,
        has_words and source.strip() == target.strip(),
        bool(_REPETITION.search(target) and not _REPETITION.search(source)),
    )
    return (
        fails.index(True) if any(fails) else _KEPT,
        max(len(source), len(target)) > _SHORT_CHARACTERS,
        math.log((len(target) + 1) / (len(source) + 1)),
        float(row[4]) / max(int(row[5]), 1),
        *agreement,
    )


def _agreements(sources: Path, back: Path) -> Iterator[tuple[float]]:
    """Yields the chrF of each translation back."""
    from sacrebleu.metrics import CHRF

    metric = CHRF()
    for source, row in zip(read_lines(sources), _rows(back), strict=True):
        yield (metric.sentence_score(row[-1], [source]).score,)


def _summary(report: dict[str, Any], pairs: Path) -> Iterator[str]:
    """Yields lines: what was left out, with examples, and what is next."""
    yield f"{report['lines']:,} lines translated, {report['pairs']:,} pairs kept"
    for name, meaning in REASONS.items():
        one = report["dropped"][name]
        yield f"  {one['pairs']:>11,}  {name:<13}  {meaning}"
        for line, *pair in one["examples"]:
            yield f"{'':15}line {line:,}: {' -> '.join(map(truncate, pair))}"
    yield f"  to train on it: --config.data.train=tsv:{pairs}"


def _write_once(path: Path, lines: Iterable[str]) -> None:
    """Writes a file atomically, or compares it with what is there.

    Raises:
      DataError: there is another content.
    """
    new = path.with_name(f".{path.name}")
    with open_output(str(new), flag="to") as out:
        if path.suffix == ".gz":
            # The same bytes at any time.
            with gzip.GzipFile("", "wb", fileobj=out, mtime=0) as packed:
                write_lines(cast("BinaryIO", packed), lines)
        else:
            write_lines(out, lines)
    if not path.exists():
        new.rename(path)
        return
    is_same = sha256_of(new) == sha256_of(path)
    new.unlink()
    if not is_same:
        raise DataError(
            f"{path} is not what this command writes: its text, model or settings have "
            "changed, or it is corrupt. Remove it, or choose another --to."
        )
