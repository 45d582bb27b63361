"""Distributes a translation job over several processes.

Process 0 reads, translates and writes as a single process does. It broadcasts each
window that it translates, and every process translates a share of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, islice
from typing import Protocol

from t2t_jax.cli.translation.job import TranslationJob
from t2t_jax.cli.translation.windows import LineWindow
from t2t_jax.distributed.processes import Processes, barrier


class TranslateWindow(Protocol):
    """Translates a window as `TranslationJob.translate_window` does."""

    def __call__(self, window: LineWindow, *, seen: Callable[[int], None]) -> list[str]:
        """Returns the output of each line."""


@contextmanager
def distributed(job: TranslationJob, processes: Processes) -> Iterator[TranslateWindow]:
    """Yields a function that translates a window on all processes.

    For process 0, while the others call `serve`; `job.translate_window` for a single
    process. If process 0 fails, the others end by its failure notice.
    """
    if processes.count == 1:
        yield job.translate_window
        return
    from t2t_jax.distributed.gather import broadcast_strings

    names = _window_names()

    def translate_window(
        window: LineWindow, *, seen: Callable[[int], None]
    ) -> list[str]:
        # The others wait for the header, as a collective operation could time out.
        has_beside = [window.prefixes is not None, window.terms is not None]
        header = json.dumps(
            [window.first, len(window.lines), job.has_full_batches, *has_beside]
        )
        processes.publish(next(names), header)
        beside = [*(window.prefixes or ()), *(window.terms or ())]
        broadcast_strings([*window.lines, *beside], processes)
        known = 0

        def estimate(number: int) -> None:
            nonlocal known
            known += number * processes.count  # the others are about as far
            seen(number * processes.count)

        output = _translate_shares(job, window, processes, seen=estimate)
        seen(len(window.lines) - known)
        return output

    yield translate_window
    processes.publish(next(names), "")


def serve(job: TranslationJob, processes: Processes) -> None:
    """Translates a share of each window of process 0, until it has no more."""
    from t2t_jax.distributed.gather import broadcast_strings

    names = _window_names()
    while header := processes.receive(next(names)):
        first, num_lines, has_full_batches, *has_beside = json.loads(header)
        if has_full_batches and not job.has_full_batches:
            job = job.with_full_batches()
        texts = broadcast_strings((), processes)
        lines, *beside = _split(texts, num_lines, has_beside)
        _translate_shares(job, LineWindow(first, lines or [], *beside), processes)


def _split(
    texts: list[str], num_lines: int, has_beside: list[bool]
) -> Iterator[list[str] | None]:
    """Yields the lines, and what is beside them, None for what there is not."""
    rest = iter(texts)
    for is_there in (True, *has_beside):
        yield list(islice(rest, num_lines)) if is_there else None


def _window_names() -> Iterator[str]:
    """Yields the names of the messages that announce windows."""
    return (f"window {number}" for number in count())


def _translate_shares(
    job: TranslationJob,
    window: LineWindow,
    processes: Processes,
    *,
    seen: Callable[[int], None] = lambda number: None,
) -> list[str]:
    """Translates a share on each process, and gathers the output of all."""
    from t2t_jax.distributed.gather import map_lines_across_processes

    def translate(share: list[str], start: int) -> list[str]:
        output = job.translate_window(window.part(start, share), seen=seen)
        # Gathering is a collective operation, too, and shares may take minutes.
        barrier(processes, f"translated from {window.first}")
        return output

    return map_lines_across_processes(translate, window.lines, processes)
