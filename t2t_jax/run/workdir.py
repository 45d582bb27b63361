"""The directory of a run: everything it needs and everything it makes.

``config.json overrides.json fingerprints.json vocab.model vocab.json known_words.npy
data.json data_report.txt metrics.jsonl events.out.* checkpoints/<step>/
samples/<step>.txt averages/ logs/rank-<k>.log profile/<first>-<last>/``. A model
directory has the same layout, with one checkpoint of parameters only, or
``model.safetensors``, and ``model.json``, which says where they come from. No JAX is
needed.

A first start writes `data.json`, the vocabulary, `config.json` and `fingerprints.json`,
in this order, and a run exists from `config.json` on. The vocabulary and `config.json`
are created once: no start replaces them, but for those keys of `config.json` that may
change under a run.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TextIO

from t2t_jax.config import Config, keys, parse, to_dict
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
from t2t_jax.files import atomic_write, read_json_object, read_limited, write_once

_LOCK = "lock"
_FILES = (
    *(_LOCK, "config.json", "overrides.json", "fingerprints.json", "metrics.jsonl"),
    *("vocab.model", "vocab.json", "vocab_source.model", "vocab_source.json"),
    *("data.json", "data_report.txt", "known_words.npy"),
)
_FOLDERS = ("checkpoints", "samples", "logs")
_MOST_LISTED = 5
_OF_A_RUN = (
    *("checkpoints/*", "fingerprints.json", "metrics.jsonl", "events.out.*"),
    *("samples/*", "averages/*", "profile/*", "model.json", "model.safetensors"),
)
_RECOVER = (
    "Run python -m t2t_jax.main --mode=recover, which restores it from a checkpoint, "
    "or pass another workdir."
)
_COPY = "Restore it from a copy, or pass another workdir."


def require_outside_runs(path: str | Path, *, flag: str) -> None:
    """Checks that an output is no file of a run or a model, and in no folder of one.

    Args:
      path: Where something is to be written.
      flag: The flag that has named it.

    Raises:
      OutputError: it is one.
    """
    place = Path(os.path.realpath(path))
    for directory in place.parents:
        workdir = Workdir(directory)
        own = (*_FILES, *_FOLDERS, "profile", "model.json", "model.safetensors")
        first = place.relative_to(directory).parts[0]
        if (first in own or first.startswith("events.out.")) and workdir.is_used:
            raise OutputError(
                f"Cannot write --{flag}={path}: it is a file of the run or model in "
                f"{directory}. Choose another name."
            )


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
        """Whether a run exists here, readable or not."""
        return self._has("config.json")

    @property
    def is_used(self) -> bool:
        """Whether there is a run or a model, or what is left of one."""
        return self.has_config or bool(self.remains()) or self._has("vocab.model")

    def _has(self, name: str) -> bool:
        return os.path.lexists(self.path / name)

    @property
    def is_model(self) -> bool:
        """Whether this is a model to be used, and not a run to go on with."""
        return self._has("model.json")

    @property
    def mend(self) -> str:
        """What the user may do if a file that the run needs is missing or damaged."""
        return _RECOVER if next(self._found("checkpoints/*"), "") else _COPY

    def require_name(self) -> None:
        """Checks that the system can look for a directory of this name.

        Raises:
          InputMissingError: it cannot, as with too long a name or a loop of links.
        """
        try:
            self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            pass  # To be made, or told by the mode.
        except OSError as error:
            raise InputMissingError(
                f"{self.path} cannot be read: {error.strerror}. Choose another workdir."
            ) from error

    def remains(self) -> list[str]:
        """Lists what only a run or a model leaves here, by the names of its files."""
        found = (self._found(pattern) for pattern in _OF_A_RUN)
        names = [name for name in (next(names, "") for names in found) if name]
        # On a disk that is not mounted just now.
        gone = self.checkpoints.is_symlink() and not self.checkpoints.exists()
        return ["checkpoints", *names] if gone else names

    def _found(self, pattern: str) -> Iterator[str]:
        """Yields what matches, `checkpoints` for `checkpoints/*`; nothing hidden."""
        for path in self.path.glob(pattern):
            if not path.name.startswith("."):
                yield pattern.partition("/")[0] if "/" in pattern else path.name

    def require_whole(self) -> None:
        """Checks that what is left of a run includes its configuration.

        Raises:
          DataError: there is no config.json, although a run or a model was here.
        """
        remains = [] if self.has_config else self.remains()
        if remains:
            raise DataError(
                f"{self.path} has no config.json, and holds what a run has "
                f"left: {', '.join(remains)}. Nothing was changed.\n{self.mend}"
            )

    def require(self) -> None:
        """Checks that a run or a model is here.

        Raises:
          DataError: only its configuration is missing.
          InputMissingError: there is none, or none that can be read in this locale.
        """
        self.require_name()
        self._require_utf8(InputMissingError)
        self.require_whole()
        if not self.has_config:
            raise InputMissingError(
                f"{self.path} is not a run or a model: {self._what_is_missing()}."
                f"{_suggested(self.path)} Train first, or pass another directory."
            )

    def require_directory(self) -> None:
        """Checks that there is a directory, whatever is in it.

        Raises:
          InputMissingError: there is none.
        """
        if not self.path.is_dir():
            raise InputMissingError(
                f"{self.path} is not a run: {self._what_is_missing()}."
                f"{_suggested(self.path)} Pass the directory of a run."
            )

    def _what_is_missing(self) -> str:
        if self.path.is_dir():
            return "config.json is missing"
        if self.path.exists():
            return "it is a file and not a directory"
        return "no such directory"

    def _require_utf8(self, error: type[UserError]) -> None:
        """Checks that Orbax, which wants Unicode, can use the directory's name."""
        try:
            os.path.abspath(self.path).encode()
        except UnicodeEncodeError as cause:
            raise error(
                f"{self.path} has a name that is not UTF-8, in this locale "
                "at least, and its checkpoints cannot be saved or loaded. Set "
                "PYTHONUTF8=1, or choose another workdir."
            ) from cause

    def create(self) -> None:
        """Makes the directory, and checks that what a run makes there can be made.

        Raises:
          DataError: something else has the name of a file or a folder of a run.
          OutputError: the directory, or one in it, cannot be written.
        """
        self._require_utf8(OutputError)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            files = [p for p in (self.path, *self.path.parents) if p.is_file()]
            reason = f"{files[0]} is a file" if files else error.strerror
            raise OutputError(
                f"{self.path} must be a directory that can be written: {reason}. "
                "Choose another workdir."
            ) from error
        problems, denied = ErrorCollector(), ErrorCollector()
        for place in (self.path, *map(self.path.joinpath, _FOLDERS)):
            problems.check(
                not os.path.lexists(place) or place.is_dir(),
                f"{place} must be a directory, and is none. Move it away, or choose "
                "another workdir.",
            )
            denied.check(
                not place.is_dir() or os.access(place, os.W_OK | os.X_OK),
                f"{place} must be writable, and is not. Change its permissions, or "
                "choose another workdir.",
            )
        for place in map(self.path.joinpath, _FILES):
            problems.check(
                # What a link leads to is nothing of this run, and stays as it is.
                not os.path.lexists(place)
                or (place.is_file() and not place.is_symlink()),
                f"{place} must be a file, and no link. Move it away, or choose another "
                "workdir.",
            )
        problems.raise_if_any(DataError)
        denied.raise_if_any(OutputError)

    @contextmanager
    def begun(self) -> Iterator[str]:
        """Makes the directory and locks it, for a start that may be refused.

        If that is so, and has written nothing yet, what this has made is removed again.

        Yields:
          As `locked`.

        Raises:
          DataError: as `create`.
          OutputError: as `create` and `locked`.
        """
        places = [self.path, *self.path.parents]
        made = [place for place in places if not os.path.lexists(place)]
        had_lock = self._has(_LOCK)
        self.create()
        with self.locked() as owner:
            try:
                yield owner
            except BaseException:
                with suppress(OSError):
                    if not had_lock and os.listdir(self.path) == [_LOCK]:
                        (self.path / _LOCK).unlink()  # Others see that: `_open_lock`.
                        for place in made:
                            place.rmdir()
                raise

    @contextmanager
    def locked(self) -> Iterator[str]:
        """Keeps other trainers out; the lock goes with the process, however it ends.

        Yields:
          What is written into the lock: who holds it, and since when.

        Raises:
          OutputError: another process holds it, or there can be none here.
        """
        owner = (
            f"process {os.getpid()} on {socket.gethostname()} since {datetime.now()}"
        )
        with self._open_lock() as lock:
            lock.truncate(0)
            lock.write(owner)
            lock.flush()
            os.fsync(lock.fileno())
            yield owner

    def _open_lock(self) -> TextIO:
        """Opens the file that one process at a time has locked."""
        with ExitStack() as opened:
            try:
                # Neither follows a link nor waits for the reader of a pipe.
                flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
                flags |= os.O_NONBLOCK | os.O_NOFOLLOW
                number = os.open(self.path / _LOCK, flags, 0o666)
                lock = opened.enter_context(os.fdopen(number, "a"))
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                held, there = os.fstat(number), os.stat(self.path / _LOCK)
                if held.st_ino != there.st_ino:  # Its owner has removed it meanwhile.
                    raise BlockingIOError
            except BlockingIOError as error:
                raise OutputError(
                    f"{self.path} is being trained in, or its text prepared, "
                    f"by {self.owner() or 'another process'}. Wait for it, or choose "
                    "another workdir."
                ) from error
            except OSError as error:
                raise OutputError(
                    f"{self.path} must hold a file that can be locked, and "
                    f"{self.path / _LOCK} cannot: {error.strerror}. Choose another "
                    "workdir."
                ) from error
            opened.pop_all()
            return lock

    def owner(self) -> str:
        """Reads who holds the lock, or has held it last; "" if nobody ever has."""
        with suppress(OSError, UserError):
            return read_limited(self.path / _LOCK, most=1 << 10, mend="").decode()
        return ""

    def log_of(self, index: int) -> Path:
        """Names the file where a process tells people of its work; makes its folder."""
        folder = self.path / "logs"
        folder.mkdir(exist_ok=True)
        return folder / f"rank-{index}.log"

    def read_fingerprints(self) -> dict[str, str]:
        """Reads what the run's text was when it began; nothing of an older run.

        Raises:
          DataError: it is damaged.
        """
        told = self._read("fingerprints.json", mend=self.mend)
        return {name: str(value) for name, value in (told or {}).items()}

    def read_config(self) -> Config:
        """Reads the resolved configuration of the run.

        Raises:
          InputMissingError: there is none.
          DataError: it is damaged.
        """
        self.require()
        mend = self.mend
        if (self.path / "model.bin").is_file():
            mend = "The directory is CTranslate2's: name the run that it comes from."
        try:
            return parse(self._read("config.json", mend=mend) or {})
        except ConfigError as error:
            path, problem = self.path / "config.json", error.problems[0]
            raise DataError(f"{path} is damaged: {problem}\n{mend}") from error

    def read_overrides(self) -> dict[str, Any]:
        """Reads the command line's changes to the configuration so far.

        Raises:
          DataError: they are damaged.
        """
        overrides = self._read("overrides.json", mend="Remove it.") or {}
        known = set(keys())
        return {key: value for key, value in overrides.items() if key in known}

    def read_vocabularies(self, config: VocabularyConfig) -> VocabularyPair:
        """Reads the subwords of a model that is to be used.

        Args:
          config: says whether the source has its own, and the sizes.

        Raises:
          DataError: they are damaged, or others than the model was trained with,
            whose ids would stand for other words.
          InputMissingError: there are none.
        """
        loaded = VocabularyPair.load(self.path, config=config)
        self.require_own(loaded, self.read_fingerprints())
        return loaded

    def require_own(
        self, vocabularies: VocabularyPair, fingerprints: Mapping[str, str]
    ) -> None:
        """Checks that vocabularies are those that a model was trained with.

        Args:
          fingerprints: Of the run, as it or a checkpoint of it has recorded them.

        Raises:
          DataError: they are others, whose ids would stand for other words.
        """
        was = fingerprints.get("vocabulary", vocabularies.fingerprint)
        if was != vocabularies.fingerprint:
            raise DataError(
                f"{self.path} has another vocabulary than its model was trained with: "
                f"its SHA-256 begins with {vocabularies.fingerprint[:12]}, and that of "
                f"the model's with {was[:12]}. Put the run's own vocab.model back."
            )

    def _read(self, name: str, *, mend: str) -> dict[str, Any] | None:
        """Reads an object of the directory; None where there is no such file."""
        path = self.path / name
        try:
            return read_json_object(path, mend=mend)
        except FileNotFoundError as error:
            if not path.is_symlink():
                return None
            raise DataError(f"{path} is a link to nothing. {mend}") from error
        except OSError as error:
            raise InputMissingError(
                f"{path} cannot be read: {error.strerror}. Fix permissions, or pass "
                "another workdir."
            ) from error

    def write_config(
        self, config: Config, overrides: dict[str, Any] | None = None
    ) -> None:
        """Writes the resolved configuration, and what the command line gave to it.

        The one of a run that exists is replaced: what may change in it, the caller has
        checked.
        """
        self.write_json("overrides.json", overrides or {})
        if self.has_config:
            self.write_json("config.json", to_dict(config))
        else:
            text = _text_of(to_dict(config))
            write_once(self.path / "config.json", text, mend="Rerun the command.")

    def write_json(self, name: str, values: Any) -> None:
        """Writes a JSON file beside its place and renames it there."""
        atomic_write(self.path / name, _text_of(values))

    def write_samples(self, step: int, text: str) -> None:
        """Writes the sample translations of an evaluation."""
        folder = self.path / "samples"
        folder.mkdir(exist_ok=True)
        atomic_write(folder / f"{step}.txt", text)


def runs_under(folder: Path) -> list[Path]:
    """Lists the runs and models directly in a directory, newest first."""
    found = []
    with suppress(OSError):
        for path in folder.iterdir():
            with suppress(OSError):
                changed = (path / "config.json").stat().st_mtime
                found.append((changed, path))
    return [path for _, path in sorted(found, reverse=True)]


def runs_near(path: Path) -> list[Path]:
    """Lists the runs and models in a directory, beside it and under `runs`."""
    folders = dict.fromkeys([path, path.parent, path.parent / "runs", Path("runs")])
    return list(dict.fromkeys(run for folder in folders for run in runs_under(folder)))


def _suggested(path: Path) -> str:
    """Names the run that a wrong path may mean, or the runs that are near it."""
    for folder, step in ((path, ""), (path.parent, path.name)):
        if folder.name == "checkpoints" and Workdir(folder.parent).has_config:
            which = f" with checkpoint={step}" if step.isdecimal() else ""
            return f" Did you mean {folder.parent}{which}?"
    runs = {run.name: str(run) for run in runs_near(path)}
    if near := get_close_matches(path.name, runs, n=1):
        return f" Did you mean {runs[near[0]]}?"
    listed = ", ".join(list(runs.values())[:_MOST_LISTED])
    more = ", …" if len(runs) > _MOST_LISTED else ""
    return f" Runs near it: {listed}{more}." if runs else ""


def _text_of(values: Any) -> str:
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"
