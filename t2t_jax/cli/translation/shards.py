"""Writes a large output file as shards, which are merged when all are complete.

Shards are written atomically into a directory beside the output file. Processes of one
or several jobs lock pending shards; the lock of a killed process is released.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from t2t_jax.cli.console.text_io import open_output, write_lines
from t2t_jax.errors import ConfigError, DataError, OutputError
from t2t_jax.files import atomic_write, locked, read_json_object

_MAX_LISTED = 5
_MANIFEST = "manifest.json"
_ADVICE = "Move it away to start over."


def write_completion_record(output: Path, made_of: Mapping[str, Any]) -> None:
    """Records that a file is complete, and what it depends on."""
    record = {"made_of": dict(made_of), "sha256": _hash_of(output)}
    atomic_write(_record_path(output), json.dumps(record, indent=1))


def is_complete(output: Path, made_of: Mapping[str, Any]) -> bool:
    """Returns whether a file matches its completion record and `made_of`.

    Raises:
      DataError: the record is corrupt.
    """
    try:
        record = read_json_object(_record_path(output), advice="Remove it.")
        was = record.get("made_of")
        if not isinstance(was, dict) or differences(was, made_of):
            return False
        return record.get("sha256") == _hash_of(output)
    except OSError:  # The record or the file does not exist.
        return False


def check_record(output: Path, made_of: Mapping[str, Any]) -> None:
    """Checks that a complete output, if any, is what this job would write.

    Raises:
      ConfigError: the output was made with other settings or from other text.
      DataError: the record is corrupt.
      OutputError: the output has been modified since it was written.
    """
    try:
        record = read_json_object(_record_path(output), advice="Remove it.")
        sha256 = _hash_of(output)
    except OSError:  # The record or the file does not exist.
        return
    was = record.get("made_of")
    if not isinstance(was, dict):
        was = {}
    if different := differences(was, made_of):
        raise ConfigError(
            f"{output} is complete and was made with other settings: {different}. "
            "Rerun the same command to keep it, choose another --output, or rerun "
            "without --resume to replace it."
        )
    if record.get("sha256") != sha256:
        raise OutputError(
            f"{output} has been modified since it was written. Choose another "
            "--output, or rerun without --resume to replace it."
        )


def differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Lists the settings of this job that are recorded otherwise, at most five.

    Example:
      >>> differences({"--shards": 2, "--format": ""}, {"--shards": 3})
      '--shards was 2 and is 3'
    """
    # As JSON gives it back: lists for tuples.
    values = json.loads(json.dumps(dict(now)))
    different = [
        f"{name} was {was.get(name)!r} and is {value!r}"
        for name, value in values.items()
        if was.get(name) != value
    ]
    more = len(different) - _MAX_LISTED
    listed = different[:_MAX_LISTED] + ([f"and {more} more"] if more > 0 else [])
    return ", ".join(listed)


def _record_path(output: Path) -> Path:
    return output.with_name(f"{output.name}.shards.json")


def _hash_of(output: Path) -> str:
    with output.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


class OutputShards:
    """The shards of one output file of `lines` lines.

    What the shards depend on, `made_of`, is a mapping of names to JSON values.
    """

    def __init__(self, output: Path, *, count: int, lines: int):
        self.directory = output.with_name(f"{output.name}.shards")
        self._output, self._count, self._lines = output, count, lines

    def range_of(self, shard: int) -> range:
        """Returns the line numbers of a shard, from 0.

        Example:
          >>> shards = OutputShards(Path("out.de"), count=3, lines=10)
          >>> [shards.range_of(shard) for shard in range(3)]
          [range(0, 3), range(3, 6), range(6, 10)]
        """
        return range(
            self._lines * shard // self._count,
            self._lines * (shard + 1) // self._count,
        )

    def create(self, made_of: Mapping[str, Any], *, resume: bool) -> None:
        """Creates the directory, or checks that an existing one can be resumed.

        With `resume`, nothing is created if the output is complete.

        Raises:
          OutputError: the directory cannot be created, or exists and `resume` is
            false; or the complete output has been modified.
          ConfigError: shards or output were made with other settings.
          DataError: the manifest is corrupt.
        """
        if resume:
            if self.is_merged(made_of):
                return
            self.check_resumable(made_of, resume=True)
        partial = self.directory.with_name(f".{self.directory.name}.{_this_process()}")
        try:
            partial.mkdir()
            try:
                manifest = json.dumps(dict(made_of), indent=1)
                (partial / _MANIFEST).write_text(manifest, encoding="utf-8")
                # Fails if the directory exists and is not empty.
                os.rename(partial, self.directory)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
        except OSError as error:
            if self.directory.is_dir():
                self.check_resumable(made_of, resume=resume)
            elif not (resume and self.is_merged(made_of)):  # by another job, just now
                raise OutputError(
                    f"Cannot write --output={self._output}: the directory of its "
                    f"shards, {self.directory.name}, cannot be created "
                    f"({error.strerror}). Choose another."
                ) from error

    def is_merged(self, made_of: Mapping[str, Any]) -> bool:
        """Returns whether the output is complete and its shards are removed.

        Raises:
          DataError: the completion record is corrupt.
        """
        return not self.directory.exists() and is_complete(self._output, made_of)

    def check_resumable(self, made_of: Mapping[str, Any], *, resume: bool) -> None:
        """Checks that existing shards, if any, belong to this job.

        `made_of` may be partial.

        Raises:
          OutputError: there are shards and `resume` is false; or the complete output
            has been modified.
          ConfigError: shards or output were made with other settings.
          DataError: the manifest is missing or corrupt.
        """
        if not self.directory.exists():
            if resume:
                check_record(self._output, made_of)
            return
        if not resume:
            raise OutputError(
                f"{self.directory} holds translations of an earlier job. Pass --resume "
                "to continue it, or remove the directory."
            )
        try:
            was = read_json_object(self.directory / _MANIFEST, advice=_ADVICE)
        except OSError as error:
            if not self.directory.exists():  # merged by another job, just now
                return
            raise DataError(
                f"{self.directory} has no readable {_MANIFEST}. {_ADVICE}"
            ) from error
        if different := differences(was, made_of):
            raise ConfigError(
                f"{self.directory} was made with other settings: {different}. Rerun "
                "the same command, or remove the directory."
            )

    def pending(self) -> list[int]:
        """Lists the incomplete shards; none if another job has merged them."""
        try:
            existing = set(os.listdir(self.directory))
        except FileNotFoundError:
            return []
        return [shard for shard in range(self._count) if _name(shard) not in existing]

    @contextmanager
    def try_lock(self, shard: int) -> Iterator[bool]:
        """Tries to lock a shard; yields whether this process is to write it."""
        with _lock(self.directory / f"{_name(shard)}.lock") as is_free:
            yield is_free and not (self.directory / _name(shard)).exists()

    def write(self, shard: int, lines: Iterable[str]) -> None:
        """Writes a shard atomically, and syncs it to disk.

        Raises:
          OutputError: it cannot be created.
        """
        with open_output(str(self.directory / _name(shard))) as out:
            write_lines(out, lines)
            os.fsync(out.fileno())

    def merge(self) -> None:
        """Merges all shards, which must be complete, into the file and removes them.

        One of several jobs does it, while the others wait.

        Raises:
          OutputError: the file cannot be created.
          DataError: the manifest is corrupt.
        """
        with _lock(self.directory / "joining.lock", wait=True):
            try:
                made_of = read_json_object(self.directory / _MANIFEST, advice=_ADVICE)
            except FileNotFoundError:
                return
            with open_output(str(self._output)) as out:
                for shard in range(self._count):
                    with (self.directory / _name(shard)).open("rb") as file:
                        shutil.copyfileobj(file, out)
                out.flush()
                os.fsync(out.fileno())
            write_completion_record(self._output, made_of)
            removed = self.directory.with_name(
                f".{self.directory.name}.{_this_process()}"
            )
            os.rename(self.directory, removed)
            shutil.rmtree(removed, ignore_errors=True)


def _name(shard: int) -> str:
    return f"{shard:05d}"


def _this_process() -> str:
    return f"{socket.gethostname()}.{os.getpid()}"


@contextmanager
def _lock(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Yields whether this process has the lock, which the system frees on exit."""
    is_mine = True
    with ExitStack() as held:
        try:
            held.enter_context(locked(path, wait=math.inf if wait else 0.0))
        except (BlockingIOError, FileNotFoundError):  # locked, or merged
            is_mine = False
        except OSError:
            # Without file locks two processes may write the same content twice.
            pass
        yield is_mine
