"""Text files as lines: one rule for every mode that reads text.

A line ends at the byte LF and nowhere else. U+2028, U+0085, vertical tabs and lone
carriage returns occur inside the sentences of real corpora, and whoever splits there
loses the alignment of everything that follows.
"""

from __future__ import annotations

import gzip
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from t2t_jax.errors import DataError, InputMissingError, UserError

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MOST_LISTED = 20


class LineProblems:
    """Collects what is wrong with text, and lists the first twenty of it.

    Example:
      >>> problems = LineProblems()
      >>> for line in range(1, 24):
      ...     problems.add(f"news.de:{line}: holds a NUL byte.")
      >>> problems.found[0], len(problems.found), problems.count
      ('news.de:1: holds a NUL byte.', 20, 23)
    """

    def __init__(self) -> None:
        self.found: list[str] = []
        self.count = 0
        self.cut_short = False

    def add(self, message: str) -> None:
        """Notes a problem; those past the twentieth are only counted."""
        self.count += 1
        if self.count <= _MOST_LISTED:
            self.found.append(message)

    def raise_if_any(self, error: type[UserError] = DataError) -> None:
        """Raises one `error` with the listed messages, unless all is well."""
        if self.count:
            raise error(self.found, unlisted=self.count - len(self.found))


def require_files(*paths: str | Path, change: str = "the path") -> None:
    """Checks that every path is a regular file that opens.

    Pipes are refused too: training reads its text more than once.

    Args:
      *paths: the files.
      change: what the user is to change where one is not there.

    Raises:
      InputMissingError: for all the paths that are not.
    """
    problems = LineProblems()
    for path in map(Path, paths):
        try:
            if not path.exists():
                problems.add(f"{path}: no such file. Change {change}.")
            elif not path.is_file():
                problems.add(f"{path}: must be a file, and is not. Change {change}.")
            else:
                path.open("rb").close()
        except OSError as error:
            problems.add(f"{path}: cannot be read ({error.strerror}).")
    problems.raise_if_any(InputMissingError)


def read_lines(path: str | Path) -> Iterator[str]:
    """Reads text line by line, without line ends.

    Args:
      path: a plain or .gz file; "-" is standard input.

    Yields:
      Every line, empty ones too; an empty file has none. From the first broken line
      on nothing more is yielded: the rest is only searched for further problems
      (standard input is not, as it may never end).

    Raises:
      DataError: invalid UTF-8, NUL bytes or broken gzip, with file and line.
      InputMissingError: the file is not there or cannot be read.
    """
    interactive = str(path) == "-"
    if not interactive:
        require_files(path)
    problems = LineProblems()
    for line in checked_lines(path, problems):
        if line is not None and not problems.count:
            yield line
        elif interactive:
            break
    problems.raise_if_any()


def checked_lines(path: str | Path, problems: LineProblems) -> Iterator[str | None]:
    """Reads text line by line, and notes what is wrong instead of raising it.

    Args:
      path: a plain or .gz file that is there; "-" is standard input.
      problems: where broken lines are noted; `cut_short` is set where the rest of
        the file cannot be read at all.

    Yields:
      Every line without its end, None for a broken one.

    Raises:
      InputMissingError: the device or the file system fails.
    """
    name = "standard input" if str(path) == "-" else str(path)
    number = 0
    try:
        with open_bytes(path) as file:
            for number, line in enumerate(file, start=1):
                if number == 1:
                    line = line.removeprefix(_BYTE_ORDER_MARK)
                yield _decode(line, f"{name}:{number}", problems)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        problems.add(f"{name}:{number + 1}: broken gzip ({error}).")
        problems.cut_short = True
    except OSError as error:
        raise InputMissingError(
            f"{name}:{number + 1}: cannot be read ({error.strerror})."
        ) from error


def open_bytes(path: str | Path) -> IO[bytes]:
    """Opens a plain or .gz file, or standard input for "-"."""
    if str(path) == "-":
        # A duplicate, so that closing it leaves the process its standard input.
        return open(sys.stdin.fileno(), "rb", closefd=False)
    if str(path).endswith(".gz"):
        return cast(IO[bytes], gzip.open(path, "rb"))
    return open(path, "rb")


def _decode(line: bytes, place: str, problems: LineProblems) -> str | None:
    if line.endswith(b"\r\n"):
        line = line[:-2]
    elif line.endswith(b"\n"):
        line = line[:-1]
    if b"\0" in line:
        problems.add(f"{place}: holds a NUL byte. Remove it.")
        return None
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        problems.add(
            f"{place}: invalid UTF-8 (byte {line[error.start]:#04x} in column "
            f"{error.start + 1}). Convert the file to UTF-8."
        )
        return None
