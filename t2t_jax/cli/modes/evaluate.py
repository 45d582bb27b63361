"""`--mode=evaluate`: translates a file and scores it against references."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.console.text_io import open_output, write_lines
from t2t_jax.cli.flags.options import Options
from t2t_jax.cli.processes.shared_model import load_mean, load_one, require_run_for_last
from t2t_jax.cli.processes.stages import (
    RemoteFailure,
    check_same_input,
    check_same_settings,
    redirect_native_stdout,
    refuse_stdin,
    run_stage,
    shared_settings,
    translate_shared,
)
from t2t_jax.cli.translation.progress import TRANSLATING, start_progress
from t2t_jax.data.files.lines import read_lines
from t2t_jax.data.report.leakage import MANY_COPIES
from t2t_jax.errors import DataError, ErrorCollector, UserError

if TYPE_CHECKING:
    from t2t_jax.decoding.config import DecodingConfig
    from t2t_jax.inference.model import TranslationModel


class Corpus(NamedTuple):
    """The lines of the evaluation files.

    Attributes:
      references: untokenized, one per source.
      baseline: another system's translations, or None.
    """

    sources: list[str]
    references: list[str]
    baseline: list[str] | None


def read_corpus(options: Options) -> Corpus:
    """Reads `source`, `reference` and `baseline`, and checks their line counts.

    Raises:
      UserError: a file cannot be read, is empty, or has another number of lines.
    """
    names = {
        name: getattr(options, name)
        for name in ("source", "reference", "baseline")
        if getattr(options, name)
    }
    for name, path in names.items():
        refuse_stdin(options.processes, name, path)
    errors = ErrorCollector()
    lines = {name: errors.try_call(_lines, path) for name, path in names.items()}
    errors.raise_if_any()
    counts = {name: len(found) for name, found in lines.items()}
    problems = ErrorCollector()
    for name, count in counts.items():
        problems.check(
            count > 0, f"--{name}={names[name]} must have lines, and is empty."
        )
        problems.check(
            count == counts["reference"],
            f"{name.capitalize()} and reference must have the same number of lines: "
            f"{names[name]} has {count:,}, {names['reference']} has "
            f"{counts['reference']:,}.",
        )
    problems.raise_if_any(DataError)
    if options.processes.is_first:
        for name in ("source", "baseline"):
            if name in lines:
                warn_of_copies(names, lines, name)
    return Corpus(lines["source"], lines["reference"], lines.get("baseline"))


def warn_of_copies(
    names: Mapping[str, str], lines: Mapping[str, Sequence[str]], name: str
) -> None:
    """Logs a warning if many lines of a file equal their references.

    Args:
      names: paths by flag.
      lines: by flag; as many in each.
      name: the flag of the file to compare.
    """
    pairs = [
        (a.strip(), b.strip())
        for a, b in zip(lines[name], lines["reference"], strict=True)
    ]
    copies = sum(a == b for a, b in pairs if a)
    if copies and copies >= MANY_COPIES * len(pairs):
        log(
            f"warning: {copies:,} of the {len(pairs):,} lines of --{name}="
            f"{names[name]} ({copies / len(pairs):.0%}) are the same in --reference="
            f"{names['reference']}. Check that you passed the right files."
        )


def open_hypotheses(options: Options, files: ExitStack) -> BinaryIO | None:
    """Opens the file `options.hypotheses` for writing.

    Args:
      files: closes the file.

    Returns:
      None if no file is given, or if process 0 writes it.

    Raises:
      UserError: the file cannot be written.
    """
    path = options.hypotheses
    if not path or not options.processes.is_first:
        return None
    if path == "-":
        raise UserError(
            "--hypotheses=- must be a file: stdout is for the scores. Pass a file."
        )
    inputs = [f for f in (options.source, options.reference, options.baseline) if f]
    return files.enter_context(open_output(path, flag="hypotheses", inputs=inputs))


def file_records(
    options: Options, corpus: Corpus, hypotheses: list[str]
) -> dict[str, Any]:
    """Returns path, number of lines and sha256 of each file used or written."""
    from t2t_jax.evaluation.protocol import fingerprint_lines

    held = {
        "source": corpus.sources,
        "reference": corpus.references,
        "baseline": corpus.baseline,
        "hypotheses": hypotheses,
    }
    return {
        name: {
            "path": getattr(options, name) or None,
            "lines": len(lines),
            "sha256": fingerprint_lines(lines),
        }
        for name, lines in held.items()
        if lines is not None
    }


def _lines(path: str) -> list[str]:
    return list(read_lines(path))


class _Files(NamedTuple):
    """Input and output, opened before a model is loaded.

    Attributes:
      corpus: the lines of the input.
      out: the output for the translations, or None.
      settings: must be equal on all processes.
    """

    corpus: Corpus
    out: BinaryIO | None
    settings: dict[str, Any]


class _TranslatedCorpus(NamedTuple):
    """The translations to score, the model that made them, and the time taken."""

    model: TranslationModel
    hypotheses: list[str]
    seconds: float


def run(options: Options) -> int:
    """Prints the scores as one JSON object on stdout, and BLEU and chrF on stderr.

    With a protocol, also prints a table on stderr. Several processes translate shards
    of the lines, and process 0 scores all.

    Raises:
      UserError: files or workdir are invalid (before JAX is imported), or an optional
        package is missing.
    """
    redirect_native_stdout(options.processes)
    evaluate = _evaluate_by_protocol if options.protocol else _evaluate_as_configured
    try:
        with ExitStack() as files:
            evaluate(options, files)
    except RemoteFailure as ended:
        return ended.code
    return 0


def _evaluate_as_configured(options: Options, files: ExitStack) -> None:
    """Evaluates one checkpoint with the run's configuration."""

    def open_all() -> _Files:
        options.workdir.require()
        corpus = read_corpus(options)
        return _Files(corpus, open_hypotheses(options, files), shared_settings(options))

    opened = run_stage(options.processes, "opened", open_all)
    corpus = opened.corpus
    translated = _translate(
        options,
        opened,
        lambda: load_one(
            options, checkpoint=options.checkpoint, decoding=options.config.decoding
        ),
    )

    def score() -> dict[str, Any]:
        from t2t_jax.evaluation.bleu import corpus_scores
        from t2t_jax.evaluation.significance import paired_test

        _write(opened.out, translated.hypotheses, files)
        result = {
            **corpus_scores(translated.hypotheses, corpus.references),
            "sentences": len(corpus.references),
            "seconds": translated.seconds,
            "checkpoint_step": translated.model.step,
        }
        if corpus.baseline is not None:
            result["paired_test"] = paired_test(
                translated.hypotheses, corpus.references, baseline=corpus.baseline
            )
        return result

    _print(options, score, show=_show_headlines)


def _evaluate_by_protocol(options: Options, files: ExitStack) -> None:
    """Evaluates the average of the last checkpoints as the paper does (§6.1)."""
    from t2t_jax.evaluation import paper_bleu, protocol

    def open_all() -> tuple[_Files, Callable[[str], str]]:
        options.workdir.require()
        require_run_for_last(options)
        errors = ErrorCollector()
        tokenize = errors.try_call(paper_bleu.moses_tokenizer, options.target_language)
        corpus = errors.try_call(read_corpus, options)
        errors.raise_if_any()
        out = open_hypotheses(options, files)
        return _Files(corpus, out, shared_settings(options)), tokenize

    opened, tokenize = run_stage(options.processes, "opened", open_all)
    corpus = opened.corpus
    used = protocol.protocol_decoding(options.config.decoding)
    translated = _translate(options, opened, lambda: _load_average(options, used))

    def score() -> dict[str, Any]:
        _write(opened.out, translated.hypotheses, files)
        scores = protocol.protocol_scores(
            translated.hypotheses,
            corpus.references,
            tokenize=tokenize,
            baseline=corpus.baseline,
        )
        return {
            "protocol": options.protocol,
            **scores,
            "target_language": options.target_language,
            "sentences": len(corpus.references),
            "seconds": translated.seconds,
            **_model_facts(translated.model),
            "decoding": dataclasses.asdict(used),
            "overruled": _overridden(options, used),
            "files": file_records(options, corpus, translated.hypotheses),
            "versions": protocol.versions(),
        }

    _print(options, score, show=_show)


def _overridden(options: Options, used: DecodingConfig) -> dict[str, Any]:
    """Lists the given options that the protocol overrides."""
    from t2t_jax.evaluation import protocol

    overridden: dict[str, Any] = {**protocol.overridden(options.config.decoding, used)}
    if options.checkpoint != "best":
        overridden["checkpoint"] = {"asked": options.checkpoint, "used": "average"}
    return overridden


def _model_facts(model: TranslationModel) -> dict[str, Any]:
    from t2t_jax.evaluation.protocol import fingerprint_params

    return {
        "checkpoint_step": model.step,
        "averaged_steps": list(model.averaged_steps),
        "averaged_spacing": dict(model.spacing),
        "params_sha256": fingerprint_params(model.params),
        "vocabulary_sha256": {
            side: vocabulary.fingerprint
            for side, vocabulary in model.vocabularies._asdict().items()
        },
    }


def _load_average(options: Options, decoding: DecodingConfig) -> TranslationModel:
    """Averages a run's checkpoints in memory; loads a model as it is."""
    if options.workdir.is_model:
        return load_one(options, checkpoint="last", decoding=decoding)
    return load_mean(options, decoding=decoding)


def _translate(
    options: Options, opened: _Files, load: Callable[[], TranslationModel]
) -> _TranslatedCorpus:
    """Translates the sources on all devices of all processes."""
    processes, sources = options.processes, opened.corpus.sources

    def compare() -> None:
        check_same_settings(processes, opened.settings)
        check_same_input(processes, f"--source={options.source}", sources)

    run_stage(processes, "compared", compare)
    model = load()
    began = time.perf_counter()
    with start_progress(
        TRANSLATING, len(sources), is_enabled=processes.is_first
    ) as progress:
        hypotheses = translate_shared(processes, model, sources, seen=progress.advance)
    return _TranslatedCorpus(model, hypotheses, time.perf_counter() - began)


def _write(out: BinaryIO | None, hypotheses: list[str], files: ExitStack) -> None:
    """Writes the translations to their file, if one is given."""
    if out is not None:
        with files:  # Closed before scoring, which may fail.
            write_lines(out, hypotheses)


def _print(
    options: Options,
    score: Callable[[], dict[str, Any]],
    *,
    show: Callable[[dict[str, Any]], None],
) -> None:
    """Scores and prints on process 0; the others wait for its exit code."""

    def print_first() -> None:
        if options.processes.is_first:
            result = score()
            show(result)
            print(json.dumps(result))

    run_stage(options.processes, "scored", print_first)


def _show_headlines(result: dict[str, Any]) -> None:
    """Prints the headline scores on stderr."""
    from t2t_jax.evaluation.protocol_table import score_lines

    print(*score_lines(result), sep="\n", file=sys.stderr)


def _show(result: dict[str, Any]) -> None:
    """Prints the table on stderr, with folded columns on a terminal."""
    from t2t_jax.evaluation.protocol_table import format_rows, rows

    if not sys.stderr.isatty():
        print(format_rows(rows(result)), file=sys.stderr)
        _show_headlines(result)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False)
    for row in rows(result):
        # Text, because a file name may contain rich markup.
        table.add_row(*map(Text, row))
    Console(file=sys.stderr).print(table)
    _show_headlines(result)
