"""`--mode=translate --shards=N`: a resumable translation job for large files."""

from __future__ import annotations

import hashlib
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain, islice
from typing import IO, Any

from t2t_jax.cli.console.text_io import (
    decode_line,
    decode_lines,
    io_errors_as_user_errors,
    resolve_output,
)
from t2t_jax.cli.flags.translation import TranslateOptions
from t2t_jax.cli.processes.start import differences_from_first, settings_of
from t2t_jax.cli.translation.job import TranslationJob, load_job, validate_options
from t2t_jax.cli.translation.progress import TranslationProgress
from t2t_jax.cli.translation.shards import OutputShards
from t2t_jax.cli.translation.windows import (
    LINE_FILES,
    check_line_counts,
    is_strict,
    line_files,
    windows,
)
from t2t_jax.data.files.line_counts import Count
from t2t_jax.data.files.lines import BYTE_ORDER_MARK, bounded_lines, open_bytes
from t2t_jax.devices.distributed.processes import Processes, barrier
from t2t_jax.errors import DataError, InputMissingError, OutputError, UserError
from t2t_jax.files import SHARED_FS_TIMEOUT, wait_until_visible

_STRIDE = 1_000
"""Lines between two indexed offsets, of eight bytes each."""

_POLL_SECONDS = 0.5


def translate_shards(options: TranslateOptions) -> None:
    """Translates `options.input`, a shard at a time.

    Several processes, on a file system that they share, each translate shards.

    Raises:
      UserError: options or files are invalid, or on another process than process 0 the
        input differs.
    """
    processes = options.processes
    texts, shards = _open_files(options)
    content = {
        f"the content of --{name}": texts[name].sha256[:12] if name in texts else None
        for name in LINE_FILES
    }
    # A job started with or without --resume is the same.
    made_of = {**settings_of(options), **content}
    del made_of["--resume"]
    if processes.is_first:
        shards.check(made_of, resume=options.resume)
    if different := differences_from_first(processes, "content", content):
        raise DataError(
            f"Process {processes.index} has other files than process 0: "
            f"{', '.join(different)}. Use a shared file system."
        )
    barrier(processes, "content is compared")  # before anything is created
    job = load_job(options)
    job.check_terms(options.terms)
    made_of |= _model_facts(job)
    if processes.is_first:
        shards.create(made_of, resume=options.resume)
    barrier(processes, "shards are created")
    if not wait_until_visible(
        lambda: shards.is_visible(made_of), seconds=SHARED_FS_TIMEOUT
    ):
        raise OutputError(
            f"{shards.directory} must be on a file system that all processes share: "
            "this process does not see it. Choose another --output."
        )
    shards.check(made_of, resume=True)
    _translate(texts, shards, job, processes)


def _open_files(options: TranslateOptions) -> tuple[dict[str, LineIndex], OutputShards]:
    """Indexes the files of lines, and resolves the output."""
    if "-" in (options.input, options.output):
        raise UserError(
            "--shards requires files for --input and --output, not standard input or "
            "output. Pass both."
        )
    validate_options(options)
    files = line_files(options)
    for name, path in files.items():
        # A missing file is reported when it is opened.
        if os.path.exists(path) and not os.path.isfile(path):
            raise InputMissingError(
                f"--{name}={path} must be a file: --shards reads it more than once. "
                "Pass a file, or leave --shards out."
            )
    output = resolve_output(options.output, inputs=files.values())
    if output.exists() and not output.is_file():
        raise OutputError(
            f"--output={options.output} must be a file for --shards, and exists as "
            "something else. Choose another, or leave --shards out."
        )
    texts = {
        name: LineIndex(path, flag=name, strict=is_strict(options, name))
        for name, path in files.items()
    }
    lines = texts["input"].count
    for name, text in texts.items():
        check_line_counts(text.count, lines=lines, flag=name)
    return texts, OutputShards(output, count=options.shards, lines=lines)


def _model_facts(job: TranslationJob) -> dict[str, Any]:
    from t2t_jax.evaluation.protocol import fingerprint_params

    models = (job.model, *job.model.others)
    return {
        "the step of --checkpoint": [model.step for model in models],
        "the content of the checkpoint": [
            fingerprint_params(model.params)[:12] for model in models
        ],
    }


def _translate(
    texts: dict[str, LineIndex],
    shards: OutputShards,
    job: TranslationJob,
    processes: Processes,
) -> None:
    """Translates the pending shards, with the other processes, and merges all."""
    count = texts["input"].count
    left = sum(len(shards.ranges[shard]) for shard in shards.pending())
    total, done = Count(count, True), count - left
    with TranslationProgress(
        total, is_enabled=processes.is_first, done=done
    ) as progress:
        for shard, is_mine in _claim_shards(shards, processes):
            lines = shards.ranges[shard]
            if not is_mine:  # Another process has translated it.
                progress.advance(len(lines))
                continue
            parts = {name: text.read_range(lines) for name, text in texts.items()}
            output = (
                job.translate_window(window, seen=progress.advance)
                for window in windows(parts, first=lines.start)
            )
            rows = chain.from_iterable(output)
            shards.write(shard, progress.count_statuses(rows, first=lines.start))
        barrier(processes, "shards are translated")
        if processes.is_first:
            shards.merge()


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


class LineIndex:
    """Indexes the lines of a file in one pass, and then reads any range of them.

    Reading a range of a .gz file decompresses everything before it.

    Args:
      name: of a plain or .gz file.
      flag: the flag to name in errors.
      strict: whether a line that is not UTF-8 is an error.

    Attributes:
      count: the number of lines.
      sha256: of the uncompressed content.

    Raises:
      InputMissingError: the file does not exist or cannot be read.
      DataError: it ends in .gz and is not gzip, is in another format than UTF-8, or
        changes while it is read; or, with `strict`, a line is not UTF-8.
    """

    def __init__(self, name: str, *, flag: str = "input", strict: bool = False):
        self._name, self._flag = name, flag
        self._offsets: list[int] = []
        self._digest, self.count = hashlib.sha256(), 0
        with io_errors_as_user_errors(name, flag):
            self._stat = _size_and_mtime(os.stat(name))
        with self._open() as file:
            lines = self._index(bounded_lines(file))
            deque(decode_lines(lines, name, flag, strict=strict), maxlen=0)
        self.sha256 = self._digest.hexdigest()

    def _index(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        offset = 0
        for self.count, line in enumerate(lines, start=1):
            if self.count % _STRIDE == 1:
                self._offsets.append(offset)
            offset += len(line)
            self._digest.update(line)
            yield line

    def read_range(self, numbers: range) -> Iterator[str]:
        """Reads the lines of these numbers, from 0, decoded as by `text_lines`.

        Raises:
          InputMissingError: the file cannot be read.
          DataError: it has changed since it was indexed.
        """
        if not numbers:
            return
        with self._open() as file:
            file.seek(self._offsets[numbers.start // _STRIDE])
            skipped, left = numbers.start % _STRIDE, len(numbers)
            for line in islice(bounded_lines(file), skipped, skipped + left):
                is_first = left == numbers.stop
                yield decode_line(line.removeprefix(BYTE_ORDER_MARK * is_first))
                left -= 1
            if left:
                self._require_unchanged(file, missing=True)

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        with (
            io_errors_as_user_errors(self._name, self._flag),
            open_bytes(self._name) as file,
        ):
            self._require_unchanged(file)
            yield file
            self._require_unchanged(file)

    def _require_unchanged(self, file: IO[bytes], *, missing: bool = False) -> None:
        if missing or _size_and_mtime(os.fstat(file.fileno())) != self._stat:
            raise DataError(
                f"--{self._flag}={self._name} has changed since the job began. Restore "
                "the old file and rerun the same command, with --resume."
            )


def _size_and_mtime(status: os.stat_result) -> tuple[int, int]:
    # Not the inode, which may change on network file systems.
    return status.st_size, status.st_mtime_ns
