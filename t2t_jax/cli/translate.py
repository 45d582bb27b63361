"""`--mode=translate`: lines in, translations out, and nothing else on stdout."""

from __future__ import annotations

import dataclasses
import os
from contextlib import ExitStack
from typing import Any, BinaryIO

from t2t_jax.cli.lines import (
    opened_output,
    read_stdin_or_file,
    waiting_lines,
    write_lines,
)
from t2t_jax.cli.options import Options
from t2t_jax.cli.same_model import load_one
from t2t_jax.cli.together import (
    Ended,
    refuse_stdin,
    require_same,
    require_same_settings,
    reserve_stdout,
    settings_of,
    stage,
    translated,
)
from t2t_jax.decoding.source_batches import most_rows
from t2t_jax.errors import UserError
from t2t_jax.parallelism.distributed import Processes

# A stream's batches are of any size: of 1, 8, 64 rows, each size a program to compile.
_ROW_GROWTH = 8


def run(options: Options) -> int:
    """Translates `options.input` to `options.output`; n lines become n lines.

    Of several processes each translates a share, and the first writes all of them.
    With `options.stream` lines are answered as they come, by one process.
    """
    reserve_stdout(options.processes)
    try:
        with ExitStack() as files:
            (_answer if options.stream else _translate)(options, files)
    except Ended as ended:
        return ended.code
    return 0


def _translate(options: Options, files: ExitStack) -> None:
    processes = options.processes
    lines, out, settings = stage(processes, "opened", lambda: _opened(options, files))

    def compare() -> None:
        require_same_settings(processes, settings)
        require_same(processes, f"--input={options.input}", lines)

    stage(processes, "compared", compare)
    model = load_one(
        options, checkpoint=options.checkpoint, decoding=options.config.decoding
    )
    translations = translated(processes, model, lines)

    def write() -> None:
        with files:  # The file appears here, or fails to.
            write_lines(out, translations)

    stage(processes, "written", write)


def _answer(options: Options, files: ExitStack) -> None:
    """Translates together the lines that wait, and only then looks for more."""
    config, processes = options.config.decoding, options.processes
    stage(processes, "opened", lambda: _refuse_several(processes))
    options.workdir.require()
    opened = opened_output(options.output, inputs=(options.input,), streamed=True)
    out = files.enter_context(opened)
    groups = waiting_lines(options.input, most=most_rows(config))
    model = load_one(options, checkpoint=options.checkpoint, decoding=config)
    translator = dataclasses.replace(model.translator(), row_growth=_ROW_GROWTH)
    answered = 0
    for lines in groups:
        translations = translator.translations(lines, first=answered)
        write_lines(out, (translation.text for translation in translations))
        answered += len(lines)


def _refuse_several(processes: Processes) -> None:
    if processes.count > 1:
        raise UserError(
            f"--stream answers lines as they come, and {processes.count} processes "
            "share lines out when all are there. Start one process, or leave --stream "
            "out."
        )


def _opened(
    options: Options, files: ExitStack
) -> tuple[list[str], BinaryIO, dict[str, Any]]:
    """Reads the input, opens the output of the process that writes, and looks about."""
    options.workdir.require()
    settings = settings_of(options)
    refuse_stdin(options.processes, "input", options.input)
    lines = read_stdin_or_file(options.input)
    output = options.output if options.processes.is_first else os.devnull
    opened = opened_output(output, inputs=(options.input,))
    return lines, files.enter_context(opened), settings
