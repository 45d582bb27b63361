"""Several processes: the same command line, content and checkpoints on each.

A process that fails ends all others by its failure notice, which `main` publishes.
During training, or on a lagging network file system, processes may see different
checkpoints: process 0 resolves the steps and broadcasts them.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2t_jax.checkpointing.step_dirs import StepDirs
from t2t_jax.cli.console.stderr import configure_stdout, log
from t2t_jax.cli.flags.options import (
    DistributedOptions,
    EvaluateOptions,
    LanguageOptions,
    SearchOptions,
)
from t2t_jax.config import flatten, to_dict
from t2t_jax.data.token_cache.known_words import FILE as KNOWN_WORDS
from t2t_jax.devices.distributed.processes import Processes, broadcast_from_first
from t2t_jax.errors import ConfigError, DataError
from t2t_jax.files import MAX_JSON_BYTES, read_limited, sha256_of
from t2t_jax.run.resume_rules import CHANGEABLE_ON_RESUME

if TYPE_CHECKING:
    from t2t_jax.decoding.config import DecodingConfig
    from t2t_jax.run.inference.model import TranslationModel

_FLAGS = (
    *("mode", "checkpoint", "protocol", "last", "force"),
    *("format", "token_scores", "alignments", "shards", "resume", "ensemble"),
)
# File of the workdir -> what is hashed where it is absent. The statuses of lines depend
# on the known words, which imported models do not have.
_FILES = dict.fromkeys(
    ("fingerprints.json", "model.json", "vocab.json", "vocab_source.json"), b"\0"
) | {KNOWN_WORDS: b""}


def start_processes(options: DistributedOptions) -> None:
    """Checks that every process has the settings of process 0, and reserves stdout.

    Collective: call on every process, once, and first.

    Raises:
      ConfigError: settings differ; the message lists them.
      DataError: a file of the workdir cannot be read.
      InputMissingError: the workdir is not a run or a model.
    """
    options.workdir.require()
    processes = options.processes
    if processes.count == 1:
        return
    _redirect_native_stdout()
    if different := differences_from_first(processes, "settings", settings_of(options)):
        raise ConfigError(
            f"Process {processes.index} has other settings than process 0: "
            f"{', '.join(different)}. Use the same flags, and a shared --workdir."
        )


def differences_from_first(
    processes: Processes, name: str, values: Mapping[str, Any]
) -> list[str]:
    """Lists the JSON values that differ from those of process 0.

    Collective: call on every process.

    Args:
      name: of the values; unique in a run.
      values: by name.
    """
    mine = {name: json.dumps(value) for name, value in values.items()}
    first = json.loads(broadcast_from_first(processes, name, json.dumps(mine)))
    return [
        f"{name} is {mine.get(name)} and not {first.get(name)}"
        for name in {**first, **mine}
        if mine.get(name) != first.get(name)
    ]


def _redirect_native_stdout() -> None:
    """Reserves stdout for results.

    Gloo and NCCL log their connections to file descriptor 1, which becomes a copy of
    stderr; `sys.stdout` gets another descriptor.
    """
    sys.stdout.flush()
    sys.stdout = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
    configure_stdout()
    os.dup2(2, 1)


def settings_of(options: DistributedOptions) -> dict[str, Any]:
    """Collects the settings that must be equal on all processes.

    Returns:
      JSON values by name: flags, the decoding and experiment configuration, a digest
      of the files of the workdir that never change during a run, of the shortlist, and
      of the export.

    Raises:
      DataError: a file of the workdir cannot be read.
    """
    digest = hashlib.sha256()
    for path, absent in ((options.workdir.path / n, b) for n, b in _FILES.items()):
        try:
            content = read_limited(path, max_bytes=MAX_JSON_BYTES, advice="Fix it.")
            digest.update(content)
        except FileNotFoundError:
            digest.update(absent)
        except OSError as error:
            raise DataError(
                f"{path} cannot be read: {error.strerror}. Fix permissions."
            ) from error
    settings: dict[str, Any] = {
        f"--{name}": getattr(options, name) for name in _FLAGS if hasattr(options, name)
    }
    if isinstance(options, LanguageOptions):
        settings |= {f"--{name}": code for name, code in options.languages.items()}
    for key, value in flatten(to_dict(options.config)):
        section = key.partition(".")[0]
        # Lines are joined by it before they are translated.
        is_joiner = key == "data.subword_joiner" and value
        is_fixed = not {key, section} & set(CHANGEABLE_ON_RESUME)
        if section == "decoding" or is_joiner or is_fixed:
            settings[f"config.{key}"] = value
    settings["the content of --workdir"] = digest.hexdigest()[:12]
    files = {"shortlist": Path(options.config.decoding.shortlist)}
    if export := getattr(options, "export", ""):
        settings["--export"], files["export"] = export, Path(export) / "model.bin"
    for name, path in files.items():
        if path.is_file():
            settings[f"the content of --{name}"] = sha256_of(path)[:12]
    return settings


def load_one(
    options: SearchOptions, checkpoint: str = "", decoding: DecodingConfig | None = None
) -> TranslationModel:
    """Loads one checkpoint of the workdir, and the models of the ensemble.

    Says so where the best checkpoint is not the last.

    Collective: call on every process.

    Args:
      checkpoint: `best`, `last` or a step, as process 0 resolves it; "" means that of
        the flags.
      decoding: None means that of the configuration.

    Raises:
      UserError: as `inference.load.load`; or this process does not see the checkpoint.
    """
    from t2t_jax.run.inference.load import load, shared_checkpoint

    processes, path = options.processes, options.workdir.path
    asked = checkpoint or options.checkpoint
    step = shared_checkpoint(processes, path, checkpoint=asked, name="model 0")
    others = [
        (folder, shared_checkpoint(processes, Path(folder), name=f"model {number}"))
        for number, folder in enumerate(options.ensemble, 1)
    ]
    decoding = decoding or options.config.decoding
    model = load(path, checkpoint=step, decoding=decoding, ensemble=others)
    last = max(StepDirs(options.workdir.checkpoints).steps(), default=0)
    if asked == "best" and last > model.step and processes.is_first:
        log(f"Step {model.step:,}, the best; the last is {last:,}: --checkpoint=last.")
    return model


def load_mean(options: EvaluateOptions, decoding: DecodingConfig) -> TranslationModel:
    """Averages checkpoints of a run in memory. Collective: call on every process.

    Raises:
      UserError: as `inference.average.select_checkpoints`; or this process does not see
        the checkpoints.
    """
    from t2t_jax.run.inference.average import average_model, select_checkpoints
    from t2t_jax.run.inference.load import shared_steps

    workdir, last = options.workdir, options.last
    select = partial(select_checkpoints, workdir, force=options.force)
    steps = shared_steps(options.processes, workdir, lambda: select(last=last).steps)
    return average_model(workdir, select(steps=steps), decoding=decoding)
