"""Writes checkpoints asynchronously, while training continues.

`save` returns when the arrays have been copied from the devices. Background threads
write them, and the directory is renamed to its step when it is complete.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp
from jax.sharding import SingleDeviceSharding

from t2t_jax.checkpointing.checkpoints import CheckpointReader
from t2t_jax.checkpointing.checksums import add_checksums, pack_files
from t2t_jax.checkpointing.diagnosis import CorruptCheckpointError, short_reason
from t2t_jax.checkpointing.newest_valid import quarantine, restore_latest_valid
from t2t_jax.checkpointing.retention import steps_to_keep
from t2t_jax.checkpointing.step_dirs import Meta, require_array_path
from t2t_jax.data.files.progress_bar import print_line
from t2t_jax.data.line_arguments import as_directory
from t2t_jax.devices.distributed.processes import (
    SINGLE_PROCESS,
    Processes,
    all_reduce_min,
    current_processes,
)
from t2t_jax.devices.sharding.rules import path_of
from t2t_jax.errors import OutputError, StorageError, UserError, write_error
from t2t_jax.files import locked
from t2t_jax.types import PyTree


class CheckpointWriter(CheckpointReader):
    """The checkpoints of one directory, opened for saving by all processes of a run.

    Args:
      directory: created by the first save.
      keep: number of periodic checkpoints to keep.
      processes: all that save.

    Raises:
      OutputError: what is saved there could not be read again.
    """

    def __init__(
        self, directory: Path, *, keep: int, processes: Processes = SINGLE_PROCESS
    ):
        require_array_path(directory)
        super().__init__(directory)
        self._keep, self._is_readable, self._processes = keep, False, processes
        self._is_first = jax.process_index() == 0
        self._checkpointer: ocp.AsyncCheckpointer | None = None
        self._step = self._saves = 0
        self._replaced: Path | None = None
        if self._is_first:
            self.recover()

    def save(
        self,
        step: int,
        *,
        meta: Meta,
        files: Mapping[str, bytes] | None = None,
        **items: PyTree | None,
    ) -> None:
        """Starts to write a checkpoint, after the save before is complete.

        An existing checkpoint of that step is removed when the new one is complete.
        Collective: call on every process.

        Args:
          meta: JSON values. `kinds` (list of str) and `bleu` (float, if known) decide
            which checkpoints are kept.
          files: small files to store in the checkpoint, by name.
          items: pytrees of arrays by name; None for one that there is not. Those of a
            run are `params`, `optimizer`, and `trained` if training continues from
            other parameters than `params`.

        Raises:
          StorageError: some process cannot write the checkpoint, or the save before
            failed.
        """
        self.wait()
        self._step = step
        self._require_writable()
        trees = {name: tree for name, tree in items.items() if tree is not None}
        saved = {name: ocp.args.StandardSave(tree) for name, tree in trees.items()}
        if files:
            digests, texts = pack_files(files)
            meta, saved["files"] = {**meta, "files": digests}, ocp.args.JsonSave(texts)
        saved["meta"] = ocp.args.JsonSave(add_checksums(meta, trees))
        # Barriers have unique names: a process may still wait in one of a failed save.
        self._checkpointer = ocp.AsyncCheckpointer(
            ocp.CompositeCheckpointHandler(),
            multiprocessing_options=ocp.options.MultiprocessingOptions(
                barrier_sync_key_prefix=f"step-{step}"
            ),
        )
        with self._aborting():
            if self._is_first:
                # Threads of a failed save may have continued to write for a while.
                self.remove_partial()
                self._replaced = self.clear_step_dir(step)
            args = ocp.args.Composite(**saved)
            self._checkpointer.save(self.path(step), args=args)

    def wait(self) -> None:
        """Waits until the current save is complete.

        Process 0 reads the first one back before it removes any other.

        Raises:
          StorageError: it failed; raised once per save.
          OutputError: what was written cannot be read.
        """
        if self._checkpointer is None:
            return
        with self._aborting():
            self._checkpointer.wait_until_finished()
        self._close()
        if self._is_first:
            if not self._is_readable:
                self._read_back()
            self._remove_old()

    def _read_back(self) -> None:
        """Verifies the save that was completed."""
        try:
            self.verify(self._step)
        except CorruptCheckpointError as error:
            raise OutputError(
                f"Step {self._step:,} was saved in {self.directory}, and cannot be "
                f"read: {error.reason}. No other checkpoint was removed. Check the "
                "disk, or choose another directory."
            ) from error
        except UserError as error:  # A system error: the next save is read back.
            raise StorageError(error.problems) from error
        self._is_readable = True

    def check_for_errors(self) -> None:
        """Raises the error of the current save if it has failed already; never waits.

        Raises:
          StorageError: the save failed.
        """
        if self._checkpointer is not None:
            with self._aborting():
                self._checkpointer.check_for_errors()

    def _require_writable(self) -> None:
        """Checks that every process can create files here, by writing a small one.

        A process that failed during the save would leave the others waiting for it.
        """
        # A name that `remove_partial`, called by process 0, does not match.
        probe = self.directory / f"removed-probe-{jax.process_index()}"
        self._saves += 1
        name = f"can write, {self._saves}"
        try:
            with self._aborting():
                probe.mkdir(parents=True, exist_ok=True)
                (probe / "file").write_bytes(bytes(1 << 16))
        except StorageError:
            all_reduce_min(self._processes, name, 0)
            raise
        finally:
            shutil.rmtree(probe, ignore_errors=True)
        if not all_reduce_min(self._processes, name, 1):
            raise StorageError(
                f"Step {self._step:,} could not be saved in {self.directory}: another "
                "process cannot write there.\nSee its log for the reason. Free disk "
                "space or fix permissions."
            )

    @contextlib.contextmanager
    def _aborting(self) -> Iterator[None]:
        """Removes the files of a save that fails, and raises a StorageError."""
        try:
            yield
        except Exception as error:
            if self._checkpointer is not None:
                with contextlib.suppress(Exception):
                    self._checkpointer.wait_until_finished()
                self._close()
            if self._is_first:
                self.remove_partial()
                if self._replaced is not None:
                    self.recover()
                    self._replaced = None
            newest = max(self.steps(), default=0)
            resumes = f"resumes from step {newest:,}" if newest else "begins at step 0"
            raise StorageError(
                f"Step {self._step:,} could not be saved in {self.directory}: "
                f"{short_reason(error)}.\nUntil a save succeeds, a restart {resumes}. "
                "Free disk space or fix permissions there."
            ) from error

    def _close(self) -> None:
        if self._checkpointer is not None:
            self._checkpointer.close()
        self._checkpointer = None

    def _remove_old(self) -> None:
        """Removes the checkpoints that are not kept."""
        self.remove_partial()
        if self._replaced is not None:
            self.remove(self._replaced)
            self._replaced = None
        metas: dict[int, Meta | None] = {}
        for step in self.steps():
            try:
                metas[step] = self.read_verified_meta(step)
            except UserError:  # Corrupt, or a system error: it is kept.
                metas[step] = None
        for step in metas.keys() - steps_to_keep(metas, keep=self._keep):
            self.remove(self.path(step))


class RestoredState(NamedTuple):
    """What `Checkpoints.restore` returns.

    Attributes:
      meta: as it was given to `save`; tuples have become lists.
    """

    step: int
    state: PyTree
    meta: dict[str, Any]


class Checkpoints:
    """Checkpoints of a state of one's own: verified, and written by background threads.

    A checkpoint has a checksum of every array, and gets its name when it is complete;
    the first one is read back before an older one is removed. Of several processes,
    which share the directory, all call each method.

    Args:
      directory: created if it does not exist; one program may have it open.
      keep: number of newest checkpoints that are kept, beside the best.
      log: gets a line for each checkpoint that is corrupt; None means stderr.

    Raises:
      OutputError: the directory cannot be written, or is in use by another program.

    Example:
      >>> import tempfile
      >>> state = {"weights": jnp.arange(3.0), "key": jax.random.key(7)}
      >>> with Checkpoints(tempfile.mkdtemp(), keep=2) as checkpoints:
      ...     print(checkpoints.restore(state))
      ...     for step in (5, 10, 15):
      ...         checkpoints.save(step, state, meta={"position": [0, step]})
      ...     checkpoints.wait()
      ...     checkpoints.steps(), checkpoints.restore(state).meta
      None
      ([10, 15], {'position': [0, 15]})
    """

    def __init__(
        self,
        directory: str | Path,
        *,
        keep: int = 5,
        log: Callable[[str], None] | None = None,
    ):
        path = as_directory(directory, caller="Checkpoints")
        self._processes, self._log = current_processes(), log or print_line
        self._held = contextlib.ExitStack()
        if self._processes.is_first:
            try:
                path.mkdir(parents=True, exist_ok=True)
                self._held.enter_context(locked(path / "lock"))
            except BlockingIOError as error:
                raise OutputError(
                    f"{path} is in use by another program. Wait for its end, or pass "
                    "another directory."
                ) from error
            except OSError as error:
                raise write_error(
                    path,
                    error,
                    problem="checkpoints cannot be saved there",
                    advice="pass another directory",
                ) from error
        self._writer = CheckpointWriter(path, keep=keep, processes=self._processes)

    def save(
        self,
        step: int,
        state: PyTree,
        *,
        meta: Mapping[str, Any] | None = None,
        score: float | None = None,
    ) -> None:
        """Starts to write a checkpoint, after the save before is complete.

        Args:
          state: any pytree of arrays with elements of 1, 2 or 4 bytes, PRNG keys and
            Python numbers, which are stored as int32 and float32: exact ones belong in
            `meta`. Of several processes, all arrays are global. Its buffers may be
            donated once this returns.
          meta: JSON values, such as the position of the data.
          score: of this state, higher is better: the checkpoint with the highest one is
            kept too.

        Raises:
          StorageError: the checkpoint cannot be written, or the save before failed.
          ValueError: an array has elements of another size, or two have one name.
        """
        record = {"step": step, "kinds": ["periodic"], "meta": dict(meta or {})}
        if score is not None:
            record["bleu"] = float(score)
        self._writer.save(step, meta=record, state=_by_name(state, _storable))

    def restore(self, like: PyTree) -> RestoredState | None:
        """Restores the newest checkpoint that is valid; None if there is none.

        Corrupt ones above it are renamed, and logged.

        Args:
          like: a tree of the state's structure and shapes, of arrays or
            `jax.ShapeDtypeStruct`, with the shardings to restore to: those of another
            mesh than that of the save, if you like.

        Raises:
          DataError: none is valid, or `like` has other arrays.
          UserError: a system error prevents reading them, or processes see different
            steps.
        """
        wanted = {"state": _by_name(like, _as_described)}
        how: Any = {"log": self._log, "processes": self._processes}
        found = restore_latest_valid(self._writer, wanted, **how)
        if found is None:
            return None
        quarantine(self._writer, found.corrupt, **how)
        named = found.items["state"]
        state = jax.tree_util.tree_map_with_path(
            lambda path, leaf: _like_leaf(leaf, named[_name(path)]), like
        )
        return RestoredState(found.step, state, found.meta["meta"])

    def steps(self) -> list[int]:
        """Lists the steps that are completely written, oldest first."""
        return self._writer.steps()

    def wait(self) -> None:
        """Waits until the current save is complete.

        Raises:
          StorageError: it failed.
        """
        self._writer.wait()

    def close(self) -> None:
        """Completes the current save, and lets other programs use the directory."""
        with self._held:
            self._writer.wait()

    def __enter__(self) -> Checkpoints:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        # After an exception other processes may have failed, and would be waited for.
        if kind is None or self._processes.count == 1:
            self.close()


def _name(path: tuple[object, ...]) -> str:
    """Names an array as Orbax does."""
    return path_of(path).replace("/", ".") or "state"


def _by_name(tree: PyTree, convert: Callable[[Any], Any]) -> dict[str, Any]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    named = {_name(path): convert(leaf) for path, leaf in leaves}
    if len(named) < len(leaves):
        raise ValueError(
            "Every array of a state must have a name of its own, its keys with dots "
            f"between them, and of {len(leaves)} some have the same. Use keys without "
            "dots and slashes."
        )
    return named


def _storable(leaf: Any) -> Any:
    if isinstance(leaf, bool | int | float):
        return jnp.asarray(leaf)
    is_key = jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
    return jax.random.key_data(leaf) if is_key else leaf


def _as_described(leaf: Any) -> jax.ShapeDtypeStruct:
    leaf = _storable(leaf)
    sharding = getattr(leaf, "sharding", None)
    here = SingleDeviceSharding(jax.local_devices()[0])
    return jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding or here)


def _like_leaf(like: Any, array: jax.Array) -> Any:
    if isinstance(like, bool | int | float):
        return type(like)(array)
    if jnp.issubdtype(like.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(array, impl=jax.random.key_impl(like))
    return array
