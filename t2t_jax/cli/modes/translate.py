"""`--mode=translate`: translates lines, and writes only translations to stdout."""

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
    first_window_size,
    load_job,
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

# Batches of a stream vary in size: padding to 1, 8, 64 rows limits compilations.
_ROW_GROWTH = 8


class _Files(NamedTuple):
    """Input and output, opened before a model is loaded.

    Attributes:
      windows: the lines, read lazily.
      out: the output.
      settings: must be equal on all processes.
    """

    windows: Iterator[LineWindow]
    out: BinaryIO
    settings: dict[str, Any]


def run(options: Options) -> int:
    """Translates `options.input` to `options.output`, line by line.

    Several processes translate shards of the lines, and process 0 writes them. On a
    terminal it runs a prompt; `options.stream` translates lines as they arrive, and
    `options.shards` makes the job resumable.
    """
    if repl.is_interactive(options):
        return repl.run_repl(options)
    redirect_native_stdout(options.processes)
    try:
        with ExitStack() as files:
            if options.shards:
                translate_shards(options)
            elif options.stream:
                _translate_stream(options, files)
            else:
                _translate(options, files)
    except RemoteFailure as ended:
        return ended.code
    return 0


def _translate(options: Options, files: ExitStack) -> None:
    """Translates window after window, in constant memory."""
    processes = options.processes
    opened = run_stage(processes, "opened", lambda: _open_files(options, files))
    run_stage(
        processes, "compared", lambda: check_same_settings(processes, opened.settings)
    )
    name = f"--input={options.input}"
    shared = shared_windows(processes, opened.windows, flag=name)
    # Errors in the first lines are reported before a model is loaded.
    begin = list(islice(shared, 1))
    job = load_job(options)
    if begin and len(begin[0].lines) >= first_window_size(options):
        job = job.with_full_batches()
    total = total_lines(options.input) if processes.is_first else None
    with TranslationProgress(total, is_enabled=processes.is_first) as progress:
        for window in chain(begin, shared):
            output = job.translate_window(
                window, processes=processes, seen=progress.advance
            )
            lines = progress.count_statuses(output, first=window.first)
            write = partial(write_lines, opened.out, lines)
            run_stage(processes, f"written from {window.first}", write)
        # Renames the output file into place, which can fail.
        run_stage(processes, "written", files.close)


def _open_files(options: Options, files: ExitStack) -> _Files:
    """Checks the options, and opens the input and, on process 0, the output."""
    validate_options(options)
    settings = shared_settings(options)
    output = options.output if options.processes.is_first else os.devnull
    opened = open_output(output, inputs=(options.input, options.prefixes))
    out = files.enter_context(opened)
    return _Files(open_windows(options), out, settings)


def _translate_stream(options: Options, files: ExitStack) -> None:
    """Translates lines as they arrive, in batches of those available."""
    config, processes = options.config.decoding, options.processes
    run_stage(processes, "opened", lambda: _require_single_process(processes))
    validate_options(options)
    opened = open_output(options.output, inputs=(options.input,), streamed=True)
    out = files.enter_context(opened)
    most, strict = max_batch_rows(config), options.strict
    groups = stream_lines(options.input, most=most, strict=strict)
    job = load_job(options)
    translator = job.translator.with_row_growth(_ROW_GROWTH)
    translator.warm_up(groups.has_next)
    done = 0
    with TranslationProgress(None, is_stream=True) as progress:
        for lines in groups:
            translations = translator.translations(lines, first=done)
            write_lines(out, map(job.render, count(done), translations))
            for number, translation in enumerate(translations, start=done + 1):
                progress.count(translation.status, number)
            done += len(lines)


def _require_single_process(processes: Processes) -> None:
    if processes.count > 1:
        raise UserError(
            f"--stream requires a single process, and there are {processes.count}. "
            "Start one process, or leave --stream out."
        )
