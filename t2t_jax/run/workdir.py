"""The directory of a run, with all its inputs and outputs; needs no JAX.

``config.json overrides.json fingerprints.json vocab.model vocab.json known_words.npy
data.json data_report.txt metrics.jsonl events.out.* checkpoints/<step>/
samples/<step>.txt dev_outputs/<step>.txt report.html environment.json robustness.json
averages/ logs/rank-<k>.log profile/<first>-<last>/``. A model directory has the same
layout, with one checkpoint of parameters only, or ``model.safetensors``, and
``model.json``, which records their origin.

A first start writes `data.json`, the vocabulary, `config.json` and `fingerprints.json`,
in this order; a run exists from `config.json` on. The vocabulary and `config.json` are
created once: a later start changes only the keys of `config.json` that may change on
resume.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NoReturn

from t2t_jax.checkpointing.step_dirs import require_array_path
from t2t_jax.config import Config, defaults, parse_saved, to_dict
from t2t_jax.data.config import VocabularyConfig
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.errors import (
    ConfigError,
    DataError,
    ErrorCollector,
    InputMissingError,
    OutputError,
    UserError,
)
from t2t_jax.files import (
    atomic_write,
    locked,
    read_json_object,
    read_limited,
    write_once,
)

ROBUSTNESS = "robustness.json"
"""The last scores of `--mode=evaluate --robustness`."""

_LOCK = "lock"
_FILES = (
    *(_LOCK, "config.json", "overrides.json", "fingerprints.json", "metrics.jsonl"),
    *("vocab.model", "vocab.json", "vocab_source.model", "vocab_source.json"),
    *("data.json", "data_report.txt", "known_words.npy"),
    *("report.html", "environment.json", ROBUSTNESS),
)
_FOLDERS = ("checkpoints", "samples", "dev_outputs", "logs")
_MAX_LISTED = 5
_RUN_PATTERNS = (
    *("checkpoints/*", "fingerprints.json", "metrics.jsonl", "events.out.*"),
    *("samples/*", "averages/*", "profile/*", "model.json", "model.safetensors"),
)
_MOVE = "Move it away, or choose another workdir."


def require_outside_runs(path: str | Path, *, flag: str) -> None:
    """Checks that an output path is not a file of a run or model.

    Raises:
      OutputError: the path is such a file, or lies in a folder of a run.
    """
    resolved = Path(os.path.realpath(path))
    for directory in resolved.parents:
        workdir = Workdir(directory)
        own = (*_FILES, *_FOLDERS, "profile", "model.json", "model.safetensors")
        first = resolved.relative_to(directory).parts[0]
        if (first in own or first.startswith("events.out.")) and workdir.is_used:
            raise OutputError(
                f"Cannot write --{flag}={path}: it is a file of the run or model in "
                f"{directory}. Choose another name."
            )


@dataclass(frozen=True)
class Workdir:
    """The paths, the lock and the small files of a run."""

    path: Path

    @property
    def checkpoints(self) -> Path:
        """The directory with one folder per saved step."""
        return self.path / "checkpoints"

    @property
    def lock_path(self) -> Path:
        """The file that the process of the run has locked, with its owner."""
        return self.path / _LOCK

    @property
    def has_config(self) -> bool:
        """Whether a run exists here, readable or not."""
        return self._has("config.json")

    @property
    def is_used(self) -> bool:
        """Whether there are files of a run or a model."""
        return self.has_config or bool(self._run_files()) or self._has("vocab.model")

    def _has(self, name: str) -> bool:
        return os.path.lexists(self.path / name)

    @property
    def is_model(self) -> bool:
        """Whether this is an exported or averaged model, not a training run."""
        return self._has("model.json")

    def require_run(self) -> None:
        """Raises a UserError if this is an exported or averaged model."""
        if self.is_model:
            raise UserError(
                f"{self.path} is a model and not a training run: it has no optimizer "
                "state, batches or checkpoints. Pass the run that it was made from."
            )

    @property
    def advice(self) -> str:
        """What to do about a missing or damaged file."""
        advice, mode = "Restore it from a copy", "python -m t2t_jax.main --mode=recover"
        if next(self._glob("checkpoints/*"), ""):
            advice = f"Run {mode}, which restores it from a checkpoint"
        return f"{advice}, or pass another workdir."

    def require_valid_path(self) -> None:
        """Raises an InputMissingError if the system rejects the path."""
        try:
            with suppress(FileNotFoundError, NotADirectoryError):
                self.path.stat()  # The mode creates what is missing, or reports it.
        except OSError as error:
            reason = f"{error.strerror}. Choose another workdir."
            raise InputMissingError(f"{self.path} cannot be read: {reason}") from error

    @property
    def has_other_files(self) -> bool:
        """Whether there are visible files that no start of a run has written."""
        with suppress(OSError):
            names = {name for name in os.listdir(self.path) if not name.startswith(".")}
            return not names <= {*_FILES, *_FOLDERS}
        return False

    def _run_files(self) -> list[str]:
        """Lists the names here that only a run or a model creates."""
        matches = (next(self._glob(pattern), "") for pattern in _RUN_PATTERNS)
        # A link to a disk that is not mounted.
        broken = self.checkpoints.is_symlink() and not self.checkpoints.exists()
        return ["checkpoints"] * broken + list(filter(None, matches))

    def _glob(self, pattern: str) -> Iterator[str]:
        """Yields visible matches, `checkpoints` for `checkpoints/*`."""
        for path in self.path.glob(pattern):
            if not path.name.startswith("."):
                yield path.relative_to(self.path).parts[0]

    def require_complete(self) -> None:
        """Raises a DataError if there are files of a run, but no config.json."""
        if names := [] if self.has_config else self._run_files():
            raise DataError(
                f"{self.path} has no config.json, but files of a run: "
                f"{', '.join(names)}. Nothing was changed.\n{self.advice}"
            )

    def require(self) -> None:
        """Checks that a run or a model exists here.

        Raises:
          DataError: its configuration is missing.
          InputMissingError: there is none, or its path cannot be used in this locale.
        """
        self.require_valid_path()
        self._require_utf8(InputMissingError)
        self.require_complete()
        if not self.has_config:
            self.refuse("a run or a model", "Train first, or pass another directory.")

    def refuse(self, what: str, advice: str) -> NoReturn:
        """Raises an InputMissingError: this is not what it must be, with the reason."""
        reason = "no such directory"
        if self.path.exists():
            reason = "it is a file and not a directory"
        if self.path.is_dir():
            reason = "config.json is missing"
        near = suggest_runs(self.path)
        raise InputMissingError(f"{self.path} is not {what}: {reason}.{near} {advice}")

    def _require_utf8(self, error: type[UserError]) -> None:
        """Checks that the path is valid Unicode, as Orbax requires."""
        try:
            os.path.abspath(self.path).encode()
        except UnicodeEncodeError as cause:
            raise error(
                f"{self.path} has a name that is not UTF-8, in this locale "
                "at least, and its checkpoints cannot be saved or loaded. Set "
                "PYTHONUTF8=1, or choose another workdir."
            ) from cause

    def create(self) -> None:
        """Creates the directory, and checks that a run can write its files there.

        Raises:
          DataError: a path of the run is of another kind: a link, file or directory.
          OutputError: the directory, or one in it, is not writable, or arrays that
            are saved there could not be read again.
        """
        self._require_utf8(OutputError)
        require_array_path(self.path)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            files = [p for p in (self.path, *self.path.parents) if p.is_file()]
            reason = f"{files[0]} is a file" if files else error.strerror
            reason = f"{reason}. Choose another workdir."
            raise OutputError(f"Cannot create {self.path}: {reason}") from error
        problems, denied = ErrorCollector(), ErrorCollector()
        for path in (self.path, *map(self.path.joinpath, _FOLDERS)):
            is_free = not os.path.lexists(path) or path.is_dir()
            problems.check(is_free, f"{path} must be a directory, and is not. {_MOVE}")
            is_usable = not path.is_dir() or os.access(path, os.W_OK | os.X_OK)
            advice = "Fix permissions, or choose another workdir."
            denied.check(is_usable, f"{path} must be writable. {advice}")
        for path in filter(os.path.lexists, map(self.path.joinpath, _FILES)):
            # The target of a link does not belong to the run.
            is_own = path.is_file() and not path.is_symlink()
            problems.check(is_own, f"{path} must be a file, and not a link. {_MOVE}")
        problems.raise_if_any(DataError)
        denied.raise_if_any(OutputError)

    @contextmanager
    def create_locked(self) -> Iterator[str]:
        """Creates the directory and locks it, for a start that may still be refused.

        After an exception the lock and the directories created here are removed again
        if nothing else was written.

        Yields as `locked`.

        Raises:
          DataError: as `create`.
          OutputError: as `create` and `locked`.
        """
        paths, had_lock = [self.path, *self.path.parents], self._has(_LOCK)
        created = [path for path in paths if not os.path.lexists(path)]
        self.create()
        with self.locked() as owner:
            try:
                yield owner
            except BaseException:
                with suppress(OSError):
                    if not had_lock and os.listdir(self.path) == [_LOCK]:
                        (self.path / _LOCK).unlink()  # See `files.locked`.
                        for path in created:
                            path.rmdir()
                raise

    @contextmanager
    def locked(self) -> Iterator[str]:
        """Locks the directory; the system releases the lock when the process ends.

        Yields:
          The content of the lock file: process, host and time.

        Raises:
          OutputError: another process holds the lock, or locks are not supported.
        """
        with ExitStack() as held:
            try:
                # Reading a status takes a shared lock for a moment.
                lock = held.enter_context(locked(self.lock_path, wait=0.2))
            except BlockingIOError as error:
                other = self.owner() or "another process"
                raise OutputError(
                    f"{self.path} is being trained in, or its text prepared, by "
                    f"{other}. Wait, or pass another workdir."
                ) from error
            except OSError as error:
                raise OutputError(
                    f"{self.path} must support file locks, and {self.lock_path} "
                    f"cannot be locked: {error.strerror}. Choose another workdir."
                ) from error
            here = f"process {os.getpid()} on {socket.gethostname()}"
            owner = f"{here} since {datetime.now()}"
            os.truncate(lock, 0)
            os.write(lock, owner.encode())
            os.fsync(lock)
            yield owner

    def owner(self) -> str:
        """Returns the content of the lock file; "" if there is none."""
        with suppress(OSError, UserError):
            return read_limited(self.lock_path, max_bytes=1 << 10, advice="").decode()
        return ""

    def log_path(self, index: int) -> Path:
        """Returns the path of a process's log file; creates its folder."""
        folder = self.path / "logs"
        folder.mkdir(exist_ok=True)
        return folder / f"rank-{index}.log"

    def read_fingerprints(self) -> dict[str, str]:
        """Reads the hashes of the run's text; empty if the file is missing.

        Raises:
          DataError: the file is damaged.
        """
        hashes = self._read("fingerprints.json", advice=self.advice)
        return {name: str(value) for name, value in (hashes or {}).items()}

    def read_config(self) -> Config:
        """Reads the resolved configuration of the run.

        Raises:
          InputMissingError: there is no run.
          DataError: config.json is missing or damaged.
        """
        self.require()
        if (self.path / "model.bin").is_file():
            raise DataError(
                f"{self.path} is a CTranslate2 model. Pass the run that it was made "
                "from; the mode compare takes exports with a source and its reference."
            )
        try:
            saved = self._read("config.json", advice=self.advice) or {}
            return parse_saved(saved, overrides=self.read_overrides)
        except ConfigError as error:
            path, problem = self.path / "config.json", error.problems[0]
            raise DataError(f"{path} is damaged: {problem}\n{self.advice}") from error

    def read_overrides(self) -> dict[str, Any]:
        """Reads the keys set on command lines so far.

        Raises:
          DataError: the file is damaged.
        """
        saved = self._read("overrides.json", advice="Remove it.") or {}
        return {key: value for key, value in saved.items() if key in defaults()}

    def read_vocabularies(self, config: VocabularyConfig) -> VocabularyPair:
        """Reads the vocabularies of the run or model.

        Raises:
          DataError: they are damaged, or not those that the model was trained with.
          InputMissingError: there are none.
        """
        loaded = VocabularyPair.load(self.path, config=config)
        self.check_vocabularies(loaded, self.read_fingerprints())
        return loaded

    def check_vocabularies(
        self, vocabularies: VocabularyPair, fingerprints: Mapping[str, str]
    ) -> None:
        """Checks that vocabularies are those that a model was trained with.

        Raises:
          DataError: they are not, so that their ids would stand for other words.
        """
        own = vocabularies.fingerprint
        if (was := fingerprints.get("vocabulary", own)) != own:
            raise DataError(
                f"{self.path} has another vocabulary than its model was trained with: "
                f"its SHA-256 begins with {own[:12]}, and must begin with {was[:12]}. "
                "Restore the run's own vocab.model."
            )

    def _read(self, name: str, *, advice: str) -> dict[str, Any] | None:
        """Reads a JSON file; None if it does not exist."""
        path = self.path / name
        try:
            return read_json_object(path, advice=advice)
        except FileNotFoundError as error:
            if not path.is_symlink():
                return None
            raise DataError(f"{path} is a broken link. {advice}") from error
        except OSError as error:
            reason = f"{error.strerror}. Fix permissions."
            raise InputMissingError(f"{path} cannot be read: {reason}") from error

    def write_config(
        self, config: Config, overrides: dict[str, Any] | None = None
    ) -> None:
        """Writes the configuration and the keys set on the command line.

        The caller has checked what may change under an existing run.
        """
        self.write_json("overrides.json", overrides or {})
        if self.has_config:
            self.write_json("config.json", to_dict(config))
        else:
            path, advice = self.path / "config.json", "Rerun the command."
            write_once(path, _json_text(to_dict(config)), advice=advice)

    def write_json(self, name: str, values: Any) -> None:
        """Writes a JSON file atomically."""
        atomic_write(self.path / name, _json_text(values))

    def write_samples(self, step: int, text: str) -> None:
        """Writes the sample translations of an evaluation atomically."""
        folder = self.path / "samples"
        folder.mkdir(exist_ok=True)
        atomic_write(folder / f"{step}.txt", text)


def runs_near(path: Path) -> list[Path]:
    """Lists the runs and models in a directory, next to it and under `runs`.

    Those of each of these folders, newest first.
    """
    runs: dict[Path, None] = {}
    for folder in (path, path.parent, path.parent / "runs", Path("runs")):
        configs = filter(Path.is_file, folder.glob("*/config.json"))
        newest = sorted(configs, key=os.path.getmtime, reverse=True)
        workdirs = (Workdir(one.parent) for one in newest)
        # Exports for other toolkits have a config.json, too.
        own = (one for one in workdirs if one.is_model or one.checkpoints.exists())
        runs |= dict.fromkeys(one.path for one in own)
    return list(runs)


def suggest_runs(path: Path) -> str:
    """Suggests the run that a wrong path may mean, or lists the runs near it."""
    for folder, step in ((path, ""), (path.parent, path.name)):
        if folder.name == "checkpoints" and Workdir(folder.parent).has_config:
            which = f" with checkpoint={step}" * step.isdecimal()
            return f" Did you mean {folder.parent}{which}?"
    runs = {run.name: str(run) for run in runs_near(path)}
    if near := get_close_matches(path.name, runs, n=1):
        return f" Did you mean {runs[near[0]]}?"
    listed = [*runs.values()][:_MAX_LISTED] + ["…"] * (len(runs) > _MAX_LISTED)
    return f" Runs near it: {', '.join(listed)}." if runs else ""


def _json_text(values: Any) -> str:
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"
