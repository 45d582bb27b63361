"""Saves and restores the training state of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from pathlib import Path

import jax
import numpy as np
from jax.sharding import Mesh

from t2t_jax.checkpointing.newest_valid import quarantine, restore_latest_valid
from t2t_jax.checkpointing.safetensors_io import open_parameters
from t2t_jax.checkpointing.step_dirs import Meta
from t2t_jax.checkpointing.writer import CheckpointWriter
from t2t_jax.config import Config, parse, to_dict
from t2t_jax.devices.distributed.processes import SINGLE_PROCESS, Processes, finishing
from t2t_jax.errors import ConfigError, StorageError
from t2t_jax.run.resume_rules import check_fingerprints
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.progress_and_patience import Kinds, Record, RunProgress
from t2t_jax.training.state import TrainState, evaluation_params, state_shardings
from t2t_jax.types import PyTree
from t2t_jax.version import __version__

_PACKAGES = ("jax", "flax", "optax", "orbax-checkpoint", "sentencepiece")


@dataclass
class RunCheckpointer:
    """Initializes, restores and saves the training state of one run on one mesh.

    Attributes:
      init_state: initializes a new state with given shardings, and `params` if given.
      shapes: the state as `jax.ShapeDtypeStruct`s.
      fingerprints: hashes of vocabulary and corpora; saved in every checkpoint.
      log: reports corrupt checkpoints and failed saves.
      files: small files to save in every checkpoint, by name: the vocabulary.
      shardings: the `NamedSharding` of each array of the state.
    """

    config: Config
    workdir: Workdir
    init_state: Callable[..., TrainState]
    shapes: TrainState
    mesh: Mesh
    fingerprints: dict[str, str]
    log: Callable[[str], None]
    processes: Processes = SINGLE_PROCESS
    files: Mapping[str, bytes] = field(default_factory=dict)
    _failure: StorageError | None = None

    def __post_init__(self) -> None:
        split = self.config.mesh.shard_optimizer
        self.shardings = state_shardings(self.shapes, self.mesh, shard_optimizer=split)
        self._like: TrainState = jax.tree.map(
            lambda x, sharding: x.update(sharding=sharding), self.shapes, self.shardings
        )
        path, keep = self.workdir.checkpoints, self.config.checkpoint.keep
        self._checkpoints = CheckpointWriter(path, keep=keep, processes=self.processes)

    def init(self) -> tuple[TrainState, RunProgress]:
        """Initializes the state of a new run, sharded on the mesh.

        Raises:
          UserError: the parameters of `config.init_from` are damaged or missing.
        """
        new_state = partial(self.init_state, shardings=self.shardings)
        if not (directory := self.config.init_from):
            return new_state(), RunProgress()
        stored, like = open_parameters(Path(directory)), self._like.params
        step, params = stored.read_chosen(
            "best", lambda step: (step, stored.params(step, like=like))
        )
        shown = directory.removeprefix(f"{Path.cwd()}/")
        self.log(f"Beginning with the parameters of step {step:,} in {shown}.")
        return new_state(params=params), RunProgress()

    def resume(self) -> tuple[TrainState, RunProgress] | None:
        """Restores the newest valid checkpoint; None if there is none.

        It may have been saved from other devices. Corrupt ones above it are renamed.

        Raises:
          DataError: there are checkpoints, and none is valid; or the text is not that
            of the run.
          UserError: a system error prevents reading them, or processes see different
            steps.
        """
        like = _items_of(self._like)
        restored = restore_latest_valid(self._checkpoints, like, log=self.log)
        if restored is None:
            return None
        step, items, meta, corrupt = restored
        configs = None
        with suppress(ConfigError, KeyError):  # The config of another version.
            configs = (parse(meta["config"]), self.config)
        check_fingerprints(meta["fingerprints"], self.fingerprints, configs=configs)
        quarantine(self._checkpoints, corrupt, self.log)
        self.log(f"Resuming from step {step:,} in {self.workdir.path}.")
        progress = RunProgress.from_dict(meta["progress"])
        # An argument, not a constant: one program serves all steps.
        place = jax.jit(lambda number: number, out_shardings=self.shardings.step)
        return _state_of(place(np.int32(step)), items), progress

    def save(
        self, state: TrainState, progress: RunProgress, *, kinds: Kinds, scores: Record
    ) -> None:
        """Starts to save a state with everything that an exact resume needs.

        A failed save is logged and training continues: the next one may succeed.
        `wait` raises the error if the last save failed. An existing checkpoint of the
        same step is replaced.

        Args:
          state: its buffers may be donated once this returns.
          scores: of this state on the development set, `bleu` and of trees `f1`.
        """
        packages = {name: metadata.version(name) for name in _PACKAGES}
        versions = {"t2t-jax": __version__, **packages}
        meta: Meta = {"step": progress.step, "kinds": list(kinds)}
        meta |= {"progress": progress.to_dict(), "config": to_dict(self.config)}
        meta |= {"fingerprints": self.fingerprints, "versions": versions, **scores}
        self._complete()
        self._failure = None
        with self._failure_logged():
            self._checkpoints.save(
                progress.step, meta=meta, files=self.files, **_items_of(state)
            )

    def check_for_errors(self) -> None:
        """Logs the failure of the current save, if it is known; never waits."""
        with self._failure_logged():
            self._checkpoints.check_for_errors()

    def wait(self) -> None:
        """Waits until the current save is complete.

        Raises:
          StorageError: the last save failed.
        """
        self._checkpoints.wait()
        if self._failure:
            raise self._failure

    def closing(self) -> AbstractContextManager[None]:
        """Completes the current save at the end, and logs its failure.

        After an exception only a single process does: other processes may have failed.
        """
        return finishing(self.processes, self._complete)

    def _complete(self) -> None:
        with self._failure_logged():
            self._checkpoints.wait()

    @contextmanager
    def _failure_logged(self) -> Iterator[None]:
        """Logs a failed save instead of raising it; `wait` raises it."""
        try:
            yield
        except StorageError as error:
            self._failure = error
            self.log(f"WARNING: {error}")


def _items_of(state: TrainState) -> dict[str, PyTree]:
    """Returns the items of a checkpoint; `params` are those that are evaluated.

    What reads a checkpoint needs no other item. Where training continues from other
    parameters, these are the item `trained`.
    """
    items = {"params": evaluation_params(state), "optimizer": state.optimizer}
    return items if state.ema is None else {**items, "trained": state.params}


def _state_of(step: jax.Array, items: Mapping[str, PyTree]) -> TrainState:
    """Returns the state that `_items_of` was given."""
    ema = items["params"] if "trained" in items else None
    params = items.get("trained", items["params"])
    return TrainState(step, params, items["optimizer"], ema)
