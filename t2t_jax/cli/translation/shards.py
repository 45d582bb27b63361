"""A large file translated in shards, each of which is whole or not there.

Shards lie beside the file that they become, until all are done. Whoever finds one that
is neither done nor locked takes it: processes of one job, or of several, share the work
so, and what a killed process held is free again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from t2t_jax.cli.console.text_io import open_output, write_lines
from t2t_jax.errors import ConfigError, DataError, OutputError
from t2t_jax.files import atomic_write, read_json_object

_MOST_LISTED = 5


def write_completion_record(output: Path, made_of: Mapping[str, Any]) -> None:
    """Writes down that a file is whole.

    Args:
      made_of: JSON values by name: what it depends on.
    """
    told = {"made_of": dict(made_of), "sha256": _hash_of(output)}
    atomic_write(_place(output), json.dumps(told, indent=1))


def is_complete(output: Path, made_of: Mapping[str, Any]) -> bool:
    """Tells whether a file is there as it was written down, and made of just this.

    Raises:
      DataError: the record is damaged.
    """
    try:
        record = read_json_object(_place(output), mend="Remove it.")
        # As JSON gives it back: lists for tuples.
        now = json.loads(json.dumps(dict(made_of)))
        return record.get("made_of") == now and record.get("sha256") == _hash_of(output)
    except OSError:  # One of both is not there.
        return False


def require_recorded(output: Path, made_of: Mapping[str, Any]) -> None:
    """Checks that a finished output, if there is one, is what this job would make.

    Args:
      made_of: as for `write_completion_record`; what is not known yet is left out.

    Raises:
      ConfigError: the output was made with other settings or of other text.
      DataError: the record is damaged.
      OutputError: the output has been modified since it was written.
    """
    try:
        record = read_json_object(_place(output), mend="Remove it.")
        sha256 = _hash_of(output)
    except OSError:  # One of both is not there: nothing is finished.
        return
    was = record.get("made_of")
    if not isinstance(was, dict):
        was = {}
    if different := differences(was, made_of):
        raise ConfigError(
            f"{output} is complete and was made otherwise: {different}. Rerun the same "
            "command to keep it, choose another --output, or rerun without --resume "
            "to replace it."
        )
    if record.get("sha256") != sha256:
        raise OutputError(
            f"{output} has been modified since it was written. Choose another "
            "--output, or rerun without --resume to replace it."
        )


def differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Lists the settings that have changed, the first five of them.

    Args:
      was: JSON values by name, as recorded.
      now: the same of this job; names that are not in it are not compared.

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
    more = len(different) - _MOST_LISTED
    listed = different[:_MOST_LISTED] + ([f"and {more} more"] if more > 0 else [])
    return ", ".join(listed)


def _place(output: Path) -> Path:
    return output.with_name(f"{output.name}.shards.json")


def _hash_of(output: Path) -> str:
    with output.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_MANIFEST = "manifest.json"
_MEND = "Move it away, to begin again."


class OutputShards:
    """The shards of one file of translations.

    Args:
      count: how many shards there are.

    Attributes:
      place: the directory that holds them.
    """

    def __init__(self, output: Path, *, count: int, lines: int):
        self.place = output.with_name(f"{output.name}.shards")
        self._output, self._count, self._lines = output, count, lines

    def range_of(self, shard: int) -> range:
        """Returns the numbers of a shard's lines, from 0.

        Example:
          >>> shards = OutputShards(Path("out.de"), count=3, lines=10)
          >>> [shards.range_of(shard) for shard in range(3)]
          [range(0, 3), range(3, 6), range(6, 10)]
        """
        return range(
            self._lines * shard // self._count,
            self._lines * (shard + 1) // self._count,
        )

    def begin(self, made_of: Mapping[str, Any], *, resume: bool) -> None:
        """Makes the directory, unless it is there and may be gone on with.

        With `resume` it is not made either where all are joined, and an output that was
        made otherwise is refused.

        Args:
          made_of: JSON values by name: what the shards depend on.
          resume: whether to go on where there is something.

        Raises:
          OutputError: it cannot be made, or is there and `resume` is false; or the
            finished output has been modified.
          ConfigError: what is there is made of something else.
          DataError: what is there is damaged.
        """
        if resume:
            if self.is_merged(made_of):
                return
            self.require(made_of, resume=True)
        beside = self.place.with_name(f".{self.place.name}.{_this_process()}")
        try:
            beside.mkdir()
            try:
                told = json.dumps(dict(made_of), indent=1)
                (beside / _MANIFEST).write_text(told, encoding="utf-8")
                # A directory that holds something is not replaced.
                os.rename(beside, self.place)
            finally:
                shutil.rmtree(beside, ignore_errors=True)
        except OSError as error:
            if self.place.is_dir():
                self.require(made_of, resume=resume)
            elif not (resume and self.is_merged(made_of)):  # Not just now, by another.
                raise OutputError(
                    f"--output={self._output} cannot be written: {self.place.name}, "
                    f"which holds the shards, cannot be made ({error.strerror}). "
                    "Choose another."
                ) from error

    def is_merged(self, made_of: Mapping[str, Any]) -> bool:
        """Tells whether all shards have become the file, which is still there.

        Raises:
          DataError: what is written down about it is damaged.
        """
        return not self.place.exists() and is_complete(self._output, made_of)

    def require(self, made_of: Mapping[str, Any], *, resume: bool) -> None:
        """Checks that what is there, if anything, may be gone on with.

        Args:
          made_of: as for `begin`; what is not known yet is left out.

        Raises:
          OutputError: it is there and `resume` is false; or the finished output has
            been modified.
          ConfigError: it is made of something else, or the finished output is.
          DataError: it is damaged, or of no job like this.
        """
        if not self.place.exists():
            if resume:
                require_recorded(self._output, made_of)
            return
        if not resume:
            raise OutputError(
                f"{self.place} holds what an earlier job has translated. Go on with it "
                "by --resume, or remove it."
            )
        try:
            was = read_json_object(self.place / _MANIFEST, mend=_MEND)
        except OSError as error:
            if not self.place.exists():  # Another job has just joined all.
                return
            raise DataError(
                f"{self.place} holds no {_MANIFEST} that can be read. {_MEND}"
            ) from error
        if different := differences(was, made_of):
            raise ConfigError(
                f"{self.place} was made otherwise: {different}. Give the same command "
                "again, or remove it."
            )

    def pending(self) -> list[int]:
        """Lists the shards that are not done; none if another job has joined all."""
        try:
            there = set(os.listdir(self.place))
        except FileNotFoundError:
            return []
        return [shard for shard in range(self._count) if _name(shard) not in there]

    @contextmanager
    def try_lock(self, shard: int) -> Iterator[bool]:
        """Tries to take a shard; yields whether it is this process's to be made."""
        with _lock(self.place / f"{_name(shard)}.lock") as is_free:
            yield is_free and not (self.place / _name(shard)).exists()

    def write(self, shard: int, lines: Iterable[str]) -> None:
        """Writes a shard, which is there when it is whole and on the disk.

        Args:
          lines: of it, without their ends.

        Raises:
          OutputError: it cannot be made.
        """
        with open_output(str(self.place / _name(shard))) as out:
            write_lines(out, lines)
            os.fsync(out.fileno())

    def merge(self) -> None:
        """Makes the file of all shards, and removes them. Once all are done.

        Of several jobs one does it, while the others wait.

        Raises:
          OutputError: the file cannot be made.
          DataError: the manifest is damaged.
        """
        with _lock(self.place / "joining.lock", wait=True):
            try:
                made_of = read_json_object(self.place / _MANIFEST, mend=_MEND)
            except FileNotFoundError:
                return
            with open_output(str(self._output)) as out:
                for shard in range(self._count):
                    with (self.place / _name(shard)).open("rb") as whole:
                        shutil.copyfileobj(whole, out)
                out.flush()
                os.fsync(out.fileno())
            write_completion_record(self._output, made_of)
            gone = self.place.with_name(f".{self.place.name}.{_this_process()}")
            os.rename(self.place, gone)
            shutil.rmtree(gone, ignore_errors=True)


def _name(shard: int) -> str:
    return f"{shard:05d}"


def _this_process() -> str:
    return f"{socket.gethostname()}.{os.getpid()}"


@contextmanager
def _lock(path: Path, *, wait: bool = False) -> Iterator[bool]:
    """Yields whether this process has the lock; the lock goes with the process."""
    with ExitStack() as opened:
        try:
            lock = opened.enter_context(path.open("a"))
            fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            is_mine = True
        except (BlockingIOError, FileNotFoundError):  # Or another job has joined all.
            is_mine = False
        except OSError:
            # Without locks two may make the same shard, which then is the same twice.
            is_mine = True
        yield is_mine
