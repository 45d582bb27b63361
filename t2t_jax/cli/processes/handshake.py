"""The handshake of a training run: process 0 publishes it when the text is prepared.

The other processes check by it that they use the same workdir, text and configuration.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from t2t_jax.config import Config, parse, to_dict
from t2t_jax.distributed.processes import Processes
from t2t_jax.errors import ConfigError, DataError, InputMissingError, UserError
from t2t_jax.files import SHARED_FS_TIMEOUT
from t2t_jax.run.resume_rules import differences
from t2t_jax.run.workdir import Workdir

# May differ between hosts: paths of the same text, and how it is encoded.
_HOST_KEYS = ("data.train", "data.dev", "data.cache_dir", "data.workers")
_NAME = "text"


class LeaderFailedError(UserError):
    """Process 0 has failed; this process ends with the same exit code."""

    def __init__(self, code: int):
        self.exit_code = code
        super().__init__(f"Process 0 failed with code {code}. See its log.")


@dataclass(frozen=True, kw_only=True)
class RunHandshake:
    """What process 0 publishes once the text is prepared, or cannot be.

    Attributes:
      code: its exit code; 0 if the run continues.
      complete: whether the run has no steps left.
      owner: its entry in the lock file of the workdir.
      fingerprints: of vocabulary and text.
      config: as nested dicts.
    """

    code: int = 0
    complete: bool = False
    owner: str = ""
    fingerprints: Mapping[str, str]
    config: Mapping[str, Any]

    @classmethod
    def failure(cls, code: int) -> Self:
        """Makes the handshake of a failed start."""
        return cls(code=code, fingerprints={}, config={})

    @classmethod
    def of_run(
        cls, config: Config, *, owner: str, fingerprints: Mapping[str, str] | None
    ) -> Self:
        """Makes the handshake of a run; `fingerprints` is None if it is complete."""
        return cls(
            complete=fingerprints is None,
            owner=owner,
            fingerprints=fingerprints or {},
            config=to_dict(config),
        )

    def publish(self, processes: Processes) -> None:
        """Publishes the handshake to the other processes."""
        processes.publish(_NAME, json.dumps(asdict(self)))

    @classmethod
    def receive(cls, processes: Processes) -> Self:
        """Waits for the handshake as long as process 0 is alive.

        Raises:
          LeaderFailedError: process 0 has failed.
        """
        handshake = cls(**json.loads(processes.receive(_NAME)))
        if handshake.code:
            raise LeaderFailedError(handshake.code)
        return handshake

    def require_same_config(self, config: Config, *, index: int) -> None:
        """Checks that process `index` has the same configuration.

        Raises:
          ConfigError: it differs; one message for each key.
        """
        different = [
            f"Process {index} was started with {key}={own!r}, and process 0 with "
            f"{first!r}. Use the same command line for all processes."
            for key, first, own in differences(parse(self.config), config)
            if key not in _HOST_KEYS
        ]
        if different:
            raise ConfigError(different)

    def require_same_workdir(
        self, workdir: Workdir, *, index: int, seconds: float = SHARED_FS_TIMEOUT
    ) -> None:
        """Checks that process `index` sees the directory that process 0 has locked.

        Args:
          workdir: of this process.
          seconds: timeout, since network file systems show changes late.

        Raises:
          InputMissingError: the lock of process 0 does not appear.
        """
        deadline = time.monotonic() + seconds
        while workdir.owner() != self.owner:
            if time.monotonic() >= deadline:
                raise InputMissingError(
                    f"--workdir={workdir.path} must be on a file system that all "
                    f"processes share: process {index} does not see the files of "
                    "process 0. Choose another --workdir."
                )
            time.sleep(0.2)

    def require_same_text(self, fingerprints: Mapping[str, str], *, index: int) -> None:
        """Checks that process `index` has opened the same text.

        Raises:
          DataError: fingerprints differ.
        """
        different = [
            name
            for name, first in self.fingerprints.items()
            if fingerprints.get(name) != first
        ]
        if different:
            raise DataError(
                f"Process {index} has other content than process 0 in: "
                f"{', '.join(different)}.\nPass the same files to all processes."
            )
