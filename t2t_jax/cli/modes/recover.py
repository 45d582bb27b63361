"""`--mode=recover`: restores lost or corrupt files of a run from a checkpoint.

Every checkpoint contains the configuration, the fingerprints and the vocabulary.
Readable files are never replaced; corrupt ones are renamed to `corrupt-<name>`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from itertools import chain, count
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.flags.options import RecoverOptions
from t2t_jax.config import Config, parse_saved
from t2t_jax.data.vocabulary.pair import FILES, joint_fingerprint
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import ConfigError, DataError, ErrorCollector, UserError
from t2t_jax.files import (
    MAX_VOCABULARY_BYTES,
    free_path,
    read_json_object,
    read_limited,
)
from t2t_jax.run.resume_rules import forbidden_changes, require_resumable
from t2t_jax.run.workdir import Workdir

_MOVE, _RESTORE = "Move it away and rerun.", "Restore it from a copy."
_Read = TypeVar("_Read")


class _CheckpointMeta(NamedTuple):
    """The metadata that a checkpoint keeps of its run.

    Attributes:
      step: of the checkpoint.
      config: of the run.
      fingerprints: of vocabulary and corpora.
      files: content of the vocabulary files by name.
    """

    step: int
    config: Config
    fingerprints: dict[str, str]
    files: dict[str, bytes]


def run(options: RecoverOptions) -> None:
    """Restores config.json, vocabulary and fingerprints.json if missing or corrupt.

    Raises:
      UserError: there is no checkpoint to restore from, or existing files contradict
        it.
    """
    workdir = options.workdir
    if not workdir.is_used:
        workdir.refuse("a run", "Pass the directory of a run.")
    if options.overrides and not options.config_given:
        keys = ", ".join(f"--config.{key}" for key in options.overrides)
        raise UserError(f"{keys} requires --config with --mode=recover.")
    with workdir.locked():
        saved = _read(options)
        _require_consistent(workdir, saved)
        written = _write(workdir, saved)
    if not written:
        log(f"Nothing to restore in {workdir.path}: no file is missing or corrupt.")
        return
    log(
        f"Restored {', '.join(written)} in {workdir.path} from the checkpoint of step "
        f"{saved.step:,}. Rerun the training command to resume."
    )


def _read(options: RecoverOptions) -> _CheckpointMeta:
    """Reads the newest checkpoint whose metadata is valid."""
    from t2t_jax.checkpointing.diagnosis import CorruptCheckpointError
    from t2t_jax.checkpointing.reader import CheckpointReader

    checkpoints = CheckpointReader(options.workdir.checkpoints)
    problems = []
    for step in reversed(checkpoints.steps()):
        try:
            meta = checkpoints.meta(step)
            config = _config_of(options, checkpoints.path(step), meta)
            files = checkpoints.files(step)
        except CorruptCheckpointError as error:
            problems.append(f"Checkpoint {error.path} is corrupt: {error.reason}.")
            log(f"WARNING: {problems[-1]}")
            continue
        return _CheckpointMeta(step, config, dict(meta.get("fingerprints", {})), files)
    found = f"{checkpoints.directory} holds no {'valid ' * bool(problems)}checkpoint"
    advice = "Restore config.json and vocab.model from a copy."
    raise DataError([*problems, f"{found} to restore from. {advice}"])


def _config_of(options: RecoverOptions, path: Path, meta: Mapping[str, Any]) -> Config:
    """Reads the configuration saved in the checkpoint in `path`."""
    try:
        config = parse_saved(meta["config"])
    except (ConfigError, KeyError) as error:
        reason = error.problems[0] if isinstance(error, ConfigError) else "it has none."
        raise DataError(
            f"The configuration in {path} is of another version of t2t_jax: {reason}\n"
            "Use the version that saved it."
        ) from error
    if options.config_given:
        require_resumable(config, options.config, workdir=options.workdir.path)
    return config


def _require_consistent(workdir: Workdir, saved: _CheckpointMeta) -> None:
    """Checks, before writing, that existing files match the checkpoint.

    Raises:
      DataError: a file is of another run, or a missing one is not in the checkpoint.
    """
    problems, checkpoint = ErrorCollector(), f"the checkpoint of step {saved.step:,}"

    def check(name: str, holds: object, fault: str, advice: str = _MOVE) -> None:
        problems.check(bool(holds), f"{workdir.path / name} {fault}. {advice}")

    if config := _try(workdir.read_config):
        refused = forbidden_changes(config, saved.config)
        keys = f"{len(refused)} keys differ, such as {' '.join(refused).split(' ')[0]}"
        fault = f"is of another experiment than {checkpoint}: {keys}"
        check("config.json", not refused, fault)
    for name, value in (_try(workdir.read_fingerprints) or {}).items():
        is_same = saved.fingerprints.get(name, value) == value
        check("fingerprints.json", is_same, f"has another {name!r} than {checkpoint}")
    digests = []  # after the recovery
    for name in reversed(_names(saved.config)):  # the source's first
        kept = saved.files.get(name)
        found = _try(partial(_read_vocabulary, workdir.path / name))
        fault = f"is missing or corrupt, and {checkpoint} does not hold it"
        check(name, found or kept, fault, _RESTORE)
        is_same = not (found and kept and found.model != kept)
        check(name, is_same, f"is not the vocabulary in {checkpoint}")
        vocabulary = found or (Vocabulary(kept) if kept else None)
        digests.append(vocabulary.fingerprint if vocabulary else "")
    recorded = saved.fingerprints.get("vocabulary", "")
    problems.check(
        bool(problems.messages) or recorded in ("", joint_fingerprint(*digests)),
        f"The vocabulary in {workdir.path} is not that of {checkpoint}, whose SHA-256 "
        f"begins with {recorded[:12]}. {_RESTORE}",
    )
    problems.raise_if_any(DataError)


def _names(config: Config) -> tuple[str, ...]:
    return FILES if config.vocabulary.source_size else FILES[:1]


def _read_vocabulary(path: Path) -> Vocabulary:
    return Vocabulary(read_limited(path, max_bytes=MAX_VOCABULARY_BYTES, advice=""))


def _try(read: Callable[[], _Read]) -> _Read | None:
    """Returns what a file holds; None if it is missing or corrupt."""
    with suppress(OSError, UserError):
        return read()
    return None


def _write(workdir: Workdir, saved: _CheckpointMeta) -> list[str]:
    """Writes missing or corrupt files, in the order of a first start."""
    written = []

    def is_lost(name: str, read: Callable[[Path], object]) -> bool:
        path = workdir.path / name
        if _try(lambda: (read(path),)):  # even of an empty object
            return False
        _set_aside(path)
        return True

    for name in _names(saved.config):
        if is_lost(name, _read_vocabulary):
            Vocabulary(saved.files[name]).save(workdir.path, name=Path(name).stem)
            written.append(name)
    read_object = partial(read_json_object, advice="")
    for name in ("overrides.json", "data.json"):  # optional files
        is_lost(name, read_object)
    if is_lost("config.json", lambda path: workdir.read_config()):
        workdir.write_config(saved.config, _try(workdir.read_overrides) or {})
        written.append("config.json")
    if saved.fingerprints and is_lost("fingerprints.json", read_object):
        workdir.write_json("fingerprints.json", saved.fingerprints)
        written.append("fingerprints.json")
    return written


def _set_aside(path: Path) -> None:
    """Renames a corrupt file, so that it can be inspected."""
    if not os.path.lexists(path):
        return
    marks = chain([""], (f"{number}-" for number in count(2)))
    aside = free_path(path.with_name(f"corrupt-{mark}{path.name}") for mark in marks)
    path.rename(aside)
    log(f"WARNING: {path} is corrupt; renamed to {aside.name}.")
