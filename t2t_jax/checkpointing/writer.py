"""Writes checkpoints, beside the training that goes on.

With `reading.py` the only file that knows Orbax. A save begins when the arrays have
been copied from the devices, is written by threads, and is a checkpoint from the moment
in which its folder is renamed.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import orbax.checkpoint as ocp

from t2t_jax.checkpointing.checksums import add_checksums
from t2t_jax.checkpointing.diagnosis import short_reason
from t2t_jax.checkpointing.reader import CheckpointReader
from t2t_jax.checkpointing.step_dirs import Meta, StepDirs
from t2t_jax.errors import StorageError, UserError
from t2t_jax.types import PyTree

NO_BLEU = -1.0


def steps_to_keep(
    metas: Mapping[int, Mapping[str, Any] | None], *, keep: int
) -> set[int]:
    """Chooses the newest checkpoint, the newest `keep` periodic ones, and the best.

    A best or stopped checkpoint is not counted among the periodic ones, or it would
    cost one that an average needs.

    Args:
      metas: by step, the JSON of each checkpoint; None where it cannot be read, and so
        nobody knows what it may be good for.

    Example:
      >>> metas = {n: {"kinds": ["periodic"]} for n in (5, 10, 15)}
      >>> sorted(steps_to_keep({**metas, 7: {"kinds": ["best"], "bleu": 30.0}}, keep=2))
      [7, 10, 15]
    """
    known = {step: meta for step, meta in sorted(metas.items()) if meta is not None}
    periodic = [step for step, meta in known.items() if "periodic" in meta["kinds"]]
    scored = [
        (score, step) for step, meta in known.items() if (score := bleu(meta)) > NO_BLEU
    ]
    return {
        *periodic[-keep:],
        *sorted(metas)[-1:],
        *(step for _, step in sorted(scored)[-1:]),
        *(metas.keys() - known.keys()),
    }


def bleu(meta: Mapping[str, Any]) -> float:
    """Reads a checkpoint's BLEU on the development set; -1 if it was not scored.

    Example:
      >>> bleu({"bleu": 27.5}), bleu({})
      (27.5, -1.0)
    """
    return float(meta.get("bleu", NO_BLEU))


class CheckpointWriter:
    """Saves in one directory, one after another, all processes together.

    Args:
      reader: of the same directory; it tells which checkpoints are kept.
    """

    def __init__(self, folders: StepDirs, *, reader: CheckpointReader, keep: int):
        self._folders, self._reader, self._keep = folders, reader, keep
        self._is_first = jax.process_index() == 0
        self._writer: ocp.AsyncCheckpointer | None = None
        self._step = 0
        self._replaced: Path | None = None
        if self._is_first:
            folders.recover()

    def begin(
        self,
        step: int,
        trees: Mapping[str, PyTree],
        meta: Meta,
        *,
        files: Mapping[str, str],
        replace: bool,
    ) -> None:
        """Begins to write, when what was begun before is written.

        Args:
          trees: pytrees of arrays by name of item.
          files: contents of small files, as `integrity.packed` writes them.
          replace: whether it takes the place of a checkpoint of that step.

        Raises:
          StorageError: it cannot be written, or what was begun before could not.
        """
        self.wait()
        items = {name: ocp.args.StandardSave(tree) for name, tree in trees.items()}
        items["meta"] = ocp.args.JsonSave(add_checksums(meta, trees))
        if files:
            items["files"] = ocp.args.JsonSave(dict(files))
        self._step = step
        # Barriers are known by their names: those of a save that has failed on one
        # process, and left another one waiting, must not be taken for those of this.
        self._writer = ocp.AsyncCheckpointer(
            ocp.CompositeCheckpointHandler(),
            multiprocessing_options=ocp.options.MultiprocessingOptions(
                barrier_sync_key_prefix=f"step-{step}"
            ),
        )
        try:
            if self._is_first:
                # Threads of a save that has failed may have written on for a while.
                self._folders.remove_partial()
                self._replaced = self._folders.clear_step_dir(step, replace=replace)
            path = self._folders.path(step)
            self._writer.save(path, args=ocp.args.Composite(**items))
        except Exception as error:
            raise self._failed(error) from error

    def wait(self) -> None:
        """Returns when what was begun is written.

        Raises:
          StorageError: it could not be. Of each save that is said once.
        """
        if self._writer is None:
            return
        try:
            self._writer.wait_until_finished()
        except Exception as error:
            raise self._failed(error) from error
        self._end()
        if self._is_first:
            self._remove_the_old()

    def check(self) -> None:
        """Says what `wait` would say, if that is known already; never waits.

        Raises:
          StorageError: what was begun could not be written.
        """
        if self._writer is None:
            return
        try:
            self._writer.check_for_errors()
        except Exception as error:
            raise self._failed(error) from error

    def check_writable(self, step: int) -> None:
        """Makes and removes a small folder, as a save makes a large one.

        Each process makes its own, for it may be the only one that cannot.

        Args:
          step: that is to be saved.

        Raises:
          StorageError: that is impossible.
        """
        self._step = step
        # Not called like a save that did not end, which the first process sweeps away.
        probe = self._folders.directory / f"removed-room-{jax.process_index()}"
        try:
            probe.mkdir(parents=True, exist_ok=True)
            (probe / "file").write_bytes(bytes(1 << 16))
        except OSError as error:
            raise self._failed(error) from error
        finally:
            shutil.rmtree(probe, ignore_errors=True)

    def _failed(self, error: Exception) -> StorageError:
        """Clears away a save that has failed, for what it has left holds space."""
        if self._writer is not None:
            with contextlib.suppress(Exception):
                self._writer.wait_until_finished()
            self._end()
        if self._is_first:
            self._folders.remove_partial()
            if self._replaced is not None:
                self._folders.recover()
                self._replaced = None
        newest = max(self._folders.steps(), default=0)
        on = f"go on from step {newest:,}" if newest else "begin again"
        return StorageError(
            f"Step {self._step:,} could not be saved in {self._folders.directory}: "
            f"{short_reason(error)}.\nUntil a save succeeds, the run would {on}. Make "
            "room there, or make it writable."
        )

    def _end(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._writer = None

    def _remove_the_old(self) -> None:
        self._folders.remove_partial()
        if self._replaced is not None:
            self._folders.remove(self._replaced)
            self._replaced = None
        metas: dict[int, Meta | None] = {}
        for step in self._folders.steps():
            try:
                metas[step] = self._reader.read_verified_meta(step)
            except UserError:  # Whosever fault it is, it may be good for something.
                metas[step] = None
        for step in metas.keys() - steps_to_keep(metas, keep=self._keep):
            self._folders.remove(self._folders.path(step))
