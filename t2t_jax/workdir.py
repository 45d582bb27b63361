"""The directory of a run: everything it needs and everything it makes.

``config.json overrides.json fingerprints.json vocab.model vocab.json data.json
data_report.txt metrics.jsonl events.out.* checkpoints/<step>/ samples/<step>.txt
averages/ logs/rank-<k>.log``. A model directory has the same layout, with one
checkpoint that holds parameters only, and ``model.json``, which says where they come
from. No JAX is needed.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from t2t_jax.config import Config, keys, parse, to_dict
from t2t_jax.errors import ConfigError, DataError, InputMissingError, OutputError
from t2t_jax.files import write_whole

_LOCK = "lock"


@dataclass(frozen=True)
class Workdir:
    """Names the files of a run.

    Args:
      path: the directory; it need not exist yet.
    """

    path: Path

    @property
    def checkpoints(self) -> Path:
        """Holds one folder for each saved step."""
        return self.path / "checkpoints"

    @property
    def has_config(self) -> bool:
        """Whether a run has begun here."""
        return (self.path / "config.json").is_file()

    @property
    def is_model(self) -> bool:
        """Whether this is a model to be used, and not a run to go on with."""
        return (self.path / "model.json").is_file()

    def require(self) -> None:
        """Checks that a run or a model is here.

        Raises:
          InputMissingError: there is none.
        """
        if not self.has_config:
            raise InputMissingError(
                f"--workdir={self.path} is no run and no model: it has no "
                "config.json. Train first, or name another --workdir."
            )

    def create(self) -> None:
        """Makes the directory.

        Raises:
          OutputError: something is in the way, or may not be written.
        """
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(
                f"--workdir={self.path} must be a directory that can be written: "
                f"{error.strerror}. Name another --workdir."
            ) from error
        if not os.access(self.path, os.W_OK):
            raise OutputError(
                f"--workdir={self.path} must be writable, and is not. "
                "Change its permissions or name another --workdir."
            )

    @contextmanager
    def locked(self) -> Iterator[str]:
        """Keeps other trainers out; the lock goes with the process, however it ends.

        Yields:
          What is written into the lock: who holds it, and since when.

        Raises:
          OutputError: another process holds it.
        """
        owner = f"process {os.getpid()} on {socket.gethostname()}, {time.time()}"
        with (self.path / _LOCK).open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise OutputError(
                    f"--workdir={self.path} is being trained in, or its text prepared, "
                    "by another process. Wait for it, or name another --workdir."
                ) from error
            lock.truncate(0)
            lock.write(owner)
            lock.flush()
            os.fsync(lock.fileno())
            yield owner

    def owner(self) -> str:
        """Reads who holds the lock, or has held it last; "" if nobody ever has."""
        try:
            return (self.path / _LOCK).read_text(encoding="utf-8")
        except OSError:
            return ""

    def log_of(self, index: int) -> Path:
        """Names the file where a process tells people of its work; makes its folder."""
        folder = self.path / "logs"
        folder.mkdir(exist_ok=True)
        return folder / f"rank-{index}.log"

    def read_fingerprints(self) -> dict[str, str]:
        """Reads what the run's text was when it began; nothing of an older run."""
        path = self.path / "fingerprints.json"
        try:
            told: dict[str, str] = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise DataError(f"{path} is damaged: {error}\nRemove it.") from error
        return told

    def read_config(self) -> Config:
        """Reads the resolved configuration of the run.

        Raises:
          InputMissingError: there is none.
          DataError: it is damaged.
        """
        self.require()
        path = self.path / "config.json"
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            return parse(values)
        except (ValueError, AttributeError) as error:
            if isinstance(error, ConfigError):
                error = DataError(error.problems[0])
            raise DataError(
                f"{path} is damaged: {error}\nRestore it from a copy of the run."
            ) from error

    def read_overrides(self) -> dict[str, Any]:
        """Reads the command line's changes to the configuration so far."""
        path = self.path / "overrides.json"
        try:
            overrides = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise DataError(f"{path} is damaged: {error}\nRemove it.") from error
        known = set(keys())
        return {key: value for key, value in overrides.items() if key in known}

    def write_config(
        self, config: Config, overrides: dict[str, Any] | None = None
    ) -> None:
        """Writes the resolved configuration, and what the command line gave to it."""
        self.write_json("overrides.json", overrides or {})
        self.write_json("config.json", to_dict(config))

    def write_json(self, name: str, values: Any) -> None:
        """Writes a JSON file beside its place and renames it there."""
        text = json.dumps(values, indent=2, ensure_ascii=False)
        write_whole(self.path / name, text + "\n")

    def write_samples(self, step: int, text: str) -> None:
        """Writes the sample translations of an evaluation."""
        folder = self.path / "samples"
        folder.mkdir(exist_ok=True)
        write_whole(folder / f"{step}.txt", text)
