"""`--mode=evaluate`: translates a file and scores it against raw references."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from t2t_jax.cli.lines import opened_output, write_lines
from t2t_jax.cli.options import Options
from t2t_jax.data.lines import read_lines
from t2t_jax.errors import Attempts, DataError, Problems, UserError

if TYPE_CHECKING:
    from t2t_jax.decoding.config import DecodingConfig
    from t2t_jax.loading import Model


class _Corpus(NamedTuple):
    """What the files hold; the baseline is None where there is none."""

    sources: list[str]
    references: list[str]
    baseline: list[str] | None


def run(options: Options) -> int:
    """Prints one JSON object with the scores on stdout.

    With a protocol a table for people goes to stderr. What is wrong with a file is
    said before JAX is imported.

    Raises:
      UserError: files or workdir are not what they must be, or an extra is missing.
    """
    options.workdir.require()
    evaluate = _by_protocol if options.protocol else _as_configured
    with ExitStack() as files:
        print(json.dumps(evaluate(options, files)))
    return 0


def _as_configured(options: Options, files: ExitStack) -> dict[str, Any]:
    """Evaluates one checkpoint as it was configured, with no more than is needed."""
    corpus = _read(options)
    out = _opened(options, files)
    from t2t_jax.evaluation.bleu import corpus_scores
    from t2t_jax.evaluation.significance import paired_test
    from t2t_jax.loading import load

    model = load(
        options.workdir.path,
        checkpoint=options.checkpoint,
        decoding=options.config.decoding,
    )
    hypotheses, seconds = _translated(model, corpus, out, files=files)
    result = {
        **corpus_scores(hypotheses, corpus.references),
        "sentences": len(corpus.references),
        "seconds": seconds,
        "checkpoint_step": model.step,
    }
    if corpus.baseline is not None:
        result["paired_test"] = paired_test(
            hypotheses, corpus.references, baseline=corpus.baseline
        )
    return result


def _by_protocol(options: Options, files: ExitStack) -> dict[str, Any]:
    """Evaluates the mean of the last checkpoints as the paper does (section 6.1)."""
    from t2t_jax.evaluation import paper_bleu, protocol

    attempts = Attempts()
    tokenize = attempts.attempt(paper_bleu.moses_tokenizer, options.target_language)
    corpus = attempts.attempt(_read, options)
    attempts.raise_if_any_failed()
    out = _opened(options, files)
    asked = options.config.decoding
    used = protocol.protocol_decoding(asked)
    model = _averaged(options, used)
    hypotheses, seconds = _translated(model, corpus, out, files=files)
    scores = protocol.protocol_scores(
        hypotheses, corpus.references, tokenize=tokenize, baseline=corpus.baseline
    )
    overruled = protocol.overruled(asked, used)
    if options.checkpoint != "best":
        overruled["checkpoint"] = {"asked": options.checkpoint, "used": "average"}
    result = {
        "protocol": options.protocol,
        **scores,
        "target_language": options.target_language,
        "sentences": len(corpus.references),
        "seconds": seconds,
        "checkpoint_step": model.step,
        "averaged_steps": list(model.averaged_steps),
        "averaged_spacing": dict(model.spacing),
        "params_sha256": protocol.fingerprint_params(model.params),
        "vocabulary_sha256": {
            side: vocabulary.fingerprint
            for side, vocabulary in model.vocabularies._asdict().items()
        },
        "decoding": dataclasses.asdict(used),
        "overruled": overruled,
        "files": _described(options, corpus, hypotheses),
        "versions": protocol.versions(),
    }
    _show(result)
    return result


def _averaged(options: Options, decoding: DecodingConfig) -> Model:
    """Averages a run's checkpoints in memory; a model is taken as it is."""
    workdir = options.workdir
    if workdir.is_model:
        if options.last:
            raise UserError(
                f"--workdir={workdir.path} is a model that --mode=average has written, "
                f"and --last={options.last} chooses among the checkpoints of a run. "
                "Leave --last out, or name the run."
            )
        from t2t_jax.loading import load

        return load(workdir.path, checkpoint="last", decoding=decoding)
    from t2t_jax.averages import load_average

    return load_average(
        workdir, last=options.last, force=options.force, decoding=decoding
    )


def _translated(
    model: Model, corpus: _Corpus, out: BinaryIO | None, *, files: ExitStack
) -> tuple[list[str], float]:
    """Translates, and writes the translations where they are wanted."""
    began = time.perf_counter()
    hypotheses = model.translate(corpus.sources)
    seconds = time.perf_counter() - began
    if out is not None:
        write_lines(out, hypotheses)
        files.close()  # From here on they are safe, whatever becomes of the scores.
    return hypotheses, seconds


def _read(options: Options) -> _Corpus:
    """Reads the two files, or three, and checks that their lines belong together."""
    names = {
        name: getattr(options, name)
        for name in ("source", "reference", "baseline")
        if getattr(options, name)
    }
    attempts = Attempts()
    lines = {name: attempts.attempt(_lines, path) for name, path in names.items()}
    attempts.raise_if_any_failed()
    counts = {name: len(found) for name, found in lines.items()}
    problems = Problems()
    for name, count in counts.items():
        problems.require(
            count > 0, f"--{name}={names[name]} must have lines, and is empty."
        )
        problems.require(
            count == counts["reference"],
            f"{name.capitalize()} and reference must have the same number of lines: "
            f"{names[name]} has {count:,}, {names['reference']} has "
            f"{counts['reference']:,}.",
        )
    problems.raise_if_any(DataError)
    return _Corpus(lines["source"], lines["reference"], lines.get("baseline"))


def _lines(path: str) -> list[str]:
    return list(read_lines(path))


def _opened(options: Options, files: ExitStack) -> BinaryIO | None:
    """Opens the file for the translations before there are any, if one is named."""
    path = options.hypotheses
    if not path:
        return None
    if path == "-":
        raise UserError(
            "--hypotheses=- must be a file: stdout is for the scores. Name one."
        )
    inputs = [f for f in (options.source, options.reference, options.baseline) if f]
    return files.enter_context(opened_output(path, flag="hypotheses", inputs=inputs))


def _described(
    options: Options, corpus: _Corpus, hypotheses: list[str]
) -> dict[str, Any]:
    """Says which files were used, so that others can compare theirs."""
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


def _show(result: dict[str, Any]) -> None:
    """Prints the table for people, in columns that fold where there is a terminal."""
    from t2t_jax.evaluation.table import plain, rows

    if not sys.stderr.isatty():
        print(plain(rows(result)), file=sys.stderr)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False)
    for row in rows(result):
        # Text, because a file's name may hold what rich takes for markup.
        table.add_row(*map(Text, row))
    Console(file=sys.stderr).print(table)
