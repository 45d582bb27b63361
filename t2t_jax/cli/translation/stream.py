"""Lines that are translated as they come."""

from __future__ import annotations

from collections.abc import Iterator
from queue import Queue
from threading import Thread
from typing import IO, TypeAlias

from t2t_jax.cli.console.text_io import decoded, io_errors_as_user_errors, opened_input

_Waiting: TypeAlias = Queue[str | Exception | None]
"""Lines, and after the last one why there are no more; None is the end of the file."""


class LineStream(Iterator[list[str]]):
    """Groups of lines in their order, each of those that waited together."""

    def __init__(self, waiting: _Waiting, most: int):
        self._waiting, self._groups = waiting, _groups(waiting, most)

    def is_next_there(self) -> bool:
        """Tells whether a line waits, or the end does."""
        return not self._waiting.empty()

    def __next__(self) -> list[str]:
        return next(self._groups)


def stream_lines(name: str, *, most: int, strict: bool = False) -> LineStream:
    """Reads lines as they come, and hands out together those that wait.

    A thread begins to read at once. It reads no further ahead than `most` lines, so a
    file of any length takes little memory, and whoever writes into a pipe is held up.

    Args:
      name: of a plain or .gz file or a pipe, or `-` for stdin.
      strict: whether a line that is not UTF-8 is an error.

    Returns:
      An iterator over groups of 1 to `most` lines, in their order, made as those of
      `read_stdin_or_file`. It waits only where no line does, and raises what reading
      has met after the lines before that.

    Raises:
      InputMissingError: the file is not there or cannot be opened.
    """
    with io_errors_as_user_errors(name):
        file = opened_input(name)
    waiting: _Waiting = Queue(most)
    # A daemon: where nobody wants the lines any more, nobody waits for them either.
    Thread(target=_read_into, args=(waiting, file, name, strict), daemon=True).start()
    return LineStream(waiting, most)


def _read_into(waiting: _Waiting, file: IO[bytes], name: str, strict: bool) -> None:
    end: Exception | None = None
    try:
        with io_errors_as_user_errors(name), file:
            for line in decoded(file, name, strict=strict):
                waiting.put(line)
    except Exception as error:  # Whatever it is: who waits for lines must not for ever.
        end = error
    waiting.put(end)


def _groups(waiting: _Waiting, most: int) -> Iterator[list[str]]:
    lines: list[str] = []
    while isinstance(came := waiting.get(), str):
        lines.append(came)
        if len(lines) == most or waiting.empty():
            yield lines
            lines = []
    if lines:
        yield lines
    if came is not None:
        raise came
