"""Writes checkpoints asynchronously, while training continues.

`save` returns when the arrays have been copied from the devices. Background threads
write them, and the directory is renamed to its step when it is complete.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import jax
import orbax.checkpoint as ocp

from t2t_jax.checkpointing.checkpoints import Checkpoints
from t2t_jax.checkpointing.checksums import add_checksums, pack_files
from t2t_jax.checkpointing.diagnosis import CorruptCheckpointError, short_reason
from t2t_jax.checkpointing.retention import steps_to_keep
from t2t_jax.checkpointing.step_dirs import Meta, require_array_path
from t2t_jax.errors import OutputError, StorageError, UserError
from t2t_jax.types import Params, PyTree


class CheckpointWriter(Checkpoints):
    """The checkpoints of one directory, opened for saving by all processes of a run.

    Args:
      directory: created by the first save.
      keep: number of periodic checkpoints to keep.

    Raises:
      OutputError: what is saved there could not be read again.
    """

    def __init__(self, directory: Path, *, keep: int):
        require_array_path(directory)
        super().__init__(directory)
        self._keep, self._is_readable = keep, False
        self._is_first = jax.process_index() == 0
        self._checkpointer: ocp.AsyncCheckpointer | None = None
        self._step = 0
        self._replaced: Path | None = None
        if self._is_first:
            self.recover()

    def save(
        self,
        step: int,
        *,
        params: Params,
        optimizer: PyTree | None,
        trained: PyTree | None = None,
        meta: Meta,
        files: Mapping[str, bytes] | None = None,
    ) -> None:
        """Starts to write a checkpoint, after the save before is complete.

        An existing checkpoint of that step is removed when the new one is complete.
        Collective: call on every process.

        Args:
          optimizer: any pytree of arrays; None for a model that is not trained further.
          trained: the parameters from which training continues; None for `params`.
          meta: JSON values. `kinds` (list of str) and `bleu` (float, if known) decide
            which checkpoints are kept.
          files: small files to store in the checkpoint, by name.

        Raises:
          StorageError: the checkpoint cannot be written, or the save before failed.
        """
        self.wait()
        trees = {"params": params, "optimizer": optimizer, "trained": trained}
        trees = {name: tree for name, tree in trees.items() if tree is not None}
        items = {name: ocp.args.StandardSave(tree) for name, tree in trees.items()}
        if files:
            digests, texts = pack_files(files)
            meta, items["files"] = {**meta, "files": digests}, ocp.args.JsonSave(texts)
        items["meta"] = ocp.args.JsonSave(add_checksums(meta, trees))
        self._step = step
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
            args = ocp.args.Composite(**items)
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

    def check_writable(self, step: int) -> None:
        """Checks that this process can create files here, by writing a small one.

        Raises:
          StorageError: it cannot.
        """
        # A name that `remove_partial`, called by process 0, does not match.
        probe = self.directory / f"removed-probe-{jax.process_index()}"
        self._step = step
        try:
            with self._aborting():
                probe.mkdir(parents=True, exist_ok=True)
                (probe / "file").write_bytes(bytes(1 << 16))
        finally:
            shutil.rmtree(probe, ignore_errors=True)

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
