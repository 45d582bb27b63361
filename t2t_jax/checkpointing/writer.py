"""Writes checkpoints asynchronously, while training continues.

`save` returns when the arrays have been copied from the devices. Background threads
write them, and the directory is renamed to its step when it is complete.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp

from t2t_jax.checkpointing.checksums import add_checksums, pack_files
from t2t_jax.checkpointing.diagnosis import CorruptCheckpointError, short_reason
from t2t_jax.checkpointing.reader import (
    NO_SCORE,
    CheckpointReader,
    best_step,
    dev_score,
)
from t2t_jax.checkpointing.step_dirs import Meta, require_array_path
from t2t_jax.devices.distributed.processes import (
    SINGLE_PROCESS,
    Processes,
    failing_together,
)
from t2t_jax.errors import OutputError, StorageError, UserError
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
        self._keep, self.processes = keep, processes
        self._is_first = jax.process_index() == 0
        self._checkpointer: ocp.AsyncCheckpointer | None = None
        self._step, self._is_saving, self._is_readable = 0, False, False
        self._replaced: Path | None = None
        if self._is_first:
            self.recover()

    def save(
        self,
        step: int,
        *,
        meta: Meta,
        files: Mapping[str, bytes] | None = None,
        **items: PyTree,
    ) -> None:
        """Starts to write a checkpoint, after the save before is complete.

        An existing checkpoint of that step is removed when the new one is complete.
        Collective: call on every process.

        Args:
          meta: JSON values. `kinds` (list of str) and `bleu` (float, if known) decide
            which checkpoints are kept.
          files: small files to store in the checkpoint, by name.
          items: pytrees of arrays by name. Those of a run are `params`, `optimizer`,
            and `trained` if training continues from other parameters than `params`.

        Raises:
          StorageError: some process cannot write the checkpoint, or the save before
            failed.
        """
        self.wait()
        self._step = step
        saved = {name: ocp.args.StandardSave(tree) for name, tree in items.items()}
        if files:
            digests, texts = pack_files(files)
            meta, saved["files"] = {**meta, "files": digests}, ocp.args.JsonSave(texts)
        saved["meta"] = ocp.args.JsonSave(add_checksums(meta, items))
        with self._aborting(), self._together("write there"):
            self._prepare()
        # Barriers have unique names: a process may still wait in one of a failed save.
        prefix = f"step-{step}"
        options = ocp.options.MultiprocessingOptions(barrier_sync_key_prefix=prefix)
        self._checkpointer = ocp.AsyncCheckpointer(
            ocp.CompositeCheckpointHandler(), multiprocessing_options=options
        )
        self._is_saving = True
        with self._aborting(), self._together("begin it"):
            args = ocp.args.Composite(**saved)
            self._checkpointer.save(self.path(step), args=args)

    def wait(self) -> None:
        """Waits until the current save is complete.

        Process 0 reads the first one back before it removes any other. Collective: call
        on every process.

        Raises:
          StorageError: it failed on some process; raised once per save.
          OutputError: what was written cannot be read.
        """
        if not self._is_saving:
            return
        self._is_saving = False
        with self._together("complete it"):
            if self._checkpointer is not None:  # Else its failure was raised.
                with self._aborting():
                    self._checkpointer.wait_until_finished()
                self._checkpointer.close()
                self._checkpointer = None
                if self._is_first:
                    self._read_back()
                    self._remove_old()

    def _read_back(self) -> None:
        """Verifies the save that was completed, if it is the first."""
        if self._is_readable:
            return
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

    def _prepare(self) -> None:
        """Checks that this process can create files, by writing a small one.

        A process that failed during the save would leave the others waiting for it.
        Process 0 also frees the name of the step.
        """
        # A name that `remove_partial`, called by process 0, does not match.
        probe = self.directory / f"removed-probe-{jax.process_index()}"
        try:
            probe.mkdir(parents=True, exist_ok=True)
            (probe / "file").write_bytes(bytes(1 << 16))
        finally:
            shutil.rmtree(probe, ignore_errors=True)
        if self._is_first:
            # Threads of a failed save may have continued to write for a while.
            self.remove_partial()
            self._replaced = self.clear_step_dir(self._step)

    def _together(self, what: str) -> AbstractContextManager[None]:
        """Raises a StorageError on the other processes if some process fails."""
        error = StorageError(
            f"Step {self._step:,} could not be saved in {self.directory}: another "
            f"process cannot {what}.\nSee its log for the reason. Free disk space or "
            "fix permissions."
        )
        return failing_together(
            self.processes, f"save: {what}", handled=Exception, error=error
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
                self._checkpointer.close()
                self._checkpointer = None
            if self._is_first:
                self.recover()
                self._replaced = None
            if isinstance(error, StorageError):  # of another process
                raise
            newest = max(self.steps(), default=0)
            resumes = f"resumes from step {newest:,}" if newest else "begins at step 0"
            raise StorageError(
                f"Step {self._step:,} could not be saved in {self.directory}: "
                f"{short_reason(error)}.\nUntil a save succeeds, a restart {resumes}. "
                "Free disk space or fix permissions there."
            ) from error

    def _remove_old(self) -> None:
        """Removes the checkpoints that are not kept."""
        self.remove_partial()
        if self._replaced is not None:
            self.remove(self._replaced)
            self._replaced = None
        metas: dict[int, Meta | None] = dict.fromkeys(self.steps())
        for step in metas:
            with contextlib.suppress(UserError):  # Corrupt, or a system error: kept.
                metas[step] = self.read_verified_meta(step)
        for step in metas.keys() - steps_to_keep(metas, keep=self._keep):
            self.remove(self.path(step))


def steps_to_keep(
    metas: Mapping[int, Mapping[str, Any] | None], *, keep: int
) -> set[int]:
    """Returns the newest step, the newest `keep` periodic steps, and the best step.

    A checkpoint that is only `best` or `stopped` does not count as periodic: it must
    not displace one that an average needs.

    Args:
      metas: by step, the JSON object of its checkpoint; None if that cannot be read.
        Such a checkpoint is kept.

    Example:
      >>> metas = {n: {"kinds": ["periodic"]} for n in (5, 10, 15)}
      >>> sorted(steps_to_keep({**metas, 7: {"kinds": ["best"], "bleu": 30.0}}, keep=2))
      [7, 10, 15]
    """
    steps = sorted(metas)
    known = {step: meta for step in steps if (meta := metas[step]) is not None}
    periodic = [step for step, meta in known.items() if "periodic" in meta["kinds"]]
    scored = {n: meta for n, meta in known.items() if dev_score(meta) > NO_SCORE}
    kept = {*steps[-1:], *periodic[-keep:], *(metas.keys() - known.keys())}
    return kept | {best_step(scored)} if scored else kept
