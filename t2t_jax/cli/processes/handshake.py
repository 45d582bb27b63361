"""What the first process tells the others once the text is ready, or cannot be.

The others check by it that they see the same workdir, text and configuration: else they
would train on something else, or not find what is written for all.
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

# Each process may find the same text elsewhere, and encode it as its host can.
_OF_A_HOST = ("data.train", "data.dev", "data.cache_dir", "data.workers")
_NAME = "text"


class LeaderFailedError(UserError):
    """The first process has failed, and this one ends with its exit code."""

    def __init__(self, code: int):
        self.exit_code = code
        super().__init__(
            f"Process 0 ends with code {code} and says why. This one ends too."
        )


@dataclass(frozen=True, kw_only=True)
class RunHandshake:
    """The first process's news of the text.

    Attributes:
      code: the exit code it ends with; 0 where the run goes on.
      complete: whether there is nothing left to train.
      owner: what it has written into the lock of the workdir.
      fingerprints: of the text.
      config: of the run, as nested dicts.
    """

    code: int = 0
    complete: bool = False
    owner: str = ""
    fingerprints: Mapping[str, str]
    config: Mapping[str, Any]

    @classmethod
    def failure(cls, code: int) -> Self:
        """Makes the news that the run cannot go on."""
        return cls(code=code, fingerprints={}, config={})

    @classmethod
    def of_run(
        cls, config: Config, *, owner: str, fingerprints: Mapping[str, str] | None
    ) -> Self:
        """Makes the news that the text is ready; without any the run is complete."""
        return cls(
            complete=fingerprints is None,
            owner=owner,
            fingerprints=fingerprints or {},
            config=to_dict(config),
        )

    def publish(self, processes: Processes) -> None:
        """Tells the others."""
        processes.publish(_NAME, json.dumps(asdict(self)))

    @classmethod
    def receive(cls, processes: Processes) -> Self:
        """Waits for the news, as long as the first process lives.

        Raises:
          FirstFailedError: it has failed.
        """
        news = cls(**json.loads(processes.receive(_NAME)))
        if news.code:
            raise LeaderFailedError(news.code)
        return news

    def require_same_config(self, config: Config, *, index: int) -> None:
        """Checks that a process was started with the same configuration.

        Raises:
          ConfigError: it was not; all keys that differ are named.
        """
        different = [
            f"Process {index} was started with {key}={own!r}, and process 0 with "
            f"{first!r}. Give all of them the same command line."
            for key, first, own in differences(parse(self.config), config)
            if key not in _OF_A_HOST
        ]
        if different:
            raise ConfigError(different)

    def require_same_workdir(
        self, workdir: Workdir, *, index: int, seconds: float = SHARED_FS_TIMEOUT
    ) -> None:
        """Checks that a process sees the directory that the first one has locked.

        Args:
          workdir: as this process was told to use.
          seconds: how long to wait until it shows what it holds.

        Raises:
          InputMissingError: it does not.
        """
        deadline = time.monotonic() + seconds
        while workdir.owner() != self.owner:
            if time.monotonic() >= deadline:
                raise InputMissingError(
                    f"--workdir={workdir.path} must be on a file system that all "
                    f"processes share, and process {index} does not see there what "
                    "process 0 has written. Choose another --workdir."
                )
            time.sleep(0.2)

    def require_same_text(self, fingerprints: Mapping[str, str], *, index: int) -> None:
        """Checks that a process has opened the same text.

        Raises:
          DataError: it has not.
        """
        different = [
            name
            for name, first in self.fingerprints.items()
            if fingerprints.get(name) != first
        ]
        if different:
            raise DataError(
                f"Process {index} has other content than process 0 of: "
                f"{', '.join(different)}.\nGive all processes the same files."
            )
