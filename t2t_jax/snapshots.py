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
from t2t_jax.checkpointing.folders import Meta
from t2t_jax.checkpointing.recovery import newest_good
from t2t_jax.config import Config, parse, to_dict
from t2t_jax.differences import require_same
from t2t_jax.errors import ConfigError, StorageError
from t2t_jax.parallelism.agreement import least
from t2t_jax.parallelism.distributed import ALONE, Processes
from t2t_jax.training.progress import Progress
from t2t_jax.training.state import TrainState, state_shardings
from t2t_jax.types import DataPosition
from t2t_jax.workdir import Workdir

_VERSIONS_OF = ("t2t-jax", "jax", "flax", "optax", "orbax-checkpoint", "sentencepiece")


class Snapshots:
    """Begins, restores and saves the states of one run on one mesh.

    Args:
      config: of the whole experiment; it is saved with every state.
      workdir: the run's directory.
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
        processes: Processes = ALONE,
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

    def resume(self) -> tuple[TrainState, Progress] | None:
        """Loads the newest good state, as `recovery` says; None if there is no state.

        Raises:
          DataError: there are checkpoints, and none is good; or the text is not the
            text that the run began with.
          UserError: the machine cannot read them, or another process sees others.
        """
        return newest_good(
            self._checkpoints, self.restore, say=self._say, processes=self._processes
        )

    def begin(self) -> tuple[TrainState, Progress]:
        """Draws the state of a new run, on the devices where it belongs."""
        return jax.jit(self._init, out_shardings=self._places)(), Progress()

    def restore(self, step: int) -> tuple[TrainState, Progress]:
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
        params, optimizer, meta = self._checkpoints.training(
            step,
            params=target.params,
            optimizer=target.optimizer,
            all_could=self._all_could,
        )
        configs = None
        with suppress(ConfigError, KeyError):  # Of another version.
            configs = (parse(meta["config"]), self._config)
        require_same(meta["fingerprints"], self._fingerprints, configs=configs)
        saved = meta["progress"]
        saved["position"] = DataPosition(*saved["position"])
        saved["window"] = tuple(saved["window"])
        saved["pending"] = tuple(saved["pending"])
        # An argument and no constant: the program is the same for every step.
        number = jax.jit(lambda number: number, out_shardings=self._places.step)(
            np.int32(step)
        )
        return TrainState(number, params, optimizer), Progress(**saved)

    def save(
        self,
        state: TrainState,
        progress: Progress,
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
          progress: where the run stands.
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
        self._tell_of_failure(self._checkpoints.wait)
        self._failure = None
        if self._all_have_room(progress.step):
            self._tell_of_failure(
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
        self._tell_of_failure(self._checkpoints.check)

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
        self._tell_of_failure(self._checkpoints.wait)

    def _all_have_room(self, step: int) -> bool:
        """Finds out, before all processes save together, whether each of them can.

        One that fails where the others wait for it would leave them waiting.
        """
        self._tell_of_failure(self._checkpoints.require_room, step)
        could = not self._failure
        if self._all_could(could):
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

    def _all_could(self, could: bool) -> bool:
        """Tells whether all processes could do what they have just tried."""
        self._questions += 1  # All ask alike, and each name is used once only.
        name = f"snapshots, question {self._questions}"
        return bool(least(self._processes, name, int(could)))

    def _tell_of_failure(
        self, act: Callable[..., None], *args: Any, **kwargs: Any
    ) -> None:
        try:
            act(*args, **kwargs)
        except StorageError as error:
            self._note(error)

    def _note(self, failure: StorageError) -> None:
        self._failure = failure
        self._say(f"WARNING: {failure}")
