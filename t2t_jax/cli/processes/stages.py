"""What several processes do side by side in a mode, and end alike.

A process that fails while the others wait for its share would leave them waiting. So a
mode goes in stages, after each of which all processes know whether all are well. For
one alone a stage is what is done in it, and nothing more.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from t2t_jax.cli.console.error_report import report_error
from t2t_jax.cli.console.stderr import guard_stdout
from t2t_jax.cli.flags.options import Options
from t2t_jax.config import flatten, to_dict
from t2t_jax.data.token_cache.known_words import FILE as KNOWN_WORDS
from t2t_jax.distributed.consensus import broadcast_from_first
from t2t_jax.distributed.processes import Processes
from t2t_jax.errors import ConfigError, DataError, UserError
from t2t_jax.files import MOST_JSON_BYTES, read_limited
from t2t_jax.run.resume_rules import CHANGEABLE_ON_RESUME

if TYPE_CHECKING:
    from t2t_jax.inference.model import TranslationModel

Done = TypeVar("Done")

_FLAGS = (
    *("mode", "checkpoint", "protocol", "last", "force"),
    *("format", "token_scores", "alignments", "shards", "resume", "ensemble"),
)
_FILES = ("fingerprints.json", "model.json", "vocab.json", "vocab_source.json")
# The statuses of lines depend on it; runs of older versions have none.
_OPTIONAL_FILES = (KNOWN_WORDS,)


class RemoteFailure(Exception):
    """One of several processes has failed, and all have agreed to end.

    Args:
      code: the exit code of all.
    """

    def __init__(self, code: int):
        super().__init__(code)
        self.code = code


def run_stage(processes: Processes, name: str, act: Callable[[], Done]) -> Done:
    """Does something on every process, and goes on where it went well on all.

    Args:
      processes: all of them come here.
      name: of the stage; another one each time.

    Returns:
      What `act` has returned.

    Raises:
      Ended: some process has failed; its message has been shown there. One process
        alone lets its error pass as it is.

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
    """Keeps stdout for results, to be called before anything else is done.

    Gloo and NCCL, through which processes speak, tell of their connections on the
    descriptor of stdout: from here on it is that of stderr, and `sys.stdout` another.

    Args:
      processes: one alone leaves everything as it is.
    """
    if processes.count > 1:
        sys.stdout.flush()
        sys.stdout = os.fdopen(os.dup(1), "w", encoding="utf-8", newline="\n")
        guard_stdout()
        os.dup2(2, 1)


def shared_settings(options: Options) -> dict[str, Any]:
    """Collects what the processes must have alike, for their shares to be of a kind.

    Args:
      options: of this process; its workdir is there.

    Returns:
      JSON values by name: flags, how the search is configured, what the experiment is,
      and a digest of the files of the workdir that do not change under a run.

    Raises:
      DataError: a file of the workdir cannot be read.
    """
    path, digest = options.workdir.path, hashlib.sha256()
    for name in (*_FILES, *_OPTIONAL_FILES):
        try:
            told = read_limited(path / name, most=MOST_JSON_BYTES, mend="Change that.")
            digest.update(told)
        except FileNotFoundError:
            digest.update(b"\0" if name in _FILES else b"")
        except OSError as error:
            raise DataError(
                f"{path / name} cannot be read: {error.strerror}. Change that."
            ) from error
    settings: dict[str, Any] = {f"--{name}": getattr(options, name) for name in _FLAGS}
    for key, value in flatten(to_dict(options.config)):
        section = key.partition(".")[0]
        if section == "decoding" or not {key, section} & set(CHANGEABLE_ON_RESUME):
            settings[f"config.{key}"] = value
    return {**settings, "the content of --workdir": digest.hexdigest()[:12]}


def check_same_settings(processes: Processes, settings: Mapping[str, Any]) -> None:
    """Checks that every process was started alike. Once in a run.

    Args:
      processes: all of them come here.
      settings: JSON values by name, from `shared_settings`.

    Raises:
      ConfigError: they are not those of process 0; it names all that differ.
    """
    mine = {name: json.dumps(value) for name, value in settings.items()}
    told = json.loads(broadcast_from_first(processes, "the settings", json.dumps(mine)))
    different = [
        f"{name} is {mine.get(name)} and not {told.get(name)}"
        for name in {**told, **mine}
        if mine.get(name) != told.get(name)
    ]
    if different:
        raise ConfigError(
            f"Process {processes.index} was started otherwise than process 0: "
            f"{', '.join(different)}. Give all of them the same command line, and a "
            "--workdir that they share."
        )


def check_same_input(
    processes: Processes, flag: str, lines: Sequence[str], *, first: int = 0
) -> None:
    """Checks that every process has read the same lines, which are to be shared out.

    Once for each part of the one text of a run.

    Args:
      processes: all of them come here.
      flag: names the file, as `--input=news.en`; elsewhere it may be spelt otherwise.
      lines: of the file, all or some.
      first: how many lines of it there are before these.

    Raises:
      DataError: they are not those of process 0.
    """
    if processes.count == 1:
        return
    digest = hashlib.sha256(json.dumps(lines).encode("ascii")).hexdigest()
    mine = f"{len(lines):,} {digest}"
    told = broadcast_from_first(processes, f"the lines to share from {first}", mine)
    if told != mine:
        raise DataError(
            f"{flag} must hold the same lines on every process: from line "
            f"{first + 1:,} on here are {len(lines):,}, on process 0 "
            f"{told.split(' ')[0]}, or others. Put it where all of them see it."
        )


def refuse_stdin(processes: Processes, flag: str, name: str) -> None:
    """Checks that several processes do not share one standard input.

    Args:
      name: of the file, or `-`.

    Raises:
      UserError: it is standard input, which only one process can read.
    """
    if processes.count > 1 and name == "-":
        raise UserError(
            f"--{flag}=- is standard input, which {processes.count} processes cannot "
            f"all read. Name a file with --{flag}, on a file system that they share."
        )


def translate_shared(
    processes: Processes,
    model: TranslationModel,
    lines: Sequence[str],
    *,
    seen: Callable[[int], None] = lambda number: None,
) -> list[str]:
    """Translates a share of the lines on each process, and gives all of them to all.

    Args:
      processes: all of them come here, with the same lines.
      model: of this process, on its own devices.
      lines: all that are to be translated.
      seen: called with the number of lines translated since the last call, those of
        the other processes estimated.

    Returns:
      One translation for each line, in the same order.

    Raises:
      Ended: some process could not translate its share.
    """
    translator = model.translator()

    def translate(share: list[str], first: int) -> list[str]:
        texts = [""] * len(share)
        for number, translation in translator.iter_translations(share, first=first):
            texts[number] = translation.text
            seen(processes.count)  # The others are about as far.
        return texts

    return map_shared(processes, translate, lines, name="translated")


def map_shared(
    processes: Processes,
    translate: Callable[[list[str], int], list[str]],
    lines: Sequence[str],
    *,
    name: str,
) -> list[str]:
    """Does to a share of the lines on each process what takes long.

    Args:
      processes: all of them come here, with the same lines.
      name: of the stage; another one each time.

    Returns:
      What has become of each line, in the same order, on every process.

    Raises:
      Ended: some process could not do its share.
    """
    from t2t_jax.distributed.gather import map_lines_across_processes

    def translate_share(share: list[str], first: int) -> list[str]:
        return run_stage(processes, name, lambda: translate(share, first))

    return map_lines_across_processes(translate_share, lines, processes)
