"""The checkpoints of a run: saved, listed, chosen, verified, restored.

A checkpoint `checkpoints/<step>/` holds these items: `params`, `optimizer` (absent in
a model directory), `meta`, a JSON object, and `files`, small files such as the
vocabulary, without which the arrays are of no use. Any pytree goes in; out comes what
fits the abstract tree that the caller gives, on the shardings that it names, and only
if it is bit for bit what was saved: `meta` holds a checksum of each array and itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from t2t_jax.checkpointing.checksums import CHECKSUM_KEYS, packed
from t2t_jax.checkpointing.reader import CheckpointReader
from t2t_jax.checkpointing.step_dirs import Meta, StepDirs
from t2t_jax.checkpointing.writer import CheckpointWriter, bleu
from t2t_jax.errors import DataError
from t2t_jax.types import Params, PyTree


class Checkpoints:
    """The checkpoints of one directory.

    All processes of a run save together. Reading, each is for itself: none waits for
    another one, which may have failed.

    Args:
      directory: holds one folder a step; made at the first save.
      keep: periodic checkpoints kept; None opens the directory for reading only.
    """

    def __init__(self, directory: Path, *, keep: int | None = None):
        self.directory = directory.absolute()
        self._folders = StepDirs(self.directory)
        self._reader = CheckpointReader(self._folders)
        self._saving: CheckpointWriter | None = None
        if keep is not None:
            self._saving = CheckpointWriter(
                self._folders, reader=self._reader, keep=keep
            )

    def save(
        self,
        step: int,
        *,
        params: Params,
        optimizer: PyTree | None,
        meta: Meta,
        files: Mapping[str, bytes] | None = None,
        replace: bool = False,
    ) -> None:
        """Begins to write a checkpoint and returns once the arrays are copied.

        Args:
          optimizer: any pytree of arrays; None for a model to be used, not trained.
          meta: JSON values. `kinds` (list of str) and `bleu` (float, if known) decide
            what is kept.
          files: small files to be kept with it, by name.
          replace: whether it takes the place of a checkpoint of that step, which is
            left as it is otherwise; the old one is there until the new one is.

        Raises:
          StorageError: it cannot be written, or the one begun before could not.
          ValueError: the directory was opened for reading.
        """
        if self._saving is None:
            raise ValueError(
                f"{self.directory} must be opened with keep=… to save in it, and was "
                "opened without. Say how many periodic checkpoints to keep."
            )
        if not replace and step in self.steps():
            return
        trees = {"params": params}
        if optimizer is not None:
            trees["optimizer"] = optimizer
        kept = packed(files or {})
        if kept:
            meta = {**meta, "files": {name: sha for name, (sha, _) in kept.items()}}
        contents = {name: content for name, (_, content) in kept.items()}
        self._saving.begin(step, trees, meta, files=contents, replace=replace)

    def steps(self) -> list[int]:
        """Lists the steps that are completely written, oldest first."""
        return self._folders.steps()

    def stray_dirs(self) -> list[str]:
        """Lists what is called like a checkpoint and is none, or was set aside."""
        return self._folders.stray_dirs()

    def quarantine(self, step: int) -> Path:
        """Sets a damaged checkpoint aside, as `StepDirs.quarantine` does."""
        return self._folders.quarantine(step)

    def meta(self, step: int) -> Meta:
        """Reads the JSON part of a checkpoint.

        Raises:
          DamagedError: it is not what was saved.
        """
        return _without_seal(self._reader.read_verified_meta(step))

    def files(self, step: int) -> dict[str, bytes]:
        """Reads the small files that were kept with a checkpoint.

        Returns:
          Contents by name; none where an older version has saved it.

        Raises:
          DamagedError: they are not what was saved.
        """
        return self._reader.files(step)

    def require_model(self, step: int, *, like: PyTree) -> None:
        """Checks that a checkpoint holds the parameters of a model, by their shapes.

        Args:
          step: one of `steps()`.
          like: tree of `jax.ShapeDtypeStruct`.

        Raises:
          DamagedError: its meta is not what was saved.
          DataError: it holds other arrays.
        """
        self._reader.require_model(step, {"params": like})

    def params(self, step: int, *, like: PyTree) -> Params:
        """Reads the parameters of a checkpoint.

        Args:
          step: one of `steps()`.
          like: tree of `jax.ShapeDtypeStruct` with shardings.

        Raises:
          DamagedError: they are not what was saved.
          DataError: they are of another model, or of another version's format.
        """
        _, restored = self._reader.arrays(step, {"params": like})
        return restored["params"]

    def restore_training(
        self,
        step: int,
        *,
        params: PyTree,
        optimizer: PyTree,
        all_could: Callable[[bool], bool] = bool,
    ) -> tuple[PyTree, PyTree, Meta]:
        """Reads params, optimizer and JSON; the arrays placed like those given.

        Args:
          step: one of `steps()`.
          params: tree of `jax.ShapeDtypeStruct` with shardings.
          all_could: told whether this process could read its part, it tells whether
            all could; asked again when each has verified what it holds. What several
            processes hold they can only verify together.

        Raises:
          DamagedError: they are not what was saved.
          DataError: they are of another model, or of another version's format.
        """
        like = {"params": params, "optimizer": optimizer}
        sealed, restored = self._reader.arrays(step, like, all_could=all_could)
        return restored["params"], restored["optimizer"], _without_seal(sealed)

    def verify(self, step: int) -> None:
        """Reads all arrays of a checkpoint, of whatever model, on the host.

        Raises:
          DamagedError: they are not what was saved.
        """
        self._reader.verify(step)

    def resolve_step(self, which: str | int) -> int:
        """Finds the checkpoint that a user named.

        Args:
          which: `best` (highest development BLEU; the last if none was scored),
            `last`, or a step.

        Raises:
          DataError: there is no checkpoint, or not that one, or it is damaged so that
            nobody can tell which one is the best.
        """
        steps = self.steps()
        if not steps:
            raise DataError(
                f"{self.directory} holds no checkpoint. Train first, or pass another "
                "directory."
            )
        if which == "last":
            return steps[-1]
        if which == "best":
            scores = {step: bleu(self.meta(step)) for step in steps}
            return max(steps, key=lambda step: (scores[step], step))
        if str(which).isdecimal() and int(which) in steps:
            return int(which)
        raise DataError(
            f"checkpoint={which} must be best, last, or one of the steps in "
            f"{self.directory}: {', '.join(map(str, steps))}."
        )

    def check(self) -> None:
        """Says of a save that it has failed, if that is known; never waits.

        Raises:
          StorageError: it has.
        """
        if self._saving is not None:
            self._saving.check()

    def wait(self) -> None:
        """Returns when everything begun is written.

        Raises:
          StorageError: it could not be.
        """
        if self._saving is not None:
            self._saving.wait()

    def check_writable(self, step: int) -> None:
        """Checks, before a step is saved, that something can be written here at all.

        Raises:
          StorageError: nothing can.
        """
        if self._saving is not None:
            self._saving.check_writable(step)


def _without_seal(sealed: Meta) -> Meta:
    return {name: value for name, value in sealed.items() if name not in CHECKSUM_KEYS}
