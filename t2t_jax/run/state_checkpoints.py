"""A run's states, between the devices and the disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import metadata
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from t2t_jax.checkpointing.checkpoints import Checkpoints
from t2t_jax.checkpointing.recovery import restore_latest_valid
from t2t_jax.checkpointing.step_dirs import Meta
from t2t_jax.config import Config, parse, to_dict
from t2t_jax.distributed.consensus import all_reduce_min
from t2t_jax.distributed.processes import SINGLE_PROCESS, Processes
from t2t_jax.errors import ConfigError, StorageError
from t2t_jax.run.resume_rules import check_fingerprints
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.progress import RunProgress
from t2t_jax.training.state import TrainState, state_shardings
from t2t_jax.types import DataPosition

_VERSIONS_OF = ("t2t-jax", "jax", "flax", "optax", "orbax-checkpoint", "sentencepiece")


class RunCheckpointer:
    """Begins, restores and saves the states of one run on one mesh.

    Args:
      config: of the whole experiment; it is saved with every state.
      init: draws a new state; called under `jax.jit`.
      mesh: the devices that hold the state.
      fingerprints: hashes of vocabulary and corpora; they are saved too.
      say: told of what was damaged, and of saves that failed.
      processes: those that run the experiment together.
      files: small files that every checkpoint keeps, by name: the vocabulary, without
        which its parameters are of no use.

    Attributes:
      shapes: the state as `jax.ShapeDtypeStruct`s.
    """

    def __init__(
        self,
        config: Config,
        *,
        workdir: Workdir,
        init: Callable[[], TrainState],
        mesh: Mesh,
        fingerprints: dict[str, str],
        say: Callable[[str], None],
        processes: Processes = SINGLE_PROCESS,
        files: Mapping[str, bytes] | None = None,
    ):
        self._files = files or {}
        self._config, self._fingerprints = config, fingerprints
        self._init, self._say, self._processes = init, say, processes
        self._failure: StorageError | None = None
        self._questions = 0
        self.shapes: TrainState = jax.eval_shape(init)
        self._places = state_shardings(
            self.shapes, mesh, shard_optimizer=config.mesh.shard_optimizer
        )
        self._checkpoints = Checkpoints(
            workdir.checkpoints, keep=config.checkpoint.keep
        )

    def resume(self) -> tuple[TrainState, RunProgress] | None:
        """Loads the newest good state, as `recovery` says; None if there is no state.

        Raises:
          DataError: there are checkpoints, and none is good; or the text is not the
            text that the run began with.
          UserError: the machine cannot read them, or another process sees others.
        """
        return restore_latest_valid(
            self._checkpoints, self.restore, say=self._say, processes=self._processes
        )

    def init(self) -> tuple[TrainState, RunProgress]:
        """Draws the state of a new run, on the devices where it belongs."""
        return jax.jit(self._init, out_shardings=self._places)(), RunProgress()

    def restore(self, step: int) -> tuple[TrainState, RunProgress]:
        """Loads a saved state, whatever the devices it was saved from.

        Raises:
          DamagedError: it is not what was saved, as some process sees it.
          DataError: the text is not the text that the run began with.
        """
        target = jax.tree.map(
            lambda x, place: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place),
            self.shapes,
            self._places,
        )
        params, optimizer, meta = self._checkpoints.restore_training(
            step,
            params=target.params,
            optimizer=target.optimizer,
            all_could=self._all_succeeded,
        )
        configs = None
        with suppress(ConfigError, KeyError):  # Of another version.
            configs = (parse(meta["config"]), self._config)
        check_fingerprints(meta["fingerprints"], self._fingerprints, configs=configs)
        saved = meta["progress"]
        saved["position"] = DataPosition(*saved["position"])
        saved["window"] = tuple(saved["window"])
        saved["pending"] = tuple(saved["pending"])
        # An argument and no constant: the program is the same for every step.
        number = jax.jit(lambda number: number, out_shardings=self._places.step)(
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
        """Begins to write a state with all that a resumed run needs to go on alike.

        A save that fails is told to people, and training goes on: the next one may
        succeed. Whether the last one has, `wait` says. A checkpoint of the same step
        is replaced.

        Args:
          state: what to save; its buffers may be donated once this returns.
          kinds: why it is saved: periodic, best, final, stopped.
          bleu: of this very state on the development set, if it was scored.
        """
        meta: Meta = {
            "step": progress.step,
            "kinds": list(kinds),
            "progress": progress.to_dict(),
            "config": to_dict(self._config),
            "fingerprints": self._fingerprints,
            "versions": {name: metadata.version(name) for name in _VERSIONS_OF},
        }
        if bleu is not None:
            meta["bleu"] = bleu
        self._report_failure(self._checkpoints.wait)
        self._failure = None
        if self._all_can_write(progress.step):
            self._report_failure(
                self._checkpoints.save,
                progress.step,
                params=state.params,
                optimizer=state.optimizer,
                meta=meta,
                files=self._files,
                replace=True,
            )

    def check(self) -> None:
        """Tells people of a save that has failed meanwhile; never waits."""
        self._report_failure(self._checkpoints.check)

    def wait(self) -> None:
        """Returns when the save begun last is complete.

        Raises:
          StorageError: it has failed.
        """
        self._checkpoints.wait()
        if self._failure:
            raise self._failure

    def close(self) -> None:
        """Completes the saves begun, after which nothing more can be saved."""
        self._report_failure(self._checkpoints.wait)

    def _all_can_write(self, step: int) -> bool:
        """Finds out, before all processes save together, whether each of them can.

        One that fails where the others wait for it would leave them waiting.
        """
        self._report_failure(self._checkpoints.check_writable, step)
        could = not self._failure
        if self._all_succeeded(could):
            return True
        if could:
            self._note(
                StorageError(
                    f"Step {step:,} could not be saved in "
                    f"{self._checkpoints.directory}: another process cannot write "
                    "there.\nIts own log says why. Make room, or make it writable."
                )
            )
        return False

    def _all_succeeded(self, could: bool) -> bool:
        """Tells whether all processes could do what they have just tried."""
        self._questions += 1  # All ask alike, and each name is used once only.
        name = f"snapshots, question {self._questions}"
        return bool(all_reduce_min(self._processes, name, int(could)))

    def _report_failure(
        self, act: Callable[..., None], *args: Any, **kwargs: Any
    ) -> None:
        try:
            act(*args, **kwargs)
        except StorageError as error:
            self._note(error)

    def _note(self, failure: StorageError) -> None:
        self._failure = failure
        self._say(f"WARNING: {failure}")
