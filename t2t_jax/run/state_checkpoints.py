"""Saves and restores the training state of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import metadata
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from t2t_jax.checkpointing.recovery import restore_latest_valid
from t2t_jax.checkpointing.step_dirs import Meta
from t2t_jax.checkpointing.writer import CheckpointWriter
from t2t_jax.config import Config, parse_saved, to_dict
from t2t_jax.distributed.consensus import all_reduce_min
from t2t_jax.distributed.processes import SINGLE_PROCESS, Processes
from t2t_jax.errors import ConfigError, StorageError
from t2t_jax.run.resume_rules import check_fingerprints
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.progress import RunProgress
from t2t_jax.training.state import TrainState, state_shardings
from t2t_jax.types import DataPosition

_PACKAGES = ("t2t-jax", "jax", "flax", "optax", "orbax-checkpoint", "sentencepiece")


class RunCheckpointer:
    """Initializes, restores and saves the training state of one run on one mesh.

    Args:
      config: of the run; saved in every checkpoint.
      init: initializes a new state; called under `jax.jit`.
      mesh: the devices that hold the state.
      fingerprints: hashes of vocabulary and corpora; saved in every checkpoint.
      log: reports corrupt checkpoints and failed saves.
      files: small files to save in every checkpoint, by name: the vocabulary.

    Attributes:
      shapes: the state as `jax.ShapeDtypeStruct`s.
      shardings: the `NamedSharding` of each array of the state.
    """

    def __init__(
        self,
        config: Config,
        *,
        workdir: Workdir,
        init: Callable[[], TrainState],
        mesh: Mesh,
        fingerprints: dict[str, str],
        log: Callable[[str], None],
        processes: Processes = SINGLE_PROCESS,
        files: Mapping[str, bytes] | None = None,
    ):
        self._files = files or {}
        self._config, self._fingerprints = config, fingerprints
        self._init, self._log, self._processes = init, log, processes
        self._failure: StorageError | None = None
        self._reductions = 0
        self.shapes: TrainState = jax.eval_shape(init)
        self.shardings = state_shardings(
            self.shapes, mesh, shard_optimizer=config.mesh.shard_optimizer
        )
        self._checkpoints = CheckpointWriter(
            workdir.checkpoints, keep=config.checkpoint.keep
        )

    def resume(self) -> tuple[TrainState, RunProgress] | None:
        """Restores the newest valid checkpoint; None if there is none.

        Raises:
          DataError: there are checkpoints, and none is valid; or the text is not that
            of the run.
          UserError: a system error prevents reading them, or processes see different
            steps.
        """
        return restore_latest_valid(
            self._checkpoints, self.restore, log=self._log, processes=self._processes
        )

    def init(self) -> tuple[TrainState, RunProgress]:
        """Initializes the state of a new run, sharded on the mesh."""
        return jax.jit(self._init, out_shardings=self.shardings)(), RunProgress()

    def restore(self, step: int) -> tuple[TrainState, RunProgress]:
        """Restores a checkpoint, which may have been saved from other devices.

        Raises:
          CorruptCheckpointError: some process has found that it differs from what was
            saved.
          DataError: the text is not that of the run.
        """
        target = jax.tree.map(
            lambda x, sharding: jax.ShapeDtypeStruct(
                x.shape, x.dtype, sharding=sharding
            ),
            self.shapes,
            self.shardings,
        )
        params, optimizer, meta = self._checkpoints.restore_training(
            step,
            params=target.params,
            optimizer=target.optimizer,
            all_succeeded=self._all_succeeded,
        )
        configs = None
        with suppress(ConfigError, KeyError):  # The config of another version.
            configs = (parse_saved(meta["config"]), self._config)
        check_fingerprints(meta["fingerprints"], self._fingerprints, configs=configs)
        saved = meta["progress"]
        saved["position"] = DataPosition(*saved["position"])
        saved["window"] = tuple(saved["window"])
        saved["pending"] = tuple(saved["pending"])
        # An argument, not a constant: one program serves all steps.
        number = jax.jit(lambda number: number, out_shardings=self.shardings.step)(
            np.int32(step)
        )
        return TrainState(number, params, optimizer), RunProgress(**saved)

    def save(
        self,
        state: TrainState,
        progress: RunProgress,
        *,
        kinds: tuple[str, ...],
        bleu: float | None,
    ) -> None:
        """Starts to save a state with everything that an exact resume needs.

        A failed save is logged and training continues: the next one may succeed.
        `wait` raises the error if the last save failed. An existing checkpoint of the
        same step is replaced.

        Args:
          state: its buffers may be donated once this returns.
          kinds: why it is saved: periodic, best, final, stopped.
          bleu: of this state on the development set, if it was scored.
        """
        meta: Meta = {
            "step": progress.step,
            "kinds": list(kinds),
            "progress": progress.to_dict(),
            "config": to_dict(self._config),
            "fingerprints": self._fingerprints,
            "versions": {name: metadata.version(name) for name in _PACKAGES},
        }
        if bleu is not None:
            meta["bleu"] = bleu
        self._log_failure(self._checkpoints.wait)
        self._failure = None
        if self._all_can_write(progress.step):
            self._log_failure(
                self._checkpoints.save,
                progress.step,
                params=state.params,
                optimizer=state.optimizer,
                meta=meta,
                files=self._files,
                replace=True,
            )

    def check_for_errors(self) -> None:
        """Logs the failure of the current save, if it is known; never waits."""
        self._log_failure(self._checkpoints.check_for_errors)

    def wait(self) -> None:
        """Waits until the current save is complete.

        Raises:
          StorageError: the last save failed.
        """
        self._checkpoints.wait()
        if self._failure:
            raise self._failure

    def close(self) -> None:
        """Waits until the current save is complete, and logs its failure."""
        self._log_failure(self._checkpoints.wait)

    def _all_can_write(self, step: int) -> bool:
        """Checks that every process can write, before the collective save.

        A process that failed during the save would leave the others waiting for it.
        """
        self._log_failure(self._checkpoints.check_writable, step)
        can_write = not self._failure
        if self._all_succeeded(can_write):
            return True
        if can_write:
            self._set_failure(
                StorageError(
                    f"Step {step:,} could not be saved in "
                    f"{self._checkpoints.directory}: another process cannot write "
                    "there.\nSee its log for the reason. Free disk space or fix "
                    "permissions."
                )
            )
        return False

    def _all_succeeded(self, succeeded: bool) -> bool:
        """Returns whether an operation succeeded on every process."""
        self._reductions += 1  # Names are unique, and equal on all processes.
        name = f"checkpoint status {self._reductions}"
        return bool(all_reduce_min(self._processes, name, int(succeeded)))

    def _log_failure(
        self, function: Callable[..., None], *args: Any, **kwargs: Any
    ) -> None:
        try:
            function(*args, **kwargs)
        except StorageError as error:
            self._set_failure(error)

    def _set_failure(self, failure: StorageError) -> None:
        self._failure = failure
        self._log(f"WARNING: {failure}")
