"""Saves and restores runs; the only file that knows Orbax.

A checkpoint `checkpoints/<step>/` holds three items: `params`, `optimizer` (absent in
a model directory) and `meta`, a JSON object. Any pytree goes in; out comes what fits
the abstract tree that the caller gives, on the shardings that it names.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orbax.checkpoint as ocp
from orbax.checkpoint import checkpoint_managers as policies

from t2t_jax.errors import DataError
from t2t_jax.types import Params, PyTree

Meta = dict[str, Any]

_NO_BLEU = -1.0


class _Retention(policies.PreservationPolicy):  # type: ignore[misc]
    """Keeps the newest checkpoint, the newest `keep` periodic ones, and the best.

    Orbax's own LatestN would count a best or stopped checkpoint as one of the n, and
    so drop a periodic one that an average needs.
    """

    def __init__(self, keep: int):
        self._keep = keep

    def should_preserve(
        self, checkpoints: Sequence[Any], *, context: Any
    ) -> Sequence[bool]:
        periodic = [c.step for c in checkpoints if (c.metrics or {}).get("periodic")]
        scored = [
            (c.metrics["bleu"], c.step)
            for c in checkpoints
            if (c.metrics or {}).get("bleu", _NO_BLEU) > _NO_BLEU
        ]
        kept = set(periodic[-self._keep :])
        kept.update(c.step for c in checkpoints[-1:])
        kept.update(step for _, step in sorted(scored)[-1:])
        return [c.step in kept for c in checkpoints]


class Checkpoints:
    """The checkpoints of one directory.

    Args:
      directory: holds one folder a step; made at the first save.
      keep: periodic checkpoints kept; None opens the directory for reading only.
      alone: whether only the first of several processes opens it, to look at it; all
        of them have to, and at each call they wait for one another, where it is False.
    """

    def __init__(
        self, directory: Path, *, keep: int | None = None, alone: bool = False
    ):
        self.directory = directory.absolute()
        writing = keep is not None
        self._manager = ocp.CheckpointManager(
            self.directory,
            options=ocp.CheckpointManagerOptions(
                preservation_policy=_Retention(keep or 1),
                # Without best_fn Orbax writes no metrics, which the policy reads.
                best_fn=lambda metrics: metrics["bleu"],
                create=writing,
                read_only=not writing,
                # What a killed save leaves would hold its space for ever.
                cleanup_tmp_directories=writing,
                multiprocessing_options=ocp.options.MultiprocessingOptions(
                    active_processes={0} if alone else None,
                    barrier_sync_key_prefix="alone" if alone else None,
                ),
            ),
        )

    def save(
        self, step: int, *, params: Params, optimizer: PyTree | None, meta: Meta
    ) -> None:
        """Begins to write a checkpoint and returns once the arrays are copied.

        Args:
          step: its number; a step that is already there is left as it is.
          params: nested dict of arrays.
          optimizer: any pytree of arrays; None for a model to be used, not trained.
          meta: JSON values. `kinds` (list of str) and `bleu` (float, if known) decide
            what is kept.
        """
        items = {
            "params": ocp.args.StandardSave(params),
            "meta": ocp.args.JsonSave(meta),
        }
        if optimizer is not None:
            items["optimizer"] = ocp.args.StandardSave(optimizer)
        metrics = {
            "periodic": float("periodic" in meta["kinds"]),
            "bleu": float(meta.get("bleu", _NO_BLEU)),
        }
        self._manager.save(step, args=ocp.args.Composite(**items), metrics=metrics)

    def steps(self) -> list[int]:
        """Lists the steps that are completely written, oldest first."""
        self._manager.reload()
        return sorted(self._manager.all_steps())

    def meta(self, step: int) -> Meta:
        """Reads the JSON part of a checkpoint."""
        args = ocp.args.Composite(meta=ocp.args.JsonRestore())
        meta: Meta = self._restore(step, args)["meta"]
        return meta

    def params(self, step: int, *, like: PyTree) -> Params:
        """Reads the parameters of a checkpoint.

        Args:
          step: one of `steps()`.
          like: tree of `jax.ShapeDtypeStruct` with shardings.
        """
        args = ocp.args.Composite(params=ocp.args.StandardRestore(like))
        return self._restore(step, args)["params"]

    def training(self, step: int, *, params: PyTree, optimizer: PyTree) -> PyTree:
        """Reads (params, optimizer) of a checkpoint, shaped and placed like those."""
        args = ocp.args.Composite(
            params=ocp.args.StandardRestore(params),
            optimizer=ocp.args.StandardRestore(optimizer),
        )
        restored = self._restore(step, args)
        return restored["params"], restored["optimizer"]

    def choose(self, which: str | int) -> int:
        """Finds the checkpoint that a user named.

        Args:
          which: `best` (highest development BLEU; the last if none was scored),
            `last`, or a step.

        Raises:
          DataError: there is no checkpoint, or not that one.
        """
        steps = self.steps()
        if not steps:
            raise DataError(
                f"{self.directory} holds no checkpoint. Train first, or name another "
                "--workdir."
            )
        if which == "last":
            return steps[-1]
        if which == "best":
            scores = {step: self.meta(step).get("bleu", _NO_BLEU) for step in steps}
            return max(steps, key=lambda step: (scores[step], step))
        if str(which).isdecimal() and int(which) in steps:
            return int(which)
        raise DataError(
            f"--checkpoint={which} must be best, last, or one of the steps in "
            f"{self.directory}: {', '.join(map(str, steps))}."
        )

    def wait(self) -> None:
        """Returns when everything begun is written."""
        self._manager.wait_until_finished()

    def close(self) -> None:
        """Waits for what is being written, and frees the directory."""
        self._manager.close()

    def _restore(self, step: int, args: Any) -> Any:
        try:
            return self._manager.restore(step, args=args)
        except (ValueError, KeyError, OSError, TypeError) as error:
            first_line = str(error).strip().splitlines()[0] if str(error) else ""
            raise DataError(
                f"Checkpoint {self.directory / str(step)} cannot be read: "
                f"{type(error).__name__}: {first_line[:200]}\nIt is damaged, or was "
                "written for another model. To translate, name another step with "
                "--checkpoint; to train on from the one before, move this one away."
            ) from error
