"""`--mode=translate`: translates lines, and writes only translations to stdout."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import chain, count, islice

from t2t_jax.cli.console.text_io import open_output, write_lines
from t2t_jax.cli.flags.options import TranslateOptions
from t2t_jax.cli.processes import start_processes
from t2t_jax.cli.translation import prompt
from t2t_jax.cli.translation.job import (
    LineStream,
    distributed,
    line_files,
    load_job,
    open_windows,
    serve,
    validate_options,
)
from t2t_jax.cli.translation.progress import TranslationProgress, total_lines
from t2t_jax.cli.translation.sharded_job import translate_shards
from t2t_jax.data.corpora.text_files import undo_joins
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
    if options.shards:
        translate_shards(options)
    elif options.stream:
        _translate_stream(options)
    elif options.processes.is_first:
        _translate(options)
    else:
        serve(load_job(options), options.processes)


def _translate(options: TranslateOptions) -> None:
    """Translates window after window, in constant memory."""
    validate_options(options)
    # Short lines of a batch on each process.
    smallest = max_batch_rows(options.config.decoding) * options.processes.count
    with ExitStack() as files:
        inputs = line_files(options).values()
        out = files.enter_context(open_output(options.output, inputs=inputs))
        windows = open_windows(options, smallest=smallest)
        # Errors in the first lines are reported before a model is loaded.
        begin = list(islice(windows, 1))
        job = load_job(options)
        if begin and len(begin[0].lines) >= smallest:
            job = job.with_full_batches()
        with (
            distributed(job, options.processes) as translate_window,
            TranslationProgress(total_lines(options.input)) as progress,
        ):
            job.check_terms(options.terms)
            for window in chain(begin, windows):
                output = translate_window(window, seen=progress.advance)
                write_lines(out, progress.count_statuses(output, first=window.first))
            files.close()  # Renames the output into place, which can fail.


def _translate_stream(options: TranslateOptions) -> None:
    """Translates lines as they arrive, in batches of those available."""
    if options.processes.count > 1:
        raise UserError(
            "--stream requires a single process, and there are "
            f"{options.processes.count}. Start one process, or leave --stream out."
        )
    validate_options(options)
    with open_output(options.output, inputs=(options.input,), stream=True) as out:
        most = max_batch_rows(options.config.decoding)
        stream = LineStream(options.input, most=most, strict=options.strict)
        job = load_job(options)
        translator = job.translator.with_row_growth(_ROW_GROWTH)
        translator.warm_up(stream.has_next)
        done = 0
        with TranslationProgress(None, is_stream=True) as progress:
            for lines in stream:
                joined = [undo_joins(line, job.joiner) for line in lines]
                found = translator.translations(joined, first=done, **options.languages)
                write_lines(out, map(job.render, count(done), found))
                for number, translation in enumerate(found, start=done + 1):
                    progress.count(translation.statuses, number)
                done += len(lines)
