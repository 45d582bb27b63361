"""`--mode=translate`: lines in, translations out, and nothing else on stdout."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import chain, count, islice
from typing import Any, BinaryIO, NamedTuple

from t2t_jax.cli.console.text_io import open_output, write_lines
from t2t_jax.cli.flags.options import Options
from t2t_jax.cli.processes.stages import (
    RemoteFailure,
    check_same_settings,
    redirect_native_stdout,
    run_stage,
    shared_settings,
)
from t2t_jax.cli.translation import repl
from t2t_jax.cli.translation.job import (
    first_window,
    load_translating,
    open_windows,
    validate_options,
)
from t2t_jax.cli.translation.progress import TranslationProgress, total_lines
from t2t_jax.cli.translation.sharded_job import translate_shards
from t2t_jax.cli.translation.stream import stream_lines
from t2t_jax.cli.translation.windows import LineWindow, shared_windows
from t2t_jax.decoding.engine.batching import max_batch_rows
from t2t_jax.distributed.processes import Processes
from t2t_jax.errors import UserError

# A stream's batches are of any size: of 1, 8, 64 rows, each size a program to compile.
_ROW_GROWTH = 8


class _Opened(NamedTuple):
    """What is known before a model is loaded.

    Attributes:
      windows: the lines, yet to be read.
      out: where the translations go.
      settings: what all processes must have alike.
    """

    windows: Iterator[LineWindow]
    out: BinaryIO
    settings: dict[str, Any]


def run(options: Options) -> int:
    """Translates `options.input` to `options.output`; n lines become n lines.

    Of several processes each translates a share, and the first writes all of them.
    With `options.stream` lines are answered as they come, by one process; on a terminal
    they are asked for. With `options.shards` what is done survives the process.
    """
    if repl.is_interactive(options):
        return repl.run_repl(options)
    redirect_native_stdout(options.processes)
    try:
        with ExitStack() as files:
            if options.shards:
                translate_shards(options)
            elif options.stream:
                _answer(options, files)
            else:
                _translate(options, files)
    except RemoteFailure as ended:
        return ended.code
    return 0


def _translate(options: Options, files: ExitStack) -> None:
    """Translates a window after the other, so that any length takes as much memory."""
    processes = options.processes
    opened = run_stage(processes, "opened", lambda: _opened(options, files))
    run_stage(
        processes, "compared", lambda: check_same_settings(processes, opened.settings)
    )
    name = f"--input={options.input}"
    shared = shared_windows(processes, opened.windows, flag=name)
    # What is wrong with lines is said before a model is loaded, if they come so soon.
    begin = list(islice(shared, 1))
    translating = load_translating(options)
    if begin and len(begin[0].lines) >= first_window(options):
        translating = translating.with_full_batches()
    total = total_lines(options.input) if processes.is_first else None
    with TranslationProgress(total, is_heard=processes.is_first) as report:
        for window in chain(begin, shared):
            told = translating.translate_window(
                window, processes=processes, seen=report.advance
            )
            counted = report.count_statuses(told, first=window.first)
            write = partial(write_lines, opened.out, counted)
            run_stage(processes, f"written from {window.first}", write)
        run_stage(
            processes, "written", files.close
        )  # The file appears here, or fails to.


def _opened(options: Options, files: ExitStack) -> _Opened:
    """Looks about, and opens the output of the process that writes."""
    validate_options(options)
    settings = shared_settings(options)
    output = options.output if options.processes.is_first else os.devnull
    opened = open_output(output, inputs=(options.input, options.prefixes))
    out = files.enter_context(opened)
    return _Opened(open_windows(options), out, settings)


def _answer(options: Options, files: ExitStack) -> None:
    """Translates together the lines that wait, and only then looks for more."""
    config, processes = options.config.decoding, options.processes
    run_stage(processes, "opened", lambda: _refuse_several(processes))
    validate_options(options)
    opened = open_output(options.output, inputs=(options.input,), streamed=True)
    out = files.enter_context(opened)
    most, strict = max_batch_rows(config), options.strict
    groups = stream_lines(options.input, most=most, strict=strict)
    translating = load_translating(options)
    translator = translating.translator.with_row_growth(_ROW_GROWTH)
    translator.warm_up(groups.is_next_there)
    answered = 0
    with TranslationProgress(None, is_stream=True) as report:
        for lines in groups:
            found = translator.translations(lines, first=answered)
            rendered = map(translating.render, count(answered), found)
            write_lines(out, rendered)
            for number, translation in enumerate(found, start=answered + 1):
                report.count(translation.status, number)
            answered += len(lines)


def _refuse_several(processes: Processes) -> None:
    if processes.count > 1:
        raise UserError(
            f"--stream answers lines as they come, and {processes.count} processes "
            "share lines out when all are there. Start one process, or leave --stream "
            "out."
        )
