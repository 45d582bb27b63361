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
from t2t_jax.cli.flags.translation import (
    PARSING,
    TOKENIZED,
    VASWANI,
    EvaluateOptions,
)
from t2t_jax.cli.processes.shared_model import load_mean, load_one, require_run_for_last
from t2t_jax.cli.processes.start import start_processes
from t2t_jax.cli.translation.distributed_job import distributed, serve
from t2t_jax.cli.translation.job import TranslationJob
from t2t_jax.cli.translation.progress import TRANSLATING, start_progress
from t2t_jax.cli.translation.windows import LineWindow
from t2t_jax.data.corpora.text_files import undo_joins
from t2t_jax.data.files.lines import read_lines
from t2t_jax.data.report.leakage import MANY_COPIES
from t2t_jax.errors import DataError, ErrorCollector, UserError

if TYPE_CHECKING:
    from t2t_jax.decoding.config import DecodingConfig
    from t2t_jax.inference.model import TranslationModel


class Corpus(NamedTuple):
    """The lines of the evaluation files.

    Attributes:
      references: one per source.
      baseline: another system's translations, or None.
    """

    sources: list[str]
    references: list[str]
    baseline: list[str] | None


def read_corpus(options: EvaluateOptions) -> Corpus:
    """Reads `source`, `reference` and `baseline`, and checks their line counts.

    Joins of subwords are undone if the run has a `data.subword_joiner`.

    Raises:
      UserError: a file cannot be read, is empty, or has another number of lines.
    """
    names = {
        name: getattr(options, name)
        for name in ("source", "reference", "baseline")
        if getattr(options, name)
    }
    errors = ErrorCollector()
    joiner = options.config.data.subword_joiner
    lines = {
        name: errors.try_call(_lines, path, joiner=joiner)
        for name, path in names.items()
    }
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


def open_hypotheses(options: EvaluateOptions, files: ExitStack) -> BinaryIO | None:
    """Opens the file `options.hypotheses` for writing.

    Args:
      files: closes the file.

    Returns:
      None if no file is given.

    Raises:
      UserError: the file cannot be written.
    """
    path = options.hypotheses
    if not path:
        return None
    if path == "-":
        raise UserError(
            "--hypotheses=- must be a file: stdout is for the scores. Pass a file."
        )
    inputs = [f for f in (options.source, options.reference, options.baseline) if f]
    return files.enter_context(open_output(path, flag="hypotheses", inputs=inputs))


def file_records(
    options: EvaluateOptions, corpus: Corpus, hypotheses: list[str]
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


def _lines(path: str, *, joiner: str) -> list[str]:
    return [undo_joins(line, joiner) for line in read_lines(path)]


class _TranslatedCorpus(NamedTuple):
    """The translations to score, the model that made them, and the time taken."""

    model: TranslationModel
    hypotheses: list[str]
    seconds: float


def run(options: EvaluateOptions) -> int:
    """Prints the scores as one JSON object on stdout, and BLEU and chrF on stderr.

    With a protocol, also prints a table on stderr. Of several processes, process 0
    reads, scores and writes, and the others translate shares.

    Raises:
      UserError: files or workdir are invalid (before JAX is imported), or an optional
        package is missing.
    """
    start_processes(options)
    if not options.processes.is_first:
        serve(_load(options), options.processes)
        return 0
    by_protocol = _evaluate_by_protocol if options.protocol else _evaluate_as_configured
    evaluate = _evaluate_parses if options.protocol == PARSING else by_protocol
    result = evaluate(options)
    from t2t_jax.cli.console.protocol_report import show_scores

    show_scores(result, file=sys.stderr)
    print(json.dumps(result))
    return 0


def _evaluate_as_configured(options: EvaluateOptions) -> dict[str, Any]:
    """Evaluates one checkpoint with the run's configuration."""
    corpus = read_corpus(options)
    translated = _translate(options, corpus)

    from t2t_jax.evaluation.bleu import BleuSettings, corpus_scores
    from t2t_jax.evaluation.significance import paired_test

    bleu = BleuSettings(options.config.evaluation.tokenize)
    result = {
        **corpus_scores(translated.hypotheses, corpus.references, bleu=bleu),
        "sentences": len(corpus.references),
        "seconds": translated.seconds,
        "checkpoint_step": translated.model.step,
    }
    if corpus.baseline is not None:
        result["paired_test"] = paired_test(
            translated.hypotheses,
            corpus.references,
            baseline=corpus.baseline,
            bleu=bleu,
        )
    return result


def _evaluate_by_protocol(options: EvaluateOptions) -> dict[str, Any]:
    """Evaluates as the paper does (§6.1), or on tokens with the run's own search."""
    from t2t_jax.evaluation import protocol

    require_run_for_last(options)
    errors = ErrorCollector()
    tokenize = errors.try_call(_tokenizer, options)
    corpus = errors.try_call(read_corpus, options)
    errors.raise_if_any()
    warn_of_tokenization(options, corpus.references)
    translated = _translate(options, corpus)
    used = _decoding(options)
    return {
        "protocol": options.protocol,
        **_protocol_scores(options, translated.hypotheses, corpus, tokenize),
        "target_language": options.target_language,
        "is_tokenized": options.tokenize == "none",
        "sentences": len(corpus.references),
        "seconds": translated.seconds,
        **_model_facts(translated.model),
        "decoding": dataclasses.asdict(used),
        "overruled": _overridden(options, used),
        "files": file_records(options, corpus, translated.hypotheses),
        "versions": protocol.versions(),
    }


def _evaluate_parses(options: EvaluateOptions) -> dict[str, Any]:
    """Evaluates a parser: trees by EVALB's rules, with the run's own search (§6.3)."""
    from t2t_jax.cli.translation import parsing
    from t2t_jax.evaluation import protocol

    require_run_for_last(options)
    bank = parsing.read_treebank(options)
    corpus = Corpus(bank.sources, [str(tree) for tree in bank.trees], None)
    translated = _translate(
        options,
        corpus,
        written=lambda lines: [
            str(parse.tree) for parse in parsing.read_outputs(bank.sources, lines)
        ],
    )
    parses = parsing.read_outputs(bank.sources, translated.hypotheses)
    trees = [str(parse.tree) for parse in parses]
    return {
        "protocol": options.protocol,
        **parsing.treebank_scores(options, bank, parses),
        "seconds": translated.seconds,
        **_model_facts(translated.model),
        "decoding": dataclasses.asdict(options.config.decoding),
        "overruled": {},
        "files": file_records(options, corpus, trees),
        "versions": protocol.versions(),
    }


def _protocol_scores(
    options: EvaluateOptions,
    hypotheses: list[str],
    corpus: Corpus,
    tokenize: Callable[[str], str],
) -> dict[str, Any]:
    from t2t_jax.evaluation import protocol
    from t2t_jax.evaluation.bleu import BleuSettings

    settings: dict[str, Any] = {
        "tokenize": tokenize,
        "baseline": corpus.baseline,
        "bleu": BleuSettings(options.tokenize),
    }
    if options.protocol == TOKENIZED:
        settings["lowercase"] = options.lowercase
        return protocol.tokenized_scores(hypotheses, corpus.references, **settings)
    return protocol.protocol_scores(hypotheses, corpus.references, **settings)


def _tokenizer(options: EvaluateOptions) -> Callable[[str], str]:
    """Returns Moses's tokenizer, or for tokenised text what leaves a line as it is."""
    from t2t_jax.evaluation.tokenized_bleu import moses_tokenizer

    if options.tokenize == "none":
        return str
    return moses_tokenizer(options.target_language)


def warn_of_tokenization(options: EvaluateOptions, references: Sequence[str]) -> None:
    """Logs a warning if the references do not look as `options.tokenize` has them."""
    from t2t_jax.evaluation.tokenized_bleu import share_of_tokenized

    share, is_tokenized = share_of_tokenized(references), options.tokenize == "none"
    if share is None or (share >= 0.5) == is_tokenized:
        return
    looks = "tokenized"
    advice = "If it is, pass --tokenize=none, and it is not tokenized again."
    if is_tokenized:
        looks = "raw"
        advice = "With --tokenize=none it must be tokenized. Pass a file that is."
    log(f"warning: --reference={options.reference} looks {looks}. {advice}")


def _translate(
    options: EvaluateOptions,
    corpus: Corpus,
    *,
    written: Callable[[list[str]], list[str]] = list,
) -> _TranslatedCorpus:
    """Translates the sources, and writes the hypotheses if a file is given.

    Args:
      written: makes the lines of that file of the hypotheses.
    """
    num_lines = len(corpus.sources)
    with ExitStack() as files:
        out = open_hypotheses(options, files)
        job = _load(options)
        began = time.perf_counter()
        with (
            distributed(job, options.processes) as translate_window,
            start_progress(TRANSLATING, num_lines) as progress,
        ):
            window = LineWindow(0, corpus.sources, None)
            output = translate_window(window, seen=progress.advance)
        seconds = time.perf_counter() - began
        hypotheses = [line.partition(" ")[2] for line in output]  # without the status
        if out is not None:
            write_lines(out, written(hypotheses))
    return _TranslatedCorpus(job.model, hypotheses, seconds)


def _averages(options: EvaluateOptions) -> bool:
    """Returns whether the last checkpoints are averaged: always in the paper's."""
    return options.protocol == VASWANI or options.last > 0


def _decoding(options: EvaluateOptions) -> DecodingConfig:
    """Returns the search settings: the paper's with its protocol, or the run's.

    All protocols compare lines as they are.
    """
    from t2t_jax.evaluation.protocol import protocol_decoding

    own = options.config.decoding
    if options.protocol == VASWANI:
        return protocol_decoding(own)
    return dataclasses.replace(own, segment="lines") if options.protocol else own


def _load(options: EvaluateOptions) -> TranslationJob:
    """Loads a checkpoint, or an average of the last, in memory.

    Collective: call on every process.
    """
    decoding = _decoding(options)
    checkpoint = "last" if _averages(options) else options.checkpoint
    if _averages(options) and not options.workdir.is_model:
        model = load_mean(options, decoding=decoding)
    else:
        model = load_one(options, checkpoint=checkpoint, decoding=decoding)
    return TranslationJob(
        model, model.translator(), lambda number, line, translation: translation.text
    )


def _overridden(options: EvaluateOptions, used: DecodingConfig) -> dict[str, Any]:
    """Lists the given options that the protocol overrides."""
    from t2t_jax.evaluation import protocol

    overridden: dict[str, Any] = {**protocol.overridden(options.config.decoding, used)}
    if options.checkpoint != "best" and _averages(options):
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
