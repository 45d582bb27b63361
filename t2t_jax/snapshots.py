"""A run's states, between the devices and the disk."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import metadata

import jax
import jax.numpy as jnp
from jax.sharding import Mesh

from t2t_jax.checkpointing.checkpoints import Checkpoints, Meta
from t2t_jax.config import Config, to_dict
from t2t_jax.differences import require_same
from t2t_jax.errors import InputMissingError
from t2t_jax.files import VISIBLE_SECONDS
from t2t_jax.parallelism.agreement import of_first
from t2t_jax.parallelism.distributed import ALONE, Processes
from t2t_jax.training.loop import Progress
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
    ):
        self._config, self._fingerprints = config, fingerprints
        self._init = init
        self.shapes: TrainState = jax.eval_shape(init)
        self._places = state_shardings(
            self.shapes, mesh, shard_optimizer=config.mesh.shard_optimizer
        )
        self._checkpoints = Checkpoints(
            workdir.checkpoints, keep=config.checkpoint.keep
        )

    def newest(self, processes: Processes = ALONE) -> int:
        """Returns the last step that is saved; 0 if none is.

        Args:
          processes: that go on together, and so from the step that the first one sees.

        Raises:
          InputMissingError: this one sees another last step, and goes on doing so.
        """
        found = max(self._checkpoints.steps(), default=0)
        newest = int(of_first(processes, "newest step", str(found)))
        deadline = time.monotonic() + VISIBLE_SECONDS
        while found != newest:
            if time.monotonic() > deadline:
                raise InputMissingError(
                    f"Process {processes.index} sees step {found} as the last one in "
                    f"{self._checkpoints.directory}, and process 0 sees {newest}. All "
                    "processes must see the same --workdir."
                )
            time.sleep(1)
            found = max(self._checkpoints.steps(), default=0)
        return newest

    def begin(self) -> tuple[TrainState, Progress]:
        """Draws the state of a new run, on the devices where it belongs."""
        return jax.jit(self._init, out_shardings=self._places)(), Progress()

    def restore(self, step: int) -> tuple[TrainState, Progress]:
        """Loads a saved state, whatever the devices it was saved from.

        Raises:
          DataError: the text is not the text that the run began with.
        """
        meta = self._checkpoints.meta(step)
        require_same(meta["fingerprints"], self._fingerprints)
        target = jax.tree.map(
            lambda x, place: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place),
            self.shapes,
            self._places,
        )
        params, optimizer = self._checkpoints.training(
            step, params=target.params, optimizer=target.optimizer
        )
        saved = meta["progress"]
        saved["position"] = DataPosition(*saved["position"])
        saved["window"] = tuple(saved["window"])
        number = jax.jit(
            lambda: jnp.asarray(step, jnp.int32), out_shardings=self._places.step
        )()
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

        Args:
          state: what to save; its buffers may be donated once this returns.
          progress: where the run stands.
          kinds: why it is saved: periodic, best, final, stopped.
          bleu: of this very state on the development set, if it was scored.
        """
        meta: Meta = {
            "step": progress.step,
            "kinds": list(kinds),
            "progress": progress._asdict(),
            "config": to_dict(self._config),
            "fingerprints": self._fingerprints,
            "versions": {name: metadata.version(name) for name in _VERSIONS_OF},
        }
        if bleu is not None:
            meta["bleu"] = bleu
        self._checkpoints.save(
            progress.step, params=state.params, optimizer=state.optimizer, meta=meta
        )

    def wait(self) -> None:
        """Returns when the saves begun so far are complete."""
        self._checkpoints.wait()

    def close(self) -> None:
        """Completes the saves begun, after which nothing more can be saved."""
        self._checkpoints.close()
