"""`--mode=translate --shards=N`: a job on a large file that goes on after a kill."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from t2t_jax.cli.lines import output_place
from t2t_jax.cli.options import Options
from t2t_jax.cli.output_shards import OutputShards
from t2t_jax.cli.stretches import NumberedLines
from t2t_jax.cli.together import (
    require_same,
    require_same_settings,
    settings_of,
    stage,
)
from t2t_jax.cli.translating import Translating, check_asked, load_translating
from t2t_jax.cli.translation_report import TranslationReport
from t2t_jax.cli.windows import Window, require_as_many, windows
from t2t_jax.data.line_counts import Count
from t2t_jax.errors import InputMissingError, OutputError, UserError
from t2t_jax.files import VISIBLE_SECONDS
from t2t_jax.parallelism.distributed import Processes

_WAIT = 0.5  # seconds


class _Opened(NamedTuple):
    """What is known before a model is loaded.

    Attributes:
      text: the lines.
      prefixes: what their translations begin with; None where nothing is forced.
      shards: what they become.
      settings: what all processes must have alike.
      made_of: what the shards depend on, but for the model.
    """

    text: NumberedLines
    prefixes: NumberedLines | None
    shards: OutputShards
    settings: dict[str, Any]
    made_of: dict[str, Any]

    def windows(self, shard: int) -> Iterator[Window]:
        """Reads the lines of a shard."""
        lines = self.shards.range_of(shard)
        text = self.text.stretch(lines.start, lines.stop)
        if self.prefixes is None:
            return windows(text, first=lines.start)
        prefixes = self.prefixes.stretch(lines.start, lines.stop)
        return windows(text, prefixes, first=lines.start)


def translate_shards(options: Options) -> None:
    """Translates `options.input`, each process a shard at a time.

    Raises:
      Ended: some process has failed. One alone raises what it has met.
      UserError: see above.
    """
    processes = options.processes
    opened = stage(processes, "opened", lambda: _opened(options))
    settings, shards = opened.settings, opened.shards
    stage(processes, "compared", lambda: require_same_settings(processes, settings))
    read = [side.sha256 for side in (opened.text, opened.prefixes) if side]
    name = f"--input={options.input}"
    stage(processes, "input compared", lambda: require_same(processes, name, read))
    translating = load_translating(options)
    made_of = {**opened.made_of, **_described(translating)}

    def begin() -> None:
        if processes.is_first:
            shards.begin(made_of, resume=options.resume)

    stage(processes, "shards begun", begin)
    stage(processes, "shards seen", lambda: _require_seen(shards, made_of))
    _make_and_join(opened, translating, processes=processes)


def _opened(options: Options) -> _Opened:
    """Reads the input through, and looks at what is there of an earlier job."""
    if "-" in (options.input, options.output):
        raise UserError(
            "--shards needs an --input to read again and an --output to come back to, "
            "which are files. Name both."
        )
    check_asked(options)
    _require_file("input", options.input)
    _require_file("prefixes", options.prefixes)
    inputs = (options.input, options.prefixes)
    output = output_place(options.output, inputs=inputs)
    if output.exists() and not output.is_file():
        raise OutputError(
            f"--output={options.output} must be a file, since shards become one, and "
            "is none. Choose another, or leave --shards out."
        )
    strict = options.strict
    text, prefixes = NumberedLines(options.input, strict=strict), None
    if options.prefixes:
        prefixes = NumberedLines(options.prefixes, flag="prefixes", strict=strict)
        require_as_many(prefixes.count, lines=text.count)
    settings = settings_of(options)
    # With --resume it is the same job.
    made_of = {name: settings[name] for name in settings if name != "--resume"}
    made_of["the content of --input"] = text.sha256[:12]
    made_of["the content of --prefixes"] = prefixes and prefixes.sha256[:12]
    shards = OutputShards(output, count=options.shards, lines=text.count)
    if options.processes.is_first:
        shards.require(made_of, resume=options.resume)
    return _Opened(text, prefixes, shards, settings, made_of)


def _require_file(flag: str, name: str) -> None:
    """Checks that what is there is no pipe; what is missing, opening it will say."""
    if os.path.exists(name) and not os.path.isfile(name):
        raise InputMissingError(
            f"--{flag}={name} must be a file, since --shards reads it more than once, "
            "and is none. Write the lines into one, or leave --shards out."
        )


def _described(translating: Translating) -> dict[str, Any]:
    from t2t_jax.evaluation.protocol import fingerprint_params

    models = (translating.model, *translating.model.others)
    return {
        "the step of --checkpoint": [model.step for model in models],
        "the content of the checkpoint": [
            fingerprint_params(model.params)[:12] for model in models
        ],
    }


def _require_seen(shards: OutputShards, made_of: Mapping[str, Any]) -> None:
    """Checks that this process sees what the first one has begun."""
    deadline = time.monotonic() + VISIBLE_SECONDS
    # Another job may have joined all meanwhile.
    while not (shards.place.exists() or shards.is_joined(made_of)):
        if time.monotonic() > deadline:
            raise OutputError(
                f"{shards.place} must be on a file system that all processes share, "
                "and this one does not see it. Choose another --output."
            )
        time.sleep(_WAIT)
    shards.require(made_of, resume=True)


def _make_and_join(
    opened: _Opened, translating: Translating, *, processes: Processes
) -> None:
    shards, count = opened.shards, opened.text.count
    left = sum(len(shards.range_of(shard)) for shard in shards.unfinished())
    with TranslationReport(
        Count(count, True), is_heard=processes.is_first, done=count - left
    ) as report:

        def make(shard: int) -> None:
            told = (
                translating.told(window, seen=report.advance)
                for window in opened.windows(shard)
            )
            first = shards.range_of(shard).start
            counted = report.counted(chain.from_iterable(told), first=first)
            shards.write(shard, counted)

        def make_all() -> None:
            for shard, is_mine in _shards_in_turn(shards, processes):
                if is_mine:
                    make(shard)
                else:  # Some other process has made it.
                    report.advance(len(shards.range_of(shard)))

        stage(processes, "shards translated", make_all)
        stage(
            processes, "shards joined", shards.join if processes.is_first else _nothing
        )


def _shards_in_turn(
    shards: OutputShards, processes: Processes
) -> Iterator[tuple[int, bool]]:
    """Yields every unfinished shard once: to be made here (True), or made elsewhere.

    Each process begins elsewhere, so that few of them want the same. What nobody has
    made and somebody has taken is asked for again, since that process may end.
    """
    left = shards.unfinished()
    start = processes.index * len(left) // processes.count
    left = left[start:] + left[:start]
    while left:
        made_here = None
        for shard in left:
            with shards.taken(shard) as is_mine:
                if is_mine:
                    yield shard, True
                    made_here = shard
                    break
        else:
            time.sleep(_WAIT)
        unfinished = set(shards.unfinished())
        for shard in left:
            if shard not in unfinished and shard != made_here:
                yield shard, False
        left = [shard for shard in left if shard in unfinished]


def _nothing() -> None:
    """Leaves it to the first process."""
