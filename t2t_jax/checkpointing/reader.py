"""Reads checkpoints, and believes none of them before it has looked.

Each process reads for itself, and waits for no other, which may have met a damage that
this one has not. With `saving.py` the only file that knows Orbax.
"""

from __future__ import annotations

import inspect
import stat
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import jax
import numpy as np
import orbax.checkpoint as ocp

from t2t_jax.checkpointing.checksums import (
    FORMAT,
    checksums,
    differences,
    dtype_shapes,
    unpacked,
    verify_checksums,
)
from t2t_jax.checkpointing.diagnosis import (
    CorruptCheckpointError,
    as_io_error,
    short_reason,
)
from t2t_jax.checkpointing.step_dirs import Meta, StepDirs
from t2t_jax.errors import DataError
from t2t_jax.files import MOST_JSON_BYTES, check_size, read_json_object
from t2t_jax.types import PyTree


def silence_orbax() -> None:
    """Lets what Orbax has left end unheard, and nothing else.

    From here on, in the whole process: nobody knows when the last of it ends.
    """
    before = sys.unraisablehook
    if not isinstance(before, _Hook):
        sys.unraisablehook = _Hook(before)


class _Hook:
    def __init__(self, before: Callable[[Any], object]):
        self._before = before

    def __call__(self, unraisable: Any) -> None:
        left = _is_coroutine(unraisable.object) or _came_too_late(unraisable)
        # A signal that falls into a coroutine of Orbax is none of its errors.
        if not (left and isinstance(unraisable.exc_value, Exception)):
            self._before(unraisable)


def _is_coroutine(left: object) -> bool:
    return inspect.iscoroutine(left) and _is_of_orbax(left.cr_code.co_filename)


def _came_too_late(unraisable: Any) -> bool:
    """Tells an answer of TensorStore to an event loop that has ended."""
    place: TracebackType | None = unraisable.exc_traceback
    return (
        isinstance(unraisable.exc_value, RuntimeError)
        and str(unraisable.exc_value) == "Event loop is closed"
        and place is not None
        and place.tb_frame.f_code.co_name == "call_soon_threadsafe"
    )


def _is_of_orbax(path: str) -> bool:
    return "/orbax/" in path.replace("\\", "/")


Read = TypeVar("Read")


class CheckpointReader:
    """Reads the checkpoints of one directory."""

    def __init__(self, folders: StepDirs):
        self._folders = folders

    def read_verified_meta(self, step: int) -> Meta:
        """Reads the JSON of a checkpoint, with the checksums in it.

        Raises:
          DamagedError: it is not what was saved.
          DataError: it is, but another version of this program has saved it.
        """
        sealed = self._object(step, "meta")
        reason = verify_checksums(sealed)
        if reason:
            raise self._damaged(step, reason)
        if sealed.get("step", step) != step:
            raise self._damaged(step, f"it was saved as step {sealed['step']}")
        if sealed.get("format") != FORMAT:
            raise DataError(
                f"Checkpoint {self._folders.path(step)} must have format {FORMAT} to "
                f"be read here, and has {sealed.get('format')}: a newer version of "
                "t2t_jax, or another one, has written it.\nIt is left as it is. Use "
                "that version, or choose another step or workdir."
            )
        return sealed

    def files(self, step: int) -> dict[str, bytes]:
        """Reads the small files of a checkpoint, and compares their digests.

        Raises:
          DamagedError: they are not what was saved.
        """
        saved = self.read_verified_meta(step).get("files", {})
        if not saved:
            return {}
        there = self._object(step, "files")
        try:
            return {name: unpacked(there.get(name), sha) for name, sha in saved.items()}
        except ValueError as error:
            raise self._damaged(step, f"in files, {error}") from error

    def require_model(self, step: int, like: Mapping[str, PyTree]) -> None:
        """Checks the names and shapes of what a checkpoint holds, without reading it.

        Raises:
          DamagedError: its meta is not what was saved.
          DataError: it holds other arrays.
        """
        self._require_model(step, self.read_verified_meta(step)["checksums"], like)

    def arrays(
        self,
        step: int,
        like: Mapping[str, PyTree],
        *,
        all_could: Callable[[bool], bool] = bool,
    ) -> tuple[Meta, Any]:
        """Reads items of a checkpoint, and compares them with what was saved.

        Args:
          like: by item, trees of `jax.ShapeDtypeStruct` with shardings.

        Returns:
          The sealed JSON, and by item trees of arrays.

        Raises:
          DamagedError: they are not what was saved.
          DataError: they are of another model, or another version has saved them.
        """

        def read() -> tuple[Meta, Any]:
            sealed = self.read_verified_meta(step)
            self._require_model(step, sealed["checksums"], like)
            return sealed, self._attempt(step, lambda: self._restore(step, like))

        def compare() -> None:
            trees = {name: restored[name] for name in like}
            self._require_sums(step, sealed["checksums"], trees)

        sealed, restored = self._together(step, read, all_could)
        # Twice, for a copy of an array is judged by the process alone that holds it.
        self._together(step, compare, all_could)
        return sealed, restored

    def verify(self, step: int) -> None:
        """Reads all arrays of a checkpoint into NumPy, and compares them likewise.

        Raises:
          DamagedError: they are not what was saved.
        """
        saved = self.read_verified_meta(step)["checksums"]
        handler = ocp.PyTreeCheckpointHandler()

        def read() -> PyTree:
            trees = {}
            for name in saved:
                path = self._folders.path(step) / name
                as_numpy = jax.tree.map(
                    lambda _: ocp.RestoreArgs(restore_type=np.ndarray),
                    handler.metadata(path).tree,
                )
                args = ocp.args.PyTreeRestore(restore_args=as_numpy)
                trees[name] = handler.restore(path, args=args)
            return trees

        self._require_sums(step, saved, self._attempt(step, read))

    def _together(
        self, step: int, act: Callable[[], Read], all_could: Callable[[bool], bool]
    ) -> Read:
        """Acts, and lets the others hear of a damage, so that nobody goes on alone."""
        try:
            done = act()
        except CorruptCheckpointError:
            all_could(False)
            raise
        if not all_could(True):
            raise self._damaged(step, "another process could not read it")
        return done

    def _object(self, step: int, item: str) -> Meta:
        """Reads a JSON item of a checkpoint, which is not verified yet."""
        path = self._folders.path(step)
        place = path / item / "metadata"  # where Orbax puts the JSON of an item
        try:
            return read_json_object(place, mend="Choose another step.")
        except (DataError, OSError) as error:
            fault = as_io_error(error, path)
            if fault:
                raise fault from error
            told = short_reason(error).removeprefix(f"{place} is damaged: ")
            reason = f"its {item} cannot be read ({told})"
            raise self._damaged(step, reason) from error

    def _restore(self, step: int, like: Mapping[str, PyTree]) -> Any:
        me = jax.process_index()
        reader = ocp.Checkpointer(
            ocp.CompositeCheckpointHandler(),
            multiprocessing_options=ocp.options.MultiprocessingOptions(
                primary_host=me,
                active_processes={me},
                barrier_sync_key_prefix=f"process-{me}",
            ),
        )
        items = {name: ocp.args.StandardRestore(tree) for name, tree in like.items()}
        return reader.restore(
            self._folders.path(step), args=ocp.args.Composite(**items)
        )

    def _require_model(
        self, step: int, saved: Mapping[str, Any], like: Mapping[str, PyTree]
    ) -> None:
        """Checks that a checkpoint holds arrays of these names and shapes."""
        for name, tree in like.items():
            there = {
                path: text.rpartition(" ")[0]
                for path, text in saved.get(name, {}).items()
            }
            reason = differences(there, dtype_shapes(tree))
            if reason:
                raise DataError(
                    f"Checkpoint {self._folders.path(step)} was written for another "
                    f"model: {reason}, in {name}.\nName a workdir of this model, or "
                    "give the configuration that it was trained with."
                )

    def _require_sums(
        self, step: int, saved: Mapping[str, Any], trees: Mapping[str, PyTree]
    ) -> None:
        # All sums come first: other processes may wait for this one in each of them.
        found = {name: checksums(tree) for name, tree in trees.items()}
        for name, sums in found.items():
            reason = differences(saved[name], sums)
            if reason:
                raise self._damaged(step, f"in {name}, {reason}")

    def _attempt(self, step: int, read: Callable[[], Read]) -> Read:
        """Reads, and tells a damaged checkpoint from a machine that fails."""
        try:
            for path in self._folders.path(step).rglob("*"):
                _require_plain(path)
            return read()
        except Exception as error:
            silence_orbax()
            fault = as_io_error(error, self._folders.path(step))
            if fault:
                raise fault from error
            raise self._damaged(step, short_reason(error)) from error

    def _damaged(self, step: int, reason: str) -> CorruptCheckpointError:
        others = self._folders.other_steps(step)
        return CorruptCheckpointError(self._folders.path(step), reason, others=others)


def _require_plain(path: Path) -> None:
    """Checks what Orbax would open without a look: a pipe or a device may never end."""
    mode = path.lstat().st_mode
    if stat.S_ISDIR(mode):
        return
    if not stat.S_ISREG(mode):
        raise DataError(f"{path} must be a file, and is a link, a pipe or a device")
    # All but the arrays, in folders `d`, Orbax reads whole, as JSON.
    if path.parent.name != "d":
        check_size(path, most=MOST_JSON_BYTES, mend="")
