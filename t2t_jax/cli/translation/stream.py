"""Reads a stream of lines in groups of those that are available."""

from __future__ import annotations

from collections.abc import Iterator
from queue import Queue
from threading import Thread
from typing import IO, TypeAlias

from t2t_jax.cli.console.text_io import (
    decode_lines,
    io_errors_as_user_errors,
    open_input,
)
from t2t_jax.data.files.lines import bounded_lines

_Waiting: TypeAlias = Queue[str | Exception | None]
"""Lines, then either the exception that ended reading, or None at the end of file."""


class LineStream(Iterator[list[str]]):
    """Yields groups of lines in order, each of the lines available at that time."""

    def __init__(self, waiting: _Waiting, most: int):
        self._waiting, self._groups = waiting, _groups(waiting, most)

    def has_next(self) -> bool:
        """Returns whether a line, or the end of the file, is available."""
        return not self._waiting.empty()

    def __next__(self) -> list[str]:
        return next(self._groups)


def stream_lines(name: str, *, most: int, strict: bool = False) -> LineStream:
    """Reads lines in a thread, at most `most` lines ahead, and groups them.

    Returns:
      An iterator over groups of 1 to `most` lines, decoded as by `read_stdin_or_file`.
      It blocks only while no line is available; read errors are raised after the lines
      before them.

    Raises:
      InputMissingError: the file does not exist or cannot be opened.
    """
    with io_errors_as_user_errors(name):
        file = open_input(name)
    waiting: _Waiting = Queue(most)
    # A daemon, so that a blocked read does not keep the process alive.
    Thread(target=_read_into, args=(waiting, file, name, strict), daemon=True).start()
    return LineStream(waiting, most)


def _read_into(waiting: _Waiting, file: IO[bytes], name: str, strict: bool) -> None:
    end: Exception | None = None
    try:
        with io_errors_as_user_errors(name), file:
            for line in decode_lines(bounded_lines(file), name, strict=strict):
                waiting.put(line)
    except Exception as error:  # Any: the consumer would wait forever.
        end = error
    waiting.put(end)


def _groups(waiting: _Waiting, most: int) -> Iterator[list[str]]:
    lines: list[str] = []
    while isinstance(item := waiting.get(), str):
        lines.append(item)
        if len(lines) == most or waiting.empty():
            yield lines
            lines = []
    if lines:
        yield lines
    if item is not None:
        raise item
