"""Reads checkpoints and verifies their checksums before returning anything.

A checkpoint `checkpoints/<step>/` has these items: `params`; `optimizer` (absent in a
model directory); `trained`, if training continues from other parameters; `meta`, a JSON
object; and `files`, small files such as the vocabulary, without which the parameters
cannot be used. `meta` holds a checksum of every array and of itself. Each process reads
independently of the others.
"""

from __future__ import annotations

import math
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np

from t2t_jax.checkpointing.array_files import read_arrays
from t2t_jax.checkpointing.checksums import (
    CHECKSUM_KEYS,
    FORMAT,
    checksums,
    shapes_of,
    unpack_file,
    verify_checksums,
)
from t2t_jax.checkpointing.diagnosis import (
    CorruptCheckpointError,
    RemovedCheckpointError,
    as_io_error,
    short_reason,
)
from t2t_jax.checkpointing.step_dirs import Meta, StepDirs
from t2t_jax.devices.distributed.processes import SINGLE_PROCESS, Processes
from t2t_jax.devices.sharding.rules import describe_differences, dtype_shapes, path_of
from t2t_jax.errors import DataError
from t2t_jax.files import MAX_JSON_BYTES, check_size, read_json_object
from t2t_jax.types import Params, PyTree

T = TypeVar("T")

_MAX_ATTEMPTS = 100
"""To read a checkpoint that its run removes meanwhile."""

# Of a smaller difference the first array that differs is named when all are known.
_MAX_FACTOR = 10
# Trained float32 numbers are stored in over 80 % of their size; zeros in hardly any.
_MAX_RATIO, _ALWAYS = 64, 64 << 20


NO_SCORE = -math.inf
"""Of a checkpoint that was not evaluated."""


def dev_score(meta: Mapping[str, Any]) -> float:
    """Returns a checkpoint's score on the development set: of trees F1, else BLEU.

    Returns:
      `NO_SCORE`, below every score, if it was not scored.
    """
    return float(meta.get("f1", meta.get("bleu", NO_SCORE)))


def best_step(metas: Mapping[int, Mapping[str, Any]]) -> int:
    """Returns the step of the highest score; of equal scores, the newest.

    A run compares the losses of equal scores: a step that was its best comes first.

    Args:
      metas: by step, the JSON object of its checkpoint; at least one.

    Example:
      >>> best_step({5: {"bleu": 0.0, "kinds": ["best"]}, 7: {"bleu": 0.0}, 9: {}})
      5
    """

    def rank(step: int) -> tuple[float, bool, int]:
        meta = metas[step]
        return dev_score(meta), "best" in meta.get("kinds", ()), step

    return max(metas, key=rank)


class CheckpointReader(StepDirs):
    """The checkpoints of one directory, opened for reading.

    Attributes:
      processes: all that save and restore the arrays together.
    """

    processes: Processes = SINGLE_PROCESS
    _error = CorruptCheckpointError
    _most_times = _MAX_FACTOR

    def resolve_step(self, which: str | int) -> int:
        """Returns the step of the checkpoint that a user has chosen.

        Args:
          which: `best` (highest development score; the last if none was scored),
            `last`, or a step.

        Raises:
          DataError: there is no such checkpoint, or for `best` one is corrupt, so that
            its score is not known.
        """
        if not (steps := self.steps()):
            raise DataError(
                f"{self.directory} holds no checkpoint. Train first, or pass another "
                "directory."
            )
        if which == "last" or (which == "best" and len(steps) == 1):
            return steps[-1]
        if which == "best":
            return best_step({step: self.meta(step) for step in steps})
        if str(which).isdecimal() and int(which) in steps:
            return int(which)
        raise DataError(
            f"checkpoint={which} must be best, last, or one of the steps in "
            f"{self.directory}: {', '.join(map(str, steps))}."
        )

    def read_chosen(self, which: str | int, read: Callable[[int], T]) -> T:
        """Reads the checkpoint that a user has chosen, while its run may train.

        Args:
          which: as for `resolve_step`. If the run removes `best` or `last` meanwhile,
            its successor is read.
          read: reads the checkpoint of a step.

        Raises:
          DataError: there is no such checkpoint, or it is corrupt.
        """
        attempts = _MAX_ATTEMPTS if which in ("best", "last") else 1
        for _ in range(attempts - 1):
            with suppress(RemovedCheckpointError):
                return read(self.resolve_step(which))
        return read(self.resolve_step(which))

    def meta(self, step: int) -> Meta:
        """Reads the JSON object of a checkpoint, without the checksums.

        Raises:
          CorruptCheckpointError: it differs from what was saved.
        """
        return without_checksums(self.read_verified_meta(step))

    def files(self, step: int) -> dict[str, bytes]:
        """Reads the small files of a checkpoint, by name.

        Raises:
          CorruptCheckpointError: they differ from what was saved.
        """
        digests = self.read_verified_meta(step).get("files", {})
        texts = self._read_json(step, "files") if digests else {}
        with self._diagnosed(step, "in files, {}"):
            return {x: unpack_file(texts.get(x), digests[x]) for x in digests}

    def params(self, step: int, *, like: PyTree, item: str = "params") -> Params:
        """Restores the parameters of a checkpoint; `like` has the shardings.

        Each process reads all of them, and keeps what its devices need.

        Args:
          item: "params", or "trained" of a checkpoint that has them.

        Raises:
          CorruptCheckpointError: they differ from what was saved.
          DataError: they are of another model, or of another version's format.
        """
        items, meta = self.read(step, {item: like})
        self.check(step, items, meta)
        return items[item]

    def has_trained(self, step: int) -> bool:
        """Returns whether a checkpoint has parameters that are trained beside `params`.

        Raises:
          CorruptCheckpointError: its meta differs from what was saved.
          DataError: it has the format of another version of this program.
        """
        return "trained" in self.read_verified_meta(step)["checksums"]

    def read(
        self, step: int, like: Mapping[str, PyTree]
    ) -> tuple[dict[str, PyTree], Meta]:
        """Reads items of a checkpoint and its meta, which `check` has to verify.

        Args:
          like: for `params`, `optimizer` and `trained`, if wanted, the tree of
            `jax.ShapeDtypeStruct` with shardings.

        Raises:
          CorruptCheckpointError: they cannot be read.
          DataError: they are of another model, or of another version's format.
        """
        meta, items = self.read_verified_meta(step), {}
        for name, tree in like.items():
            shapes = shapes_of(meta["checksums"].get(name, {}))
            if reason := describe_differences(dtype_shapes(tree), shapes):
                raise DataError(
                    f"Checkpoint {self.path(step)} was written for another model: "
                    f"{reason}, in {name}.\nPass a workdir of this model, or the "
                    "configuration that it was trained with."
                )
        for name, tree in like.items():
            items[name] = place(self._arrays(step, name, dtype_shapes(tree)), tree)
        return items, meta

    def check(self, step: int, items: Mapping[str, PyTree], meta: Meta) -> None:
        """Verifies the checksums of what `read` has returned.

        Collective if arrays span several processes; a process finds only what is
        corrupt in its own copies.

        Raises:
          CorruptCheckpointError: the items differ from what was saved.
        """
        # All checksums first: their computation is collective, and a process that
        # raised after one of them would leave the others waiting in the next.
        computed = {name: checksums(tree) for name, tree in items.items()}
        for name, texts in computed.items():
            if reason := describe_differences(meta["checksums"][name], texts):
                raise self.corrupt(step, f"in {name}, {reason}")

    def check_size(self, step: int, *, parameters: int) -> None:
        """Checks that a checkpoint can hold so many parameters, before they are built.

        Raises:
          CorruptCheckpointError: its meta differs from what was saved, or its files
            are too small.
          DataError: it was saved with far fewer.
        """
        saved = self.read_verified_meta(step)["checksums"].get("params", {})
        shapes = [text[text.find("[") + 1 : text.find("]")] for text in saved.values()]
        path = self.path(step)  # a file itself, in a model directory
        with self._diagnosed(step):
            files = filter(Path.is_file, [path, *(path / "params").rglob("*")])
            known = sum(math.prod(map(int, filter(None, s.split(",")))) for s in shapes)
            stored = sum(path.stat().st_size for path in files)
        if parameters > self._most_times * known:
            raise DataError(
                f"Checkpoint {self.path(step)} was written for another model: it has "
                f"{known:,} parameters, and its configuration {parameters:,}.\nPass a "
                "workdir of this model."
            )
        if 4 * parameters > _MAX_RATIO * stored + _ALWAYS:
            reason = f"{stored:,} bytes cannot hold {parameters:,} parameters"
            raise self.corrupt(step, reason)

    def verify(self, step: int) -> None:
        """Reads arrays and files of a checkpoint on the host and verifies them.

        Raises:
          CorruptCheckpointError: they differ from what was saved.
        """
        meta = self.read_verified_meta(step)
        for name, texts in meta["checksums"].items():  # One at a time, to save memory.
            arrays = self._arrays(step, name, shapes_of(texts))
            self.check(step, {name: arrays}, meta)
        self.files(step)

    def read_verified_meta(self, step: int) -> Meta:
        """Reads the JSON object of a checkpoint with the checksums in it.

        Raises:
          CorruptCheckpointError: it differs from what was saved.
          DataError: it has the format of another version of this program.
        """
        meta = self._read_json(step, "meta")
        if reason := verify_checksums(meta):
            raise self.corrupt(step, reason)
        if meta.get("step", step) != step:
            raise self.corrupt(step, f"it was saved as step {meta['step']}")
        if meta.get("format") != FORMAT:
            raise DataError(
                f"Checkpoint {self.path(step)} must have format {FORMAT} to be read "
                f"here, and has {meta.get('format')}: another version of t2t_jax has "
                "written it.\nIt was not modified. Use that version, or choose another "
                "step or workdir."
            )
        return meta

    def _arrays(
        self, step: int, item: str, expected: Mapping[str, str]
    ) -> dict[str, np.ndarray]:
        """Reads the arrays of an item to the host, without verifying them."""
        with self._diagnosed(step):
            for path in self.path(step).rglob("*"):
                _check_regular_file(path)
            return read_arrays(self.path(step) / item, expected)

    def _read_json(self, step: int, item: str) -> Meta:
        """Reads a JSON item without verifying it."""
        path = self.path(step) / item / "metadata"  # where Orbax puts it
        with self._diagnosed(step, f"its {item} cannot be read ({{}})"):
            return read_json_object(path, advice="Choose another step.")

    @contextmanager
    def _diagnosed(self, step: int, reason: str = "{}") -> Iterator[None]:
        """Converts the errors of reading files; `reason` has a place for the cause."""
        try:
            yield
        except Exception as error:
            if io_error := as_io_error(error, self.path(step)):
                raise io_error from error
            cause = short_reason(error).rpartition(" is damaged: ")[2]
            raise self.corrupt(step, reason.format(cause)) from error

    def corrupt(self, step: int, reason: str) -> CorruptCheckpointError:
        """Returns the error of a corrupt checkpoint, which names the other steps."""
        others, kind = [x for x in self.steps() if x != step], self._error
        if kind is CorruptCheckpointError and not self.path(step).exists():
            kind, reason = RemovedCheckpointError, "it was removed while it was read"
        return kind(self.path(step), reason, others=others)


def without_checksums(meta: Meta) -> Meta:
    """Returns the JSON object as it was passed to `CheckpointWriter.save`."""
    return {name: value for name, value in meta.items() if name not in CHECKSUM_KEYS}


def place(arrays: dict[str, np.ndarray], like: PyTree) -> PyTree:
    """Places arrays, by path, on the devices of `like`, and removes them from `arrays`.

    A process keeps what its own devices need.
    """
    return jax.tree_util.tree_map_with_path(
        lambda path, leaf: jax.make_array_from_callback(
            leaf.shape, leaf.sharding, arrays.pop(path_of(path)).__getitem__
        ),
        like,
    )


def _check_regular_file(path: Path) -> None:
    """Checks a path that may be opened: reading a pipe or device may block."""
    mode = path.lstat().st_mode
    if stat.S_ISDIR(mode):
        return
    if not stat.S_ISREG(mode):
        raise DataError(f"{path} must be a file, and is a link, a pipe or a device")
    # Except for the arrays, in folders `d`, Orbax reads complete files, as JSON.
    if path.parent.name != "d":
        check_size(path, max_bytes=MAX_JSON_BYTES, advice="")
