"""`--mode=translate`: translates lines, and writes only translations to stdout."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import chain, islice

from t2t_jax.cli.console.text_io import open_output, write_lines
from t2t_jax.cli.flags.options import TranslateOptions
from t2t_jax.cli.processes import start_processes
from t2t_jax.cli.translation import prompt
from t2t_jax.cli.translation.job import (
    LineStream,
    LineWindow,
    distributed,
    line_files,
    load_job,
    open_windows,
    serve,
    validate_options,
)
from t2t_jax.cli.translation.progress import TranslationProgress, total_lines
from t2t_jax.cli.translation.sharded_job import translate_shards
from t2t_jax.decoding.engine.batching import max_batch_rows
from t2t_jax.errors import UserError

# Batches of a stream vary in size: padding to 1, 8, 64 rows limits compilations.
_ROW_GROWTH = 8


def run(options: TranslateOptions) -> None:
    """Translates `options.input` to `options.output`, line by line.

    On a terminal it runs a prompt; `options.stream` translates lines as they arrive,
    and `options.shards` makes the job resumable. Of several processes, process 0 reads
    and writes, and the others translate shares; with `options.shards` each reads and
    writes shards.
    """
    if prompt.is_interactive(options):
        return prompt.run_prompt(options)
    start_processes(options)
    if options.stream and (number := options.processes.count) > 1:
        raise UserError(
            f"--stream requires a single process, and there are {number}. Start one "
            "process, or leave --stream out."
        )
    if options.shards:
        translate_shards(options)
    elif options.processes.is_first:
        _translate(options)
    else:
        serve(load_job(options), options.processes)


def _translate(options: TranslateOptions) -> None:
    """Translates window after window, in constant memory, or lines as they arrive."""
    is_stream = options.stream
    validate_options(options)
    # Short lines of a batch on each process.
    smallest = max_batch_rows(options.config.decoding) * options.processes.count
    begin: list[LineWindow] = []
    with ExitStack() as files:
        inputs = line_files(options).values()
        opened = open_output(options.output, inputs=inputs, stream=is_stream)
        out = files.enter_context(opened)
        if is_stream:
            stream = LineStream(options.input, most=smallest, strict=options.strict)
            windows, total = iter(stream), None
            job = load_job(options).with_row_growth(_ROW_GROWTH)
            job.translator.warm_up(stream.has_next)
        else:
            windows = open_windows(options, smallest=smallest)
            # Errors in the first lines are reported before a model is loaded.
            begin, total = list(islice(windows, 1)), total_lines(options.input)
            job = load_job(options)
            if begin and len(begin[0].lines) >= smallest:
                job = job.with_full_batches()
        with (
            distributed(job, options.processes) as translate_window,
            TranslationProgress(total, is_stream=is_stream) as progress,
        ):
            job.check_terms(options.terms)
            for window in chain(begin, windows):
                output = translate_window(window, seen=progress.advance)
                write_lines(out, progress.count_statuses(output, first=window.first))
            files.close()  # Renames the output into place, which can fail.
