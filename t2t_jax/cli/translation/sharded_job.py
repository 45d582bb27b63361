"""`--mode=translate --shards=N`: a resumable translation job for large files.

Shards of the output are written atomically into a directory beside it, and are merged
when all are complete. Processes of one or several jobs lock pending shards; the lock of
a killed process is released.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from t2t_jax.cli.console.text_io import (
    decode,
    open_output,
    opening,
    resolve_output,
    write_lines,
)
from t2t_jax.cli.flags.options import TranslateOptions
from t2t_jax.cli.processes import differences_from_first, settings_of
from t2t_jax.cli.translation.job import (
    LINE_FILES,
    TranslationJob,
    check_line_counts,
    is_strict,
    line_files,
    load_job,
    validate_options,
    windows,
)
from t2t_jax.cli.translation.progress import TranslationProgress
from t2t_jax.config import defaults
from t2t_jax.data.files.lines import (
    BYTE_ORDER_MARK,
    GZIP_ERRORS,
    LineTooLongError,
    bounded_lines,
    decode_line,
    open_bytes,
)
from t2t_jax.devices.distributed.processes import Processes, barrier
from t2t_jax.errors import (
    ConfigError,
    DataError,
    InputMissingError,
    OutputError,
    UserError,
)
from t2t_jax.files import (
    SHARED_FS_TIMEOUT,
    atomic_write,
    locked,
    read_json_object,
    sha256_of,
    wait_until_visible,
)

_STRIDE = 1_000
"""Lines between two indexed offsets, of eight bytes each."""

_POLL_SECONDS = 0.5
_MANIFEST = "manifest.json"
_ADVICE = "Move it away to start over."


def translate_shards(options: TranslateOptions) -> None:
    """Translates `options.input`, a shard at a time.

    Several processes, on a file system that they share, each translate shards.

    Raises:
      UserError: options or files are invalid, or on another process than process 0 the
        input differs.
    """
    from t2t_jax.evaluation.protocol import fingerprint_params

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
    models = (job.model, *job.model.others)
    hashes = [fingerprint_params(model.params)[:12] for model in models]
    made_of["the step of --checkpoint"] = [model.step for model in models]
    made_of["the content of the checkpoint"] = hashes
    if processes.is_first:
        shards.create(made_of, resume=options.resume)
    barrier(processes, "shards are created")
    is_visible = partial(shards.is_visible, made_of)
    if not wait_until_visible(is_visible, seconds=SHARED_FS_TIMEOUT):
        raise OutputError(
            f"{shards.directory} must be on a file system that all processes share: "
            "this process does not see it. Choose another --output."
        )
    shards.check(made_of, resume=True)
    _translate(texts, shards, job, processes)


def _open_files(options: TranslateOptions) -> tuple[dict[str, LineIndex], OutputShards]:
    """Indexes the files of lines, and resolves the output."""
    if "-" in (options.input, options.output):
        raise UserError("--shards requires files for --input and --output. Pass both.")
    validate_options(options)
    files = line_files(options)
    output = resolve_output(options.output, inputs=files.values())
    for name, path in {**files, "output": str(output)}.items():
        # A missing file is reported when it is opened.
        if os.path.exists(path) and not os.path.isfile(path):
            raise (OutputError if name == "output" else InputMissingError)(
                f"--{name}={path} must be a file for --shards, which reads and writes "
                "more than once. Pass a file, or leave --shards out."
            )
    texts = {
        name: LineIndex(path, flag=name, strict=is_strict(options, name))
        for name, path in files.items()
    }
    lines = texts["input"].count
    for name, text in texts.items():
        check_line_counts(text.count, lines=lines, flag=name)
    return texts, OutputShards(output, count=options.shards, lines=lines)


def _translate(
    texts: dict[str, LineIndex],
    shards: OutputShards,
    job: TranslationJob,
    processes: Processes,
) -> None:
    """Translates the pending shards, with the other processes, and merges all."""
    left, total = shards.pending(), texts["input"].count
    done = total - sum(len(shards.ranges[shard]) for shard in left)
    # Processes start at different shards, so that they rarely compete for a lock; a
    # shard locked elsewhere is tried again, since that process may be killed.
    start = processes.index * len(left) // processes.count
    left = left[start:] + left[:start]
    progress = TranslationProgress(total, is_enabled=processes.is_first, done=done)

    def output_of(lines: range) -> Iterator[str]:
        parts = {name: text.read_range(lines) for name, text in texts.items()}
        for window in windows(parts, first=lines.start):
            yield from job.translate_window(window, seen=progress.advance)

    with progress:
        while left:
            made_here = None
            for shard in left:
                with shards.try_lock(shard) as is_mine:
                    if is_mine:
                        made_here, lines = shard, shards.ranges[shard]
                        rows = output_of(lines)
                        counted = progress.count_statuses(rows, first=lines.start)
                        shards.write(shard, counted)
                        break
            else:
                time.sleep(_POLL_SECONDS)
            pending = set(shards.pending())
            for shard in {*left} - pending - {made_here}:  # translated by another
                progress.advance(len(shards.ranges[shard]))
            left = [shard for shard in left if shard in pending]
        barrier(processes, "shards are translated")
        progress.gather(processes)
        if processes.is_first:
            shards.merge()


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
        with opening(name, flag):
            self._stat = _size_and_mtime(os.stat(name))
        with self._open() as file:
            lines = self._index(bounded_lines(file))
            deque(decode(lines, name, flag, strict=strict), maxlen=0)
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
            lines = islice(bounded_lines(file), numbers.start % _STRIDE, None)
            for number in numbers:
                if not (line := next(lines, b"")):
                    return self._require_unchanged(None)
                yield decode_line(line.removeprefix(BYTE_ORDER_MARK * (number == 0)))

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        name = self._name
        with opening(name, self._flag), open_bytes(name) as file:
            self._require_unchanged(file)
            try:
                yield file
            except (*GZIP_ERRORS, LineTooLongError):
                self._require_unchanged(None)  # It was read before.
            self._require_unchanged(file)

    def _require_unchanged(self, file: IO[bytes] | None) -> None:
        if file is None or _size_and_mtime(os.fstat(file.fileno())) != self._stat:
            raise DataError(
                f"--{self._flag}={self._name} has changed since the job began. Restore "
                "the old file and rerun the same command, with --resume."
            )


def _size_and_mtime(status: os.stat_result) -> tuple[int, int]:
    # Not the inode, which may change on network file systems.
    return status.st_size, status.st_mtime_ns


class OutputShards:
    """The shards of one output file of `lines` lines.

    What they depend on, `made_of`, is a mapping of names to JSON values. It is kept
    beside them, and with the hash of the output when that is complete.

    Attributes:
      directory: holds the shards until the output is complete.
      record: says what the complete output is made of.
      ranges: the line numbers of each shard, from 0.

    Example:
      >>> OutputShards(Path("out.de"), count=3, lines=10).ranges
      [range(0, 3), range(3, 6), range(6, 10)]
    """

    def __init__(self, output: Path, *, count: int, lines: int):
        self.directory = output.with_name(f"{output.name}.shards")
        self.record = output.with_name(f"{output.name}.shards.json")
        self._output, self._manifest = output, self.directory / _MANIFEST
        bounds = [lines * shard // count for shard in range(count + 1)]
        self.ranges = [range(*pair) for pair in pairwise(bounds)]

    def check(self, made_of: Mapping[str, Any], *, resume: bool) -> bool:
        """Checks that this job may continue what an earlier one has left, if anything.

        Args:
          made_of: may be partial.

        Returns:
          Whether the output is complete.

        Raises:
          OutputError: there are shards and `resume` is false; or the complete output
            has been modified.
          ConfigError: shards or output were made with other settings.
          DataError: the manifest is missing or corrupt, or the record is corrupt.
        """
        if self.directory.exists():
            if not resume:
                raise OutputError(
                    f"{self.directory} holds translations of an earlier job. Pass "
                    "--resume to continue it, or remove the directory."
                )
            try:
                was = read_json_object(self._manifest, advice=_ADVICE)
            except OSError as error:
                if self.directory.exists():
                    raise DataError(
                        f"{self.directory} has no readable {_MANIFEST}. {_ADVICE}"
                    ) from error
            else:
                advice = "Rerun the same command, or remove the directory."
                _require_same(was, made_of, what=str(self.directory), advice=advice)
                return False
        # Without a directory, or another job has merged it just now.
        return resume and self._is_complete(made_of)

    def _is_complete(self, made_of: Mapping[str, Any]) -> bool:
        replace = "choose another --output, or rerun without --resume to replace it."
        try:
            record = read_json_object(self.record, advice="Remove it.")
            sha256 = sha256_of(self._output)
        except OSError:  # The record or the file does not exist.
            return False
        what = f"{self._output} is complete and"
        advice = f"Rerun the same command to keep it, {replace}"
        _require_same(record.get("made_of"), made_of, what=what, advice=advice)
        if record.get("sha256") != sha256:
            raise OutputError(
                f"{self._output} has been modified since it was written. "
                f"{replace.capitalize()}"
            )
        return True

    def create(self, made_of: Mapping[str, Any], *, resume: bool) -> None:
        """Creates the directory, unless `resume` finds it, or the complete output.

        Raises:
          OutputError: the directory cannot be created; or as `check`, like the others.
        """
        if self.check(made_of, resume=resume) or self.directory.exists():
            return
        new = self._temporary()
        try:
            new.mkdir()
            manifest = json.dumps(dict(made_of), indent=1)
            (new / _MANIFEST).write_text(manifest, encoding="utf-8")
            # Fails if the directory exists and is not empty.
            os.rename(new, self.directory)
        except OSError as error:
            # Another job may have created it, or even merged it, just now.
            if not (self.check(made_of, resume=resume) or self.directory.is_dir()):
                raise OutputError(
                    f"Cannot write --output={self._output}: cannot create "
                    f"{self.directory}: {error.strerror}. Choose another."
                ) from error
        finally:
            shutil.rmtree(new, ignore_errors=True)

    def is_visible(self, made_of: Mapping[str, Any]) -> bool:
        """Returns whether this process sees the directory, or the complete output."""
        with suppress(UserError):  # an output of before
            return self.directory.exists() or self.check(made_of, resume=True)
        return False

    def pending(self) -> list[int]:
        """Lists the incomplete shards; none if another job has merged them."""
        try:
            existing = set(os.listdir(self.directory))
        except FileNotFoundError:
            return []
        shards = range(len(self.ranges))
        return [n for n in shards if not {f"{n:05d}", f"{n:05d}.sha256"} <= existing]

    @contextmanager
    def try_lock(self, shard: int) -> Iterator[bool]:
        """Tries to lock a shard; yields whether this process is to write it."""
        path = self._path(shard)
        with _lock(path.with_suffix(".lock")) as is_free:
            written = all(one.exists() for one in (path, path.with_suffix(".sha256")))
            # Without its directory, another job has merged it.
            yield is_free and not written and self.directory.exists()

    def write(self, shard: int, lines: Iterable[str]) -> None:
        """Writes a shard atomically, syncs it to disk, and then writes its hash.

        Raises:
          OutputError: it cannot be created.
        """
        path = self._path(shard)
        with open_output(str(path)) as out:
            write_lines(out, lines)
            os.fsync(out.fileno())
        atomic_write(path.with_suffix(".sha256"), self._hash(shard))

    def _hash(self, shard: int) -> bytes:
        """Returns the number and the hash of a shard, so that two cannot be swapped."""
        return f"{shard} {sha256_of(self._path(shard))}\n".encode()

    def merge(self) -> None:
        """Merges all shards, which must be complete, into the file and removes them.

        One of several jobs does it, while the others wait.

        Raises:
          OutputError: the file cannot be created.
          DataError: the manifest or a shard is corrupt.
        """
        with _lock(self.directory / "joining.lock", wait=math.inf):
            try:
                made_of = read_json_object(self._manifest, advice=_ADVICE)
            except FileNotFoundError:
                return
            with open_output(str(self._output)) as out:
                for shard in range(len(self.ranges)):
                    path = self._path(shard)
                    if path.with_suffix(".sha256").read_bytes() != self._hash(shard):
                        raise DataError(
                            f"{path} is corrupt: its content is not what was written. "
                            "Remove it, and rerun the command with --resume."
                        )
                    with path.open("rb") as file:
                        shutil.copyfileobj(file, out)
                out.flush()
                os.fsync(out.fileno())
            record = {"made_of": made_of, "sha256": sha256_of(self._output)}
            atomic_write(self.record, json.dumps(record, indent=1))
            removed = self._temporary()
            os.rename(self.directory, removed)
            shutil.rmtree(removed, ignore_errors=True)

    def _path(self, shard: int) -> Path:
        return self.directory / f"{shard:05d}"

    def _temporary(self) -> Path:
        # Containers on several hosts may share names and numbers of processes.
        return self.directory.with_name(f".{self.directory.name}.{uuid4().hex}")


def _require_same(was: Any, now: Mapping[str, Any], *, what: str, advice: str) -> None:
    """Checks that the settings of this job are those that are recorded.

    A key of the configuration that an earlier version lacked had its default. One that
    only the record has is another setting, or a corrupt record.
    """
    recorded = was if isinstance(was, dict) else {}
    known = {f"config.{key}": value for key, value in defaults().items()}
    # As JSON gives them back: lists for tuples.
    known, wanted = json.loads(json.dumps([known, dict(now)]))
    # What is known later than this check is "the content of" something.
    settings = [name for name in recorded if not name.startswith("the ")]
    before, now = known | recorded, dict.fromkeys(settings, "missing") | wanted
    different = [
        f"{name} was {before.get(name, 'missing')!r} and is {value!r}"
        for name, value in now.items()
        if before.get(name, "missing") != value
    ]
    if different:
        raise ConfigError(
            f"{what} was made with other settings: {', '.join(different)}. {advice}"
        )


@contextmanager
def _lock(path: Path, *, wait: float = 0.0) -> Iterator[bool]:
    """Yields whether this process has the lock, which the system frees on exit."""
    with ExitStack() as held:
        try:
            held.enter_context(locked(path, wait=wait))
        except (BlockingIOError, FileNotFoundError):  # locked, or merged
            yield False
            return
        except OSError:
            # Without file locks two processes may write the same content twice.
            pass
        yield True
