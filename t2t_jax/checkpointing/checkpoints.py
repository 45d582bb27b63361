"""Checkpoints of any state, for a training loop of one's own."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import SingleDeviceSharding

from t2t_jax.checkpointing.newest_valid import quarantine, restore_latest_valid
from t2t_jax.checkpointing.writer import CheckpointWriter
from t2t_jax.data.files.progress_bar import print_line
from t2t_jax.data.line_arguments import as_directory
from t2t_jax.devices.distributed.processes import current_processes, failing_together
from t2t_jax.devices.sharding.rules import path_of
from t2t_jax.errors import writing
from t2t_jax.files import locked
from t2t_jax.types import PyTree

_PROBLEM = "checkpoints cannot be saved there"
_ADVICE = "pass another directory, or wait for the program that uses it"


class RestoredState(NamedTuple):
    """What `Checkpoints.restore` returns.

    Attributes:
      meta: as it was given to `save`; tuples have become lists.
    """

    step: int
    state: PyTree
    meta: dict[str, Any]


class Checkpoints(contextlib.AbstractContextManager["Checkpoints"]):
    """Checkpoints of a state of one's own: verified, and written by background threads.

    A checkpoint has a checksum of every array, and gets its name when it is complete;
    the first one is read back before an older one is removed. Of several processes,
    which share the directory, all call each method; where one fails, all do.

    Args:
      directory: created if it does not exist; one program may have it open.
      keep: number of newest checkpoints that are kept, beside the best.
      log: gets a line for each checkpoint that is corrupt; None means stderr.

    Raises:
      OutputError: the directory cannot be written, or is in use by another program.
      ValueError: `keep` is below 1.

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
        if keep < 1:
            raise ValueError(f"keep={keep} must be at least 1. Pass keep=1, or more.")
        path = as_directory(directory, caller="Checkpoints")
        processes, self._log = current_processes(), log or print_line
        with contextlib.ExitStack() as held:
            with failing_together(processes, "open the checkpoints"):
                if processes.is_first:
                    with writing(path, problem=_PROBLEM, advice=_ADVICE):
                        path.mkdir(parents=True, exist_ok=True)
                        held.enter_context(locked(path / "lock"))
                self._writer = CheckpointWriter(path, keep=keep, processes=processes)
            self._held = held.pop_all()

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
          state: any pytree of JAX's arrays, with elements of 1, 2 or 4 bytes, and of
            PRNG keys. Of several processes, all are global. Its buffers may be donated
            once this returns.
          meta: JSON values, such as numbers, and the position of the data.
          score: of this state, higher is better: the checkpoint with the highest one is
            kept too.

        Raises:
          StorageError: the checkpoint cannot be written, or the save before failed.
          TypeError: something else than an array is in the state; or an array of this
            process alone, and there are several.
          ValueError: an array is empty or has elements of another size, or two have one
            name, or there is none; `step` is negative, or below one that is there; a
            number is not finite.
        """
        record = {"step": step, "kinds": ["periodic"], "meta": dict(meta or {})}
        if score is not None:
            record["bleu"] = float(score)
        try:
            json.dumps(record, allow_nan=False)
        except ValueError as error:
            raise ValueError(
                "meta= and score= must be JSON, which has neither NaN nor infinity: "
                f"{error}. Pass None in their place."
            ) from error
        arrays = _by_name(state, _stored)
        if step < 0 or not arrays:
            raise ValueError(
                f"step={step} must be at least 0, and the state have arrays, and it "
                f"has {len(arrays)}. Pass the number of steps so far, and its state."
            )
        if step < (newest := max(self.steps(), default=step)):
            raise ValueError(
                f"step={step} is below {newest}, which is there, and would be deleted "
                "at once. Restore that one first, or pass another directory."
            )
        self._writer.save(step, meta=record, state=arrays)

    def restore(self, like: PyTree) -> RestoredState | None:
        """Restores the newest checkpoint that is valid; None if there is none.

        Corrupt ones above it are renamed, and logged.

        Args:
          like: a tree of the state's structure and shapes, of arrays or
            `jax.ShapeDtypeStruct`, with the shardings to restore to: those of another
            mesh than that of the save, if you like.

        Raises:
          DataError: none is valid, or `like` has other arrays.
          TypeError: something else is in `like`.
          UserError: a system error prevents reading them, or processes see different
            steps.
        """
        wanted = {"state": _by_name(like, _described)}
        if (found := restore_latest_valid(self._writer, wanted, log=self._log)) is None:
            return None
        quarantine(self._writer, found.corrupt, self._log)
        state = jax.tree_util.tree_map_with_path(
            lambda path, leaf: _restored(leaf, found.items["state"][_name(path)]), like
        )
        return RestoredState(found.step, state, found.meta["meta"])

    def steps(self) -> list[int]:
        """Lists the steps that are completely written, oldest first."""
        return self._writer.steps()

    def wait(self) -> None:
        """Waits until the current save is complete.

        Raises:
          StorageError: it failed.
          OutputError: what was written cannot be read.
        """
        self._writer.wait()

    def close(self) -> None:
        """Completes the current save, and lets other programs use the directory."""
        self.__exit__(None)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._held:
            # After an exception other processes may have failed, and would be waited
            # for.
            if kind is None or self._writer.processes.count == 1:
                self._writer.wait()


def _name(path: tuple[object, ...]) -> str:
    """Names an array as Orbax does."""
    return path_of(path).replace("/", ".") or "state"


def _by_name(tree: PyTree, convert: Callable[[str, Any], Any]) -> dict[str, Any]:
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    named = {(name := _name(path)): convert(name, leaf) for path, leaf in leaves}
    if len(named) < len(leaves):
        raise ValueError(
            "Every array of a state must have a name of its own, its keys with dots "
            f"between them, and of {len(leaves)} some have the same. Use keys without "
            "dots and slashes."
        )
    return named


def _require_array(name: str, leaf: object, kinds: Any) -> None:
    if not isinstance(leaf, kinds):
        raise TypeError(
            f"{name} must be a jax.Array, and is {leaf!r:.60}, of type "
            f"{type(leaf).__name__}. Save numbers as meta=, and arrays of NumPy as "
            "jnp.asarray(…)."
        )


def _stored(name: str, leaf: Any) -> Any:
    """Returns the array of a leaf that can be saved: of PRNG keys, their data."""
    _require_array(name, leaf, jax.Array)
    if not leaf.size:
        raise ValueError(
            f"{name} must have elements to be saved, and is of shape {leaf.shape}. "
            "Leave it out."
        )
    if (count := jax.process_count()) > 1 and leaf.is_fully_addressable:
        raise TypeError(
            f"{name} must be a global array to be saved by {count} processes, and is "
            "only on devices of this one. Put it on their mesh: "
            "jax.device_put(…, NamedSharding(mesh, PartitionSpec()))."
        )
    return jax.random.key_data(leaf) if _is_key(leaf) else leaf


def _described(name: str, leaf: Any) -> jax.ShapeDtypeStruct:
    """Returns shape and sharding to which the array of a leaf is restored."""
    _require_array(name, leaf, jax.Array | jax.ShapeDtypeStruct)
    data = jax.eval_shape(jax.random.key_data, leaf) if _is_key(leaf) else leaf
    where = leaf.sharding or SingleDeviceSharding(jax.local_devices()[0])
    return jax.ShapeDtypeStruct(data.shape, data.dtype, sharding=where)


def _restored(like: Any, array: jax.Array) -> Any:
    if not _is_key(like):
        return array
    kind = jax.random.key_impl(jnp.empty((), like.dtype))
    return jax.random.wrap_key_data(array, impl=kind)


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
