"""`--mode=evaluate`: translates a file and scores it against raw references."""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from t2t_jax.cli.evaluation_files import (
    Corpus,
    described,
    opened_hypotheses,
    read_corpus,
)
from t2t_jax.cli.lines import write_lines
from t2t_jax.cli.options import Options
from t2t_jax.cli.same_model import load_mean, load_one, require_run_of
from t2t_jax.cli.together import (
    Ended,
    require_same,
    require_same_settings,
    reserve_stdout,
    settings_of,
    stage,
    translated,
)
from t2t_jax.cli.translation_report import TRANSLATING, progress_of
from t2t_jax.errors import Attempts

if TYPE_CHECKING:
    from t2t_jax.decoding.config import DecodingConfig
    from t2t_jax.trained import Model


class _Opened(NamedTuple):
    """What is known before a model is loaded.

    Attributes:
      corpus: what the files hold.
      out: where the translations go, if anywhere.
      settings: what all processes must have alike.
    """

    corpus: Corpus
    out: BinaryIO | None
    settings: dict[str, Any]


class _Translated(NamedTuple):
    """What is to be scored."""

    model: Model
    hypotheses: list[str]
    seconds: float


def run(options: Options) -> int:
    """Prints one JSON object with the scores on stdout, and BLEU and chrF on stderr.

    With a protocol a table goes to stderr too. What is wrong with a file is
    said before JAX is imported. Of several processes each translates a share, and the
    first scores all of it.

    Raises:
      UserError: files or workdir are not what they must be, or an extra is missing.
    """
    reserve_stdout(options.processes)
    evaluate = _by_protocol if options.protocol else _as_configured
    try:
        with ExitStack() as files:
            evaluate(options, files)
    except Ended as ended:
        return ended.code
    return 0


def _as_configured(options: Options, files: ExitStack) -> None:
    """Evaluates one checkpoint as it was configured, with no more than is needed."""

    def open_all() -> _Opened:
        options.workdir.require()
        corpus = read_corpus(options)
        return _Opened(corpus, opened_hypotheses(options, files), settings_of(options))

    opened = stage(options.processes, "opened", open_all)
    corpus = opened.corpus
    found = _translate(
        options,
        opened,
        lambda: load_one(
            options, checkpoint=options.checkpoint, decoding=options.config.decoding
        ),
    )

    def score() -> dict[str, Any]:
        from t2t_jax.evaluation.bleu import corpus_scores
        from t2t_jax.evaluation.significance import paired_test

        _write(opened.out, found.hypotheses, files)
        result = {
            **corpus_scores(found.hypotheses, corpus.references),
            "sentences": len(corpus.references),
            "seconds": found.seconds,
            "checkpoint_step": found.model.step,
        }
        if corpus.baseline is not None:
            result["paired_test"] = paired_test(
                found.hypotheses, corpus.references, baseline=corpus.baseline
            )
        return result

    _print(options, score, show=_show_headlines)


def _by_protocol(options: Options, files: ExitStack) -> None:
    """Evaluates the mean of the last checkpoints as the paper does (section 6.1)."""
    from t2t_jax.evaluation import paper_bleu, protocol

    def open_all() -> tuple[_Opened, Callable[[str], str]]:
        options.workdir.require()
        require_run_of(options)
        attempts = Attempts()
        tokenize = attempts.attempt(paper_bleu.moses_tokenizer, options.target_language)
        corpus = attempts.attempt(read_corpus, options)
        attempts.raise_if_any_failed()
        out = opened_hypotheses(options, files)
        return _Opened(corpus, out, settings_of(options)), tokenize

    opened, tokenize = stage(options.processes, "opened", open_all)
    corpus = opened.corpus
    used = protocol.protocol_decoding(options.config.decoding)
    found = _translate(options, opened, lambda: _averaged(options, used))

    def score() -> dict[str, Any]:
        _write(opened.out, found.hypotheses, files)
        scores = protocol.protocol_scores(
            found.hypotheses,
            corpus.references,
            tokenize=tokenize,
            baseline=corpus.baseline,
        )
        return {
            "protocol": options.protocol,
            **scores,
            "target_language": options.target_language,
            "sentences": len(corpus.references),
            "seconds": found.seconds,
            **_described_model(found.model),
            "decoding": dataclasses.asdict(used),
            "overruled": _overruled(options, used),
            "files": described(options, corpus, found.hypotheses),
            "versions": protocol.versions(),
        }

    _print(options, score, show=_show)


def _overruled(options: Options, used: DecodingConfig) -> dict[str, Any]:
    """Lists what was asked for and is otherwise in the paper."""
    from t2t_jax.evaluation import protocol

    overruled: dict[str, Any] = {**protocol.overruled(options.config.decoding, used)}
    if options.checkpoint != "best":
        overruled["checkpoint"] = {"asked": options.checkpoint, "used": "average"}
    return overruled


def _described_model(model: Model) -> dict[str, Any]:
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


def _averaged(options: Options, decoding: DecodingConfig) -> Model:
    """Averages a run's checkpoints in memory; a model is taken as it is."""
    if options.workdir.is_model:
        return load_one(options, checkpoint="last", decoding=decoding)
    return load_mean(options, decoding=decoding)


def _translate(
    options: Options, opened: _Opened, load: Callable[[], Model]
) -> _Translated:
    """Translates the sources, with all devices of all processes."""
    processes, sources = options.processes, opened.corpus.sources

    def compare() -> None:
        require_same_settings(processes, opened.settings)
        require_same(processes, f"--source={options.source}", sources)

    stage(processes, "compared", compare)
    model = load()
    began = time.perf_counter()
    with progress_of(
        TRANSLATING, len(sources), is_heard=processes.is_first
    ) as progress:
        hypotheses = translated(processes, model, sources, seen=progress.advance)
    return _Translated(model, hypotheses, time.perf_counter() - began)


def _write(out: BinaryIO | None, hypotheses: list[str], files: ExitStack) -> None:
    """Writes the translations where they are wanted."""
    if out is not None:
        with files:  # From here on they are safe, whatever becomes of the scores.
            write_lines(out, hypotheses)


def _print(
    options: Options,
    score: Callable[[], dict[str, Any]],
    *,
    show: Callable[[dict[str, Any]], None],
) -> None:
    """Lets the first process score and print, while the others wait how it ends."""

    def print_first() -> None:
        if options.processes.is_first:
            result = score()
            show(result)
            print(json.dumps(result))

    stage(options.processes, "scored", print_first)


def _show_headlines(result: dict[str, Any]) -> None:
    """Prints the scores as people quote them."""
    from t2t_jax.evaluation.table import headlines

    print(*headlines(result), sep="\n", file=sys.stderr)


def _show(result: dict[str, Any]) -> None:
    """Prints the table for people, in columns that fold where there is a terminal."""
    from t2t_jax.evaluation.table import plain, rows

    if not sys.stderr.isatty():
        print(plain(rows(result)), file=sys.stderr)
        _show_headlines(result)
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=False)
    for row in rows(result):
        # Text, because a file's name may hold what rich takes for markup.
        table.add_row(*map(Text, row))
    Console(file=sys.stderr).print(table)
    _show_headlines(result)
