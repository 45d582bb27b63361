"""The handshake of a training run: process 0 publishes it when the text is prepared.

The other processes check by it that they use the same workdir, text and configuration.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from t2t_jax.config import Config, parse
from t2t_jax.distributed.processes import Processes
from t2t_jax.errors import ConfigError, DataError, InputMissingError
from t2t_jax.files import SHARED_FS_TIMEOUT, wait_until_visible
from t2t_jax.run.resume_rules import differences
from t2t_jax.run.workdir import Workdir

# May differ between hosts: paths of the same text, and how it is encoded.
_HOST_KEYS = ("data.train", "data.dev", "data.cache_dir", "data.workers")
_NAME = "text"


@dataclass(frozen=True, kw_only=True)
class RunHandshake:
    """What process 0 publishes once the text is prepared.

    Attributes:
      owner: its entry in the lock file of the workdir.
      fingerprints: of vocabulary and text; None if the run is complete.
      config: as nested dicts.
    """

    owner: str
    fingerprints: Mapping[str, str] | None
    config: Mapping[str, Any]

    def publish(self, processes: Processes) -> None:
        """Publishes the handshake to the other processes."""
        processes.publish(_NAME, json.dumps(asdict(self)))

    @classmethod
    def receive(cls, processes: Processes) -> Self:
        """Waits for the handshake as long as process 0 is alive."""
        return cls(**json.loads(processes.receive(_NAME)))

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
        if not wait_until_visible(
            lambda: workdir.owner() == self.owner, seconds=seconds
        ):
            raise InputMissingError(
                f"--workdir={workdir.path} must be on a file system that all processes "
                f"share: process {index} does not see the files of process 0. Choose "
                "another --workdir."
            )

    def require_same_text(self, fingerprints: Mapping[str, str], *, index: int) -> None:
        """Checks that process `index` has opened the same text.

        Raises:
          DataError: fingerprints differ.
        """
        different = [
            name
            for name, first in (self.fingerprints or {}).items()
            if fingerprints.get(name) != first
        ]
        if different:
            raise DataError(
                f"Process {index} has other content than process 0 in: "
                f"{', '.join(different)}.\nPass the same files to all processes."
            )
