"""Writes a large output file as shards, which are merged when all are complete.

Shards are written atomically into a directory beside the output file. Processes of one
or several jobs lock pending shards; the lock of a killed process is released.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from t2t_jax.cli.console.text_io import open_output, write_lines
from t2t_jax.errors import ConfigError, DataError, OutputError, UserError
from t2t_jax.files import atomic_write, locked, read_json_object, sha256_of

_MAX_LISTED = 5
_MANIFEST = "manifest.json"
_ADVICE = "Move it away to start over."


class OutputShards:
    """The shards of one output file of `lines` lines.

    What they depend on, `made_of`, is a mapping of names to JSON values. It is kept
    beside them, and with the hash of the output when that is complete.

    Attributes:
      ranges: the line numbers of each shard, from 0.

    Example:
      >>> OutputShards(Path("out.de"), count=3, lines=10).ranges
      [range(0, 3), range(3, 6), range(6, 10)]
    """

    def __init__(self, output: Path, *, count: int, lines: int):
        self.directory = output.with_name(f"{output.name}.shards")
        self._record = output.with_name(f"{output.name}.shards.json")
        self._output = output
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
                was = read_json_object(self.directory / _MANIFEST, advice=_ADVICE)
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
            record = read_json_object(self._record, advice="Remove it.")
            sha256 = sha256_of(self._output)
        except OSError:  # The record or the file does not exist.
            return False
        _require_same(
            record.get("made_of"),
            made_of,
            what=f"{self._output} is complete and",
            advice=f"Rerun the same command to keep it, {replace}",
        )
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
        partial = self._temporary()
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
            # Another job may have created it, or even merged it, just now.
            if not (self.check(made_of, resume=resume) or self.directory.is_dir()):
                raise OutputError(
                    f"Cannot write --output={self._output}: the directory of its "
                    f"shards, {self.directory.name}, cannot be created "
                    f"({error.strerror}). Choose another."
                ) from error

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
        return [one for one in shards if self._path(one).name not in existing]

    @contextmanager
    def try_lock(self, shard: int) -> Iterator[bool]:
        """Tries to lock a shard; yields whether this process is to write it."""
        path = self._path(shard)
        with _lock(path.with_suffix(".lock")) as is_free:
            yield is_free and not path.exists()

    def write(self, shard: int, lines: Iterable[str]) -> None:
        """Writes a shard atomically, and syncs it to disk.

        Raises:
          OutputError: it cannot be created.
        """
        with open_output(str(self._path(shard))) as out:
            write_lines(out, lines)
            os.fsync(out.fileno())

    def merge(self) -> None:
        """Merges all shards, which must be complete, into the file and removes them.

        One of several jobs does it, while the others wait.

        Raises:
          OutputError: the file cannot be created.
          DataError: the manifest is corrupt.
        """
        with _lock(self.directory / "joining.lock", wait=math.inf):
            try:
                made_of = read_json_object(self.directory / _MANIFEST, advice=_ADVICE)
            except FileNotFoundError:
                return
            with open_output(str(self._output)) as out:
                for shard in range(len(self.ranges)):
                    with self._path(shard).open("rb") as file:
                        shutil.copyfileobj(file, out)
                out.flush()
                os.fsync(out.fileno())
            record = {"made_of": made_of, "sha256": sha256_of(self._output)}
            atomic_write(self._record, json.dumps(record, indent=1))
            removed = self._temporary()
            os.rename(self.directory, removed)
            shutil.rmtree(removed, ignore_errors=True)

    def _path(self, shard: int) -> Path:
        return self.directory / f"{shard:05d}"

    def _temporary(self) -> Path:
        process = f"{socket.gethostname()}.{os.getpid()}"
        return self.directory.with_name(f".{self.directory.name}.{process}")


def _require_same(was: Any, now: Mapping[str, Any], *, what: str, advice: str) -> None:
    """Checks that the settings of this job are those that are recorded."""
    was = was if isinstance(was, dict) else {}
    # As JSON gives them back: lists for tuples.
    values = json.loads(json.dumps(dict(now)))
    different = [
        f"{name} was {was.get(name)!r} and is {value!r}"
        for name, value in values.items()
        if was.get(name) != value
    ]
    if more := different[_MAX_LISTED:]:
        different[_MAX_LISTED:] = [f"and {len(more)} more"]
    if different:
        raise ConfigError(
            f"{what} was made with other settings: {', '.join(different)}. {advice}"
        )


@contextmanager
def _lock(path: Path, *, wait: float = 0.0) -> Iterator[bool]:
    """Yields whether this process has the lock, which the system frees on exit."""
    is_mine = True
    with ExitStack() as held:
        try:
            held.enter_context(locked(path, wait=wait))
        except (BlockingIOError, FileNotFoundError):  # locked, or merged
            is_mine = False
        except OSError:
            # Without file locks two processes may write the same content twice.
            pass
        yield is_mine
