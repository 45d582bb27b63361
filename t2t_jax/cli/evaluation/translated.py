"""The translations that `--mode=evaluate` scores, and the model that made them."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

from t2t_jax.cli.console.text_io import write_lines
from t2t_jax.cli.evaluation.corpus import (
    Corpus,
    file_records,
    open_hypotheses,
    warn_of_exchange,
)
from t2t_jax.cli.flags.translation import VASWANI, EvaluateOptions
from t2t_jax.cli.processes.shared_model import load_mean, load_one
from t2t_jax.cli.translation.distributed_job import distributed
from t2t_jax.cli.translation.job import TranslationJob
from t2t_jax.cli.translation.progress import TranslationProgress
from t2t_jax.cli.translation.windows import LineWindow
from t2t_jax.data.files.line_counts import Count

if TYPE_CHECKING:
    from t2t_jax.decoding.config import DecodingConfig
    from t2t_jax.inference.model import TranslationModel


class TranslatedCorpus(NamedTuple):
    """The translations to score, the model that made them, and the time taken.

    Attributes:
      statuses: the number of lines of each status but `ok`.
    """

    model: TranslationModel
    hypotheses: list[str]
    seconds: float
    statuses: dict[str, int]


def translate_corpus(
    options: EvaluateOptions,
    corpus: Corpus,
    *,
    written: Callable[[list[str]], list[str]] = list,
) -> TranslatedCorpus:
    """Translates the sources, and writes the hypotheses if a file is given.

    Args:
      written: makes the lines of that file of the hypotheses.
    """
    num_lines, statuses = len(corpus.sources), Counter[str]()
    with ExitStack() as files:
        out = open_hypotheses(options, files)
        job = load_job(options)
        warn_of_exchange(job.model, (corpus.sources, corpus.references))
        began = time.perf_counter()
        with (
            distributed(job, options.processes) as translate_window,
            TranslationProgress(Count(num_lines, True)) as progress,
        ):
            window = LineWindow(0, corpus.sources, None)
            output = translate_window(window, seen=progress.advance)
            hypotheses = [*progress.count_statuses(output, first=0)]
        seconds = time.perf_counter() - began
        for line in output:
            statuses.update(line.partition(" ")[0].split(","))
        if out is not None:
            write_lines(out, written(hypotheses))
    del statuses["ok"]
    return TranslatedCorpus(job.model, hypotheses, seconds, dict(statuses))


def averages(options: EvaluateOptions) -> bool:
    """Returns whether the last checkpoints are averaged: always in the paper's."""
    return options.protocol == VASWANI or options.last > 0


def decoding_of(options: EvaluateOptions) -> DecodingConfig:
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
    decoding = decoding_of(options)
    checkpoint = "last" if averages(options) else options.checkpoint
    if averages(options) and not options.workdir.is_model:
        model = load_mean(options, decoding=decoding)
    else:
        model = load_one(options, checkpoint=checkpoint, decoding=decoding)
    return TranslationJob(
        model, model.translator(), lambda number, line, translation: translation.text
    )


def protocol_record(
    options: EvaluateOptions,
    translated: TranslatedCorpus,
    corpus: Corpus,
    hypotheses: list[str],
) -> dict[str, Any]:
    """Returns what made the scores of a protocol: model, search, files, versions.

    Args:
      hypotheses: as they are written to a file.
    """
    from t2t_jax.evaluation import protocol

    used = decoding_of(options)
    overridden = protocol.overridden(options.config.decoding, used)
    if options.checkpoint != "best" and averages(options):
        overridden["checkpoint"] = {"asked": options.checkpoint, "used": "average"}
    model = translated.model
    return {
        "statuses": translated.statuses,
        "seconds": translated.seconds,
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
        "files": file_records(options, corpus, hypotheses),
        "versions": protocol.versions(),
    }
