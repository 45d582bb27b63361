"""`--mode=recover`: restores lost or corrupt files of a run from a checkpoint.

Every checkpoint contains the configuration, the fingerprints and the vocabulary.
Readable files are never replaced; corrupt ones are renamed to `corrupt-<name>`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from t2t_jax.cli.console.stderr import log
from t2t_jax.cli.flags.options import RecoverOptions
from t2t_jax.config import Config, parse_saved
from t2t_jax.data.vocabulary.pair import FILES, joint_fingerprint
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import (
    ConfigError,
    DataError,
    ErrorCollector,
    InputMissingError,
    UserError,
)
from t2t_jax.files import MAX_VOCABULARY_BYTES, read_json_object, read_limited
from t2t_jax.run.resume_rules import forbidden_changes, require_resumable
from t2t_jax.run.workdir import Workdir

if TYPE_CHECKING:
    pass


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


def run(options: RecoverOptions) -> int:
    """Restores config.json, vocabulary and fingerprints.json if missing or corrupt.

    Raises:
      UserError: there is no checkpoint to restore from, or existing files contradict
        it.
    """
    workdir = options.workdir
    workdir.require_directory()
    if not workdir.is_used:
        raise InputMissingError(
            f"{workdir.path} is not a run: there is no checkpoint and no config.json. "
            "Pass the directory of a run."
        )
    if options.overrides and not options.config_given:
        keys = ", ".join(f"--config.{key}" for key in options.overrides)
        raise UserError(f"{keys} requires --config with --mode=recover.")
    with workdir.locked():
        saved = _read(options)
        _require_consistent(workdir, saved)
        written = _write(workdir, saved)
    if written:
        log(
            f"Restored {', '.join(written)} in {workdir.path} from the checkpoint of "
            f"step {saved.step:,}. Rerun the training command to resume."
        )
    else:
        log(f"Nothing to restore in {workdir.path}: no file is missing or corrupt.")
    return 0


def _read(options: RecoverOptions) -> _CheckpointMeta:
    """Reads the newest checkpoint whose metadata is valid."""
    from t2t_jax.checkpointing.checkpoints import Checkpoints
    from t2t_jax.checkpointing.diagnosis import CorruptCheckpointError

    checkpoints = Checkpoints(options.workdir.checkpoints)
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
    found = "no valid checkpoint" if problems else "no checkpoint"
    raise DataError(
        [
            *problems,
            f"{checkpoints.directory} holds {found} to restore from. Restore "
            "config.json and vocab.model from a copy.",
        ]
    )


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
    problems = ErrorCollector()
    with suppress(UserError):
        refused = forbidden_changes(workdir.read_config(), saved.config)
        problems.check(
            not refused,
            f"{workdir.path / 'config.json'} is of another experiment than the "
            f"checkpoint of step {saved.step:,}: {len(refused)} keys differ, such as "
            f"{' '.join(refused[:1]).split(' ')[0]}. Move it away and rerun.",
        )
    with suppress(UserError):
        for name, value in workdir.read_fingerprints().items():
            problems.check(
                saved.fingerprints.get(name, value) == value,
                f"{workdir.path / 'fingerprints.json'} has another {name!r} than the "
                f"checkpoint of step {saved.step:,}. Move it away and rerun.",
            )
    digests = _digests(workdir, saved, problems)
    recorded = saved.fingerprints.get("vocabulary")
    if recorded and not problems.messages and recorded != joint_fingerprint(*digests):
        problems.check(
            False,
            f"The vocabulary in {workdir.path} is not that of the checkpoint of step "
            f"{saved.step:,}, whose SHA-256 begins with {str(recorded)[:12]}. Restore "
            "it from a copy.",
        )
    problems.raise_if_any(DataError)


def _digests(
    workdir: Workdir, saved: _CheckpointMeta, problems: ErrorCollector
) -> list[str]:
    """Computes the fingerprints of the vocabularies after the recovery."""
    digests = []
    for name in reversed(_names(saved.config)):  # the source's first
        held = _vocabulary(workdir.path / name)
        kept = saved.files.get(name)
        if held is None and kept is None:
            problems.check(
                False,
                f"{workdir.path / name} is missing or corrupt, and the checkpoint of "
                f"step {saved.step:,} does not hold it. Restore it "
                "from a copy.",
            )
        elif held is not None and kept is not None:
            problems.check(
                held.model == kept,
                f"{workdir.path / name} is not the vocabulary in the checkpoint of "
                f"step {saved.step:,}. Move it away and rerun.",
            )
        content = held.model if held else kept
        digests.append(Vocabulary(content).fingerprint if content else "")
    return digests


def _names(config: Config) -> tuple[str, ...]:
    return FILES if config.vocabulary.source_size else FILES[:1]


def _vocabulary(path: Path) -> Vocabulary | None:
    """Loads a vocabulary; None if it is missing or corrupt."""
    with suppress(OSError, DataError):
        return Vocabulary(read_limited(path, max_bytes=MAX_VOCABULARY_BYTES, advice=""))
    return None


def _write(workdir: Workdir, saved: _CheckpointMeta) -> list[str]:
    """Writes missing or corrupt files, in the order of a first start."""
    written = []
    for name in _names(saved.config):
        if _vocabulary(workdir.path / name) is None:
            _set_aside(workdir.path / name)
            model = Vocabulary(saved.files[name])
            model.save(workdir.path, name=Path(name).stem)
            written.append(name)
    for name in ("overrides.json", "data.json"):  # optional files
        if not _is_object(workdir.path / name):
            _set_aside(workdir.path / name)
    if not _has_config(workdir):
        _set_aside(workdir.path / "config.json")
        workdir.write_config(saved.config, _overrides(workdir))
        written.append("config.json")
    if not _is_object(workdir.path / "fingerprints.json") and saved.fingerprints:
        _set_aside(workdir.path / "fingerprints.json")
        workdir.write_json("fingerprints.json", saved.fingerprints)
        written.append("fingerprints.json")
    return written


def _has_config(workdir: Workdir) -> bool:
    with suppress(UserError):
        workdir.read_config()
        return True
    return False


def _overrides(workdir: Workdir) -> dict[str, Any]:
    """Reads the recorded overrides; empty if they are missing or corrupt."""
    with suppress(UserError):
        return workdir.read_overrides()
    return {}


def _is_object(path: Path) -> bool:
    with suppress(OSError, UserError):
        read_json_object(path, advice="")
        return True
    return False


def _set_aside(path: Path) -> None:
    """Renames a corrupt file, so that it can be inspected."""
    if not os.path.lexists(path):
        return
    number, aside = 1, path.with_name(f"corrupt-{path.name}")
    while os.path.lexists(aside):
        number += 1
        aside = path.with_name(f"corrupt-{number}-{path.name}")
    path.rename(aside)
    log(f"WARNING: {path} is corrupt; renamed to {aside.name}.")
