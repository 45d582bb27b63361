"""`--mode=translate --shards=N`: a job on a large file that goes on after a kill."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from t2t_jax.cli.console.text_io import resolve_output
from t2t_jax.cli.flags.options import Options
from t2t_jax.cli.processes.stages import (
    check_same_input,
    check_same_settings,
    run_stage,
    shared_settings,
)
from t2t_jax.cli.translation.job import (
    TranslationJob,
    load_translating,
    validate_options,
)
from t2t_jax.cli.translation.line_index import LineIndex
from t2t_jax.cli.translation.progress import TranslationProgress
from t2t_jax.cli.translation.shards import OutputShards
from t2t_jax.cli.translation.windows import LineWindow, check_line_counts, windows
from t2t_jax.data.files.line_counts import Count
from t2t_jax.distributed.processes import Processes
from t2t_jax.errors import InputMissingError, OutputError, UserError
from t2t_jax.files import SHARED_FS_TIMEOUT

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

    text: LineIndex
    prefixes: LineIndex | None
    shards: OutputShards
    settings: dict[str, Any]
    made_of: dict[str, Any]

    def windows(self, shard: int) -> Iterator[LineWindow]:
        """Reads the lines of a shard."""
        lines = self.shards.range_of(shard)
        text = self.text.read_range(lines.start, lines.stop)
        if self.prefixes is None:
            return windows(text, first=lines.start)
        prefixes = self.prefixes.read_range(lines.start, lines.stop)
        return windows(text, prefixes, first=lines.start)


def translate_shards(options: Options) -> None:
    """Translates `options.input`, each process a shard at a time.

    Raises:
      Ended: some process has failed. One alone raises what it has met.
      UserError: see above.
    """
    processes = options.processes
    opened = run_stage(processes, "opened", lambda: _opened(options))
    settings, shards = opened.settings, opened.shards
    run_stage(processes, "compared", lambda: check_same_settings(processes, settings))
    read = [side.sha256 for side in (opened.text, opened.prefixes) if side]
    name = f"--input={options.input}"
    run_stage(
        processes, "input compared", lambda: check_same_input(processes, name, read)
    )
    translating = load_translating(options)
    made_of = {**opened.made_of, **_described(translating)}

    def begin() -> None:
        if processes.is_first:
            shards.begin(made_of, resume=options.resume)

    run_stage(processes, "shards begun", begin)
    run_stage(processes, "shards seen", lambda: _require_seen(shards, made_of))
    _make_and_join(opened, translating, processes=processes)


def _opened(options: Options) -> _Opened:
    """Reads the input through, and looks at what is there of an earlier job."""
    if "-" in (options.input, options.output):
        raise UserError(
            "--shards needs an --input to read again and an --output to come back to, "
            "which are files. Name both."
        )
    validate_options(options)
    _require_file("input", options.input)
    _require_file("prefixes", options.prefixes)
    inputs = (options.input, options.prefixes)
    output = resolve_output(options.output, inputs=inputs)
    if output.exists() and not output.is_file():
        raise OutputError(
            f"--output={options.output} must be a file, since shards become one, and "
            "is none. Choose another, or leave --shards out."
        )
    strict = options.strict
    text, prefixes = LineIndex(options.input, strict=strict), None
    if options.prefixes:
        prefixes = LineIndex(options.prefixes, flag="prefixes", strict=strict)
        check_line_counts(prefixes.count, lines=text.count)
    settings = shared_settings(options)
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


def _described(translating: TranslationJob) -> dict[str, Any]:
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
    deadline = time.monotonic() + SHARED_FS_TIMEOUT
    # Another job may have joined all meanwhile.
    while not (shards.place.exists() or shards.is_merged(made_of)):
        if time.monotonic() > deadline:
            raise OutputError(
                f"{shards.place} must be on a file system that all processes share, "
                "and this one does not see it. Choose another --output."
            )
        time.sleep(_WAIT)
    shards.require(made_of, resume=True)


def _make_and_join(
    opened: _Opened, translating: TranslationJob, *, processes: Processes
) -> None:
    shards, count = opened.shards, opened.text.count
    left = sum(len(shards.range_of(shard)) for shard in shards.pending())
    with TranslationProgress(
        Count(count, True), is_heard=processes.is_first, done=count - left
    ) as report:

        def make(shard: int) -> None:
            told = (
                translating.translate_window(window, seen=report.advance)
                for window in opened.windows(shard)
            )
            first = shards.range_of(shard).start
            counted = report.count_statuses(chain.from_iterable(told), first=first)
            shards.write(shard, counted)

        def make_all() -> None:
            for shard, is_mine in _shards_in_turn(shards, processes):
                if is_mine:
                    make(shard)
                else:  # Some other process has made it.
                    report.advance(len(shards.range_of(shard)))

        run_stage(processes, "shards translated", make_all)
        run_stage(
            processes, "shards joined", shards.merge if processes.is_first else _nothing
        )


def _shards_in_turn(
    shards: OutputShards, processes: Processes
) -> Iterator[tuple[int, bool]]:
    """Yields every unfinished shard once: to be made here (True), or made elsewhere.

    Each process begins elsewhere, so that few of them want the same. What nobody has
    made and somebody has taken is asked for again, since that process may end.
    """
    left = shards.pending()
    start = processes.index * len(left) // processes.count
    left = left[start:] + left[:start]
    while left:
        made_here = None
        for shard in left:
            with shards.try_lock(shard) as is_mine:
                if is_mine:
                    yield shard, True
                    made_here = shard
                    break
        else:
            time.sleep(_WAIT)
        unfinished = set(shards.pending())
        for shard in left:
            if shard not in unfinished and shard != made_here:
                yield shard, False
        left = [shard for shard in left if shard in unfinished]


def _nothing() -> None:
    """Leaves it to the first process."""
