"""Runs a mode in lock-step stages over several processes.

A process that fails while others wait for its result would block them. After each
stage the processes synchronize their exit codes, and end together if one has failed.
With a single process a stage is a plain function call.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from t2t_jax.cli.console.error_report import report_error
from t2t_jax.cli.console.stderr import configure_stdout
from t2t_jax.cli.flags.options import Options
from t2t_jax.config import flatten, to_dict
from t2t_jax.data.token_cache.known_words import FILE as KNOWN_WORDS
from t2t_jax.distributed.consensus import broadcast_from_first
from t2t_jax.distributed.processes import Processes
from t2t_jax.errors import ConfigError, DataError, UserError
from t2t_jax.files import MAX_JSON_BYTES, read_limited
from t2t_jax.run.resume_rules import CHANGEABLE_ON_RESUME

if TYPE_CHECKING:
    from t2t_jax.inference.model import TranslationModel

Done = TypeVar("Done")

_FLAGS = (
    *("mode", "checkpoint", "protocol", "last", "force"),
    *("format", "token_scores", "alignments", "shards", "resume", "ensemble"),
)
_FILES = ("fingerprints.json", "model.json", "vocab.json", "vocab_source.json")
# The statuses of lines depend on it; absent from runs of older versions.
_OPTIONAL_FILES = (KNOWN_WORDS,)


class RemoteFailure(Exception):
    """A process has failed, and all end with the same exit code.

    Attributes:
      code: the exit code.
    """

    def __init__(self, code: int):
        super().__init__(code)
        self.code = code


def run_stage(processes: Processes, name: str, act: Callable[[], Done]) -> Done:
    """Runs a function on every process and synchronizes their exit codes.

    Collective: call on every process.

    Args:
      name: of the stage; unique in a run.
      act: the function.

    Returns:
      The result of `act` on this process.

    Raises:
      RemoteFailure: a process has failed; its message was printed there. A single
        process raises the original error.

    Example:
      >>> run_stage(Processes(), "opened", lambda: 7)
      7
    """
    if processes.count == 1:
        return act()
    code, done = 0, []
    try:
        done.append(act())
    except (Exception, KeyboardInterrupt) as error:
        code = report_error(error)
    code = processes.sync_exit_codes(name, code)
    if code or not done:
        raise RemoteFailure(code)
    return done[0]


def redirect_native_stdout(processes: Processes) -> None:
    """Reserves stdout for results; to be called first.

    Gloo and NCCL log their connections to file descriptor 1. With several processes
    it becomes a copy of stderr, and `sys.stdout` gets another descriptor.
    """
    if processes.count > 1:
        sys.stdout.flush()
        sys.stdout = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
        configure_stdout()
        os.dup2(2, 1)


def shared_settings(options: Options) -> dict[str, Any]:
    """Collects the settings that must be equal on all processes.

    Returns:
      JSON values by name: flags, the decoding and experiment configuration, and a
      digest of the files of the workdir that never change during a run.

    Raises:
      DataError: a file of the workdir cannot be read.
    """
    path, digest = options.workdir.path, hashlib.sha256()
    for name in (*_FILES, *_OPTIONAL_FILES):
        try:
            content = read_limited(
                path / name, max_bytes=MAX_JSON_BYTES, advice="Fix the file."
            )
            digest.update(content)
        except FileNotFoundError:
            digest.update(b"\0" if name in _FILES else b"")
        except OSError as error:
            raise DataError(
                f"{path / name} cannot be read: {error.strerror}. Fix permissions."
            ) from error
    settings: dict[str, Any] = {f"--{name}": getattr(options, name) for name in _FLAGS}
    for key, value in flatten(to_dict(options.config)):
        section = key.partition(".")[0]
        if section == "decoding" or not {key, section} & set(CHANGEABLE_ON_RESUME):
            settings[f"config.{key}"] = value
    return {**settings, "the content of --workdir": digest.hexdigest()[:12]}


def check_same_settings(processes: Processes, settings: Mapping[str, Any]) -> None:
    """Checks that every process has the settings of process 0. Once in a run.

    Collective: call on every process.

    Args:
      settings: from `shared_settings`.

    Raises:
      ConfigError: settings differ; the message lists them.
    """
    mine = {name: json.dumps(value) for name, value in settings.items()}
    message = broadcast_from_first(processes, "the settings", json.dumps(mine))
    first = json.loads(message)
    different = [
        f"{name} is {mine.get(name)} and not {first.get(name)}"
        for name in {**first, **mine}
        if mine.get(name) != first.get(name)
    ]
    if different:
        raise ConfigError(
            f"Process {processes.index} has other settings than process 0: "
            f"{', '.join(different)}. Use the same command line for all processes, and "
            "a shared --workdir."
        )


def check_same_input(
    processes: Processes, flag: str, lines: Sequence[str], *, first: int = 0
) -> None:
    """Checks that every process has read the same lines as process 0.

    Collective: call on every process, once for each part of a text.

    Args:
      flag: for the message, as `--input=news.en`.
      lines: some or all lines of the file.
      first: offset of `lines` in the file.

    Raises:
      DataError: they differ.
    """
    if processes.count == 1:
        return
    digest = hashlib.sha256(json.dumps(lines).encode("ascii")).hexdigest()
    mine = f"{len(lines):,} {digest}"
    expected = broadcast_from_first(processes, f"the lines to share from {first}", mine)
    if expected != mine:
        raise DataError(
            f"{flag} must have the same lines on every process, but from line "
            f"{first + 1:,} on they differ: {len(lines):,} lines here, "
            f"{expected.split(' ')[0]} on process 0. Use a shared file system."
        )


def refuse_stdin(processes: Processes, flag: str, name: str) -> None:
    """Checks that several processes do not read standard input.

    Raises:
      UserError: `name` is `-`, which only one process can read.
    """
    if processes.count > 1 and name == "-":
        raise UserError(
            f"--{flag}=- is standard input, which {processes.count} processes cannot "
            f"all read. Pass a file with --{flag}, on a shared file system."
        )


def translate_shared(
    processes: Processes,
    model: TranslationModel,
    lines: Sequence[str],
    *,
    seen: Callable[[int], None] = lambda number: None,
) -> list[str]:
    """Translates lines, sharded over the processes, and gathers all translations.

    Collective: call on every process, with the same lines.

    Args:
      model: on the devices of this process.
      lines: all lines.
      seen: called with the number of lines translated since the last call; progress
        of other processes is estimated.

    Returns:
      One translation per line, in order.

    Raises:
      RemoteFailure: a process failed.
    """
    translator = model.translator()

    def translate(share: list[str], first: int) -> list[str]:
        texts = [""] * len(share)
        for number, translation in translator.iter_translations(share, first=first):
            texts[number] = translation.text
            seen(processes.count)  # estimate: the others are about as far
        return texts

    return map_shared(processes, translate, lines, name="translated")


def map_shared(
    processes: Processes,
    translate: Callable[[list[str], int], list[str]],
    lines: Sequence[str],
    *,
    name: str,
) -> list[str]:
    """Maps lines, sharded over the processes, and gathers all results.

    Collective: call on every process, with the same lines.

    Args:
      translate: maps (lines, their offset) to as many results.
      name: of the stage; unique in a run.

    Returns:
      One result per line, in order, on every process.

    Raises:
      RemoteFailure: a process failed.
    """
    from t2t_jax.distributed.gather import map_lines_across_processes

    def translate_share(share: list[str], first: int) -> list[str]:
        return run_stage(processes, name, lambda: translate(share, first))

    return map_lines_across_processes(translate_share, lines, processes)
