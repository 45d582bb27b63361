"""`--mode=translate --shards=N`: a resumable translation job for large files."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from t2t_jax.cli.console.text_io import resolve_output
from t2t_jax.cli.flags.translation import TranslateOptions
from t2t_jax.cli.processes.start import differences_from_first, settings_of
from t2t_jax.cli.translation.job import (
    BESIDE,
    TranslationJob,
    is_strict,
    load_job,
    validate_options,
)
from t2t_jax.cli.translation.line_index import LineIndex
from t2t_jax.cli.translation.progress import TranslationProgress
from t2t_jax.cli.translation.shards import OutputShards
from t2t_jax.cli.translation.windows import LineWindow, check_line_counts, windows
from t2t_jax.data.files.line_counts import Count
from t2t_jax.distributed.processes import Processes, barrier
from t2t_jax.errors import DataError, InputMissingError, OutputError, UserError
from t2t_jax.files import SHARED_FS_TIMEOUT, wait_until_visible

_POLL_SECONDS = 0.5
_CONTENT = tuple(f"the content of --{name}" for name in ("input", *BESIDE))


class _ShardedFiles(NamedTuple):
    """Input and output, opened before a model is loaded.

    Attributes:
      text: the source lines.
      beside: what has a line for each of them, by the names of the flags.
      shards: the output.
      made_of: what the shards depend on, without the model.
    """

    text: LineIndex
    beside: dict[str, LineIndex]
    shards: OutputShards
    made_of: dict[str, Any]

    def windows(self, shard: int) -> Iterator[LineWindow]:
        """Reads the lines of a shard."""
        lines = self.shards.range_of(shard)
        text = self.text.read_range(lines.start, lines.stop)
        beside = {
            name: index.read_range(lines.start, lines.stop)
            for name, index in self.beside.items()
        }
        return windows(
            text, beside.get("prefixes"), beside.get("terms"), first=lines.start
        )


def translate_shards(options: TranslateOptions) -> None:
    """Translates `options.input`, a shard at a time.

    Several processes, on a file system that they share, each translate shards.

    Raises:
      UserError: options or files are invalid, or on another process than process 0 the
        input differs.
    """
    processes = options.processes
    opened = _open_files(options)
    content = {name: opened.made_of[name] for name in _CONTENT}
    if different := differences_from_first(processes, "content", content):
        raise DataError(
            f"Process {processes.index} has other files than process 0: "
            f"{', '.join(different)}. Use a shared file system."
        )
    barrier(processes, "content is compared")  # before anything is created
    job = load_job(options)
    job.check_terms(options.terms)
    made_of = {**opened.made_of, **_model_facts(job)}
    if processes.is_first:
        opened.shards.create(made_of, resume=options.resume)
    barrier(processes, "shards are created")
    _wait_until_visible(opened.shards, made_of)
    with _progress(opened, processes) as progress:
        for shard, is_mine in _claim_shards(opened.shards, processes):
            if is_mine:
                _translate_shard(opened, shard, job, progress)
            else:  # Another process has translated it.
                progress.advance(len(opened.shards.range_of(shard)))
        barrier(processes, "shards are translated")
        if processes.is_first:
            opened.shards.merge()


def _open_files(options: TranslateOptions) -> _ShardedFiles:
    """Indexes the input, and checks the shards of an earlier job."""
    if "-" in (options.input, options.output):
        raise UserError(
            "--shards requires files for --input and --output, not standard input or "
            "output. Pass both."
        )
    validate_options(options)
    _require_file("input", options.input)
    given = {name: value for name in BESIDE if (value := getattr(options, name))}
    for name, value in given.items():
        _require_file(name, value)
    inputs = (options.input, *given.values())
    output = resolve_output(options.output, inputs=inputs)
    if output.exists() and not output.is_file():
        raise OutputError(
            f"--output={options.output} must be a file for --shards, and exists as "
            "something else. Choose another, or leave --shards out."
        )
    text = LineIndex(options.input, strict=options.strict)
    beside = {
        name: LineIndex(value, flag=name, strict=is_strict(options, name))
        for name, value in given.items()
    }
    for name, index in beside.items():
        check_line_counts(index.count, lines=text.count, flag=name)
    settings = settings_of(options)
    # A job started with or without --resume is the same.
    made_of = {name: settings[name] for name in settings if name != "--resume"}
    made_of |= {
        f"the content of --{name}": index and index.sha256[:12]
        for name, index in (
            ("input", text),
            *((name, beside.get(name)) for name in BESIDE),
        )
    }
    shards = OutputShards(output, count=options.shards, lines=text.count)
    if options.processes.is_first:
        shards.check_resumable(made_of, resume=options.resume)
    return _ShardedFiles(text, beside, shards, made_of)


def _require_file(flag: str, name: str) -> None:
    """Refuses pipes and devices; a missing file is reported when it is opened."""
    if os.path.exists(name) and not os.path.isfile(name):
        raise InputMissingError(
            f"--{flag}={name} must be a file: --shards reads it more than once. Pass "
            "a file, or leave --shards out."
        )


def _model_facts(job: TranslationJob) -> dict[str, Any]:
    from t2t_jax.evaluation.protocol import fingerprint_params

    models = (job.model, *job.model.others)
    return {
        "the step of --checkpoint": [model.step for model in models],
        "the content of the checkpoint": [
            fingerprint_params(model.params)[:12] for model in models
        ],
    }


def _wait_until_visible(shards: OutputShards, made_of: Mapping[str, Any]) -> None:
    """Waits until this process sees the directory that process 0 has created."""
    # Another job may have merged the shards meanwhile.
    if not wait_until_visible(
        lambda: shards.directory.exists() or shards.is_merged(made_of),
        seconds=SHARED_FS_TIMEOUT,
    ):
        raise OutputError(
            f"{shards.directory} must be on a file system that all processes share: "
            "this process does not see it. Choose another --output."
        )
    shards.check_resumable(made_of, resume=True)


def _progress(opened: _ShardedFiles, processes: Processes) -> TranslationProgress:
    shards, count = opened.shards, opened.text.count
    left = sum(len(shards.range_of(shard)) for shard in shards.pending())
    return TranslationProgress(
        Count(count, True), is_enabled=processes.is_first, done=count - left
    )


def _translate_shard(
    opened: _ShardedFiles,
    shard: int,
    job: TranslationJob,
    progress: TranslationProgress,
) -> None:
    output = (
        job.translate_window(window, seen=progress.advance)
        for window in opened.windows(shard)
    )
    first = opened.shards.range_of(shard).start
    lines = progress.count_statuses(chain.from_iterable(output), first=first)
    opened.shards.write(shard, lines)


def _claim_shards(
    shards: OutputShards, processes: Processes
) -> Iterator[tuple[int, bool]]:
    """Yields every pending shard: locked by this process (True), or done by another."""
    left = shards.pending()
    # Processes start at different shards, so that they rarely compete for a lock; a
    # shard locked elsewhere is tried again, since that process may be killed.
    start = processes.index * len(left) // processes.count
    left = left[start:] + left[:start]
    while left:
        made_here = None
        for shard in left:
            with shards.try_lock(shard) as is_mine:
                if is_mine:
                    yield shard, True
                    made_here = shard
                    break
        else:
            time.sleep(_POLL_SECONDS)
        pending = set(shards.pending())
        for shard in left:
            if shard not in pending and shard != made_here:
                yield shard, False
        left = [shard for shard in left if shard in pending]
