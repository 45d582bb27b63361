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
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

from t2t_jax.errors import DataError, InputMissingError, UserError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""What some programs write before UTF-8; it is not part of the first line."""

_MOST_LISTED = 20
_MOST_NUMBERS = 5

# Of UTF-32 before UTF-16, whose mark is the beginning of the other's.
_FORMATS = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
    b"\x1f\x8b\x08": "gzip",
}


@dataclass
class _Fault:
    """One message, of one line or of several with the same fault."""

    location: str
    rest: str
    advice: str = ""
    count: int = 1
    numbers: list[int] = field(default_factory=list)

    def message(self) -> str:
        if self.count == 1:
            return f"{self.location}{self.rest}{self.advice}"
        # Full stops go behind the lines.
        numbers = ", ".join(map(str, self.numbers))
        more = ", …" if self.count - 1 > len(self.numbers) else ""
        lines = f"line{'s' * (self.count > 2)} ({numbers}{more})"
        rest = self.rest.removesuffix(".")
        return (
            f"{self.location}{rest}; the same fault in {self.count - 1:,} more "
            f"{lines}.{self.advice}"
        )


class LineProblems:
    """Collects what is wrong with text: a message for all lines with the same fault.

    Twenty messages are listed, and the rest is counted.

    Example:
      >>> problems = LineProblems()
      >>> for line in range(1, 24):
      ...     problems.add_line("news.de", line, "holds a NUL byte.", "Remove it.")
      >>> problems.found, problems.count
      (['news.de:1: holds a NUL byte; the same fault in 22 more lines
      (2, 3, 4, 5, 6, …). Remove it.'], 23)
    """

    def __init__(self) -> None:
        self._faults: list[_Fault] = []
        self._by_kind: dict[tuple[str, str], _Fault] = {}
        self.count = 0
        self.cut_short = False

    @property
    def found(self) -> list[str]:
        """The first twenty messages."""
        return [fault.message() for fault in self._faults[:_MOST_LISTED]]

    def add(self, message: str) -> None:
        """Adds a message; those past the twentieth are only counted."""
        self.count += 1
        if len(self._faults) < _MOST_LISTED:
            self._faults.append(_Fault("", message))

    def add_line(
        self,
        name: str,
        number: int,
        fault: str,
        advice: str = "",
        *,
        detail: str = "",
        location: str = "",
    ) -> None:
        """Adds the fault of a line, to the message of those before that have it too.

        Args:
          number: of the line, from 1.
          fault: what is wrong, with a full stop; the same for lines that go together.
          advice: what the user can do, a sentence.
          detail: what is particular to this line, in place of `fault`.
          location: what is written in place of `name:number`.
        """
        self.count += 1
        known = self._by_kind.get((name, fault))
        if known is not None:
            known.count += 1
            if len(known.numbers) < _MOST_NUMBERS:
                known.numbers.append(number)
        elif len(self._faults) < _MOST_LISTED:
            new = _Fault(
                f"{location or f'{name}:{number}'}: ",
                detail or fault,
                advice and f" {advice}",
            )
            self._faults.append(new)
            self._by_kind[name, fault] = new

    def raise_if_any(self, error: type[UserError] = DataError) -> None:
        """Raises one `error` with the listed messages, unless all is well."""
        if self.count:
            listed = sum(fault.count for fault in self._faults)
            raise error(self.found, unlisted=self.count - listed)


def foreign_format(head: bytes) -> str:
    r"""Recognizes text that is not UTF-8 by its first bytes.

    Args:
      head: the first line of a file, or its beginning.

    Returns:
      UTF-16, UTF-16LE or -BE where it has no byte order mark, UTF-32, gzip; "" for
      everything else.

    Example:
      >>> foreign_format("ab".encode("utf-16")), foreign_format(b"a\0b\0c\0d\0\n")
      ('UTF-16', 'UTF-16LE')
    """
    if name := marked_format(head):
        return name
    # Latin letters have a zero byte each in UTF-16; text in UTF-8 has none.
    zeros = [head[start::2].count(0) for start in (0, 1)]
    if sum(zeros) * 4 > len(head) > 3 and min(zeros) == 0:
        return "UTF-16BE" if zeros[0] else "UTF-16LE"
    return ""


def marked_format(head: bytes) -> str:
    """Recognizes what is certainly not UTF-8: a mark stands where the file begins.

    Returns:
      UTF-16, UTF-32, gzip; "" for everything else.
    """
    return next((name for mark, name in _FORMATS.items() if head.startswith(mark)), "")


def conversion(encoding: str, name: str) -> str:
    """Says how to make UTF-8 of a file, a sentence.

    Args:
      encoding: from `foreign_format`.
      name: of the file; "" where it has none.
    """
    if encoding == "gzip":
        return "Rename it to end in .gz, or unpack it."
    return f"Convert it to UTF-8: iconv -f {encoding} -t UTF-8 {name or 'OLD'} > NEW"


def require_files(*paths: str | Path, change: str = "the path") -> None:
    """Checks that every path is a regular file that opens.

    Pipes are refused too: training reads its text more than once.

    Args:
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
                    line = line.removeprefix(BYTE_ORDER_MARK)
                    if encoding := foreign_format(line):
                        advice = conversion(encoding, name)
                        problems.add(f"{name}: is {encoding} and not UTF-8. {advice}")
                        problems.cut_short = True
                        return
                yield _decode(line, name, number, problems)
    except GZIP_ERRORS as error:
        problems.add(f"{name}:{number + 1}: broken gzip: {gzip_fault(error)}.")
        problems.cut_short = True
    except OSError as error:
        raise InputMissingError(
            f"{name}:{number + 1}: cannot be read ({error.strerror})."
        ) from error


GZIP_ERRORS = (EOFError, zlib.error, gzip.BadGzipFile)
"""What reading a .gz file raises where it is not what gzip has written."""


def gzip_fault(error: Exception) -> str:
    """Says what is wrong with a .gz file, and what to do, in no words of Python's.

    Args:
      error: one of `GZIP_ERRORS`.

    Example:
      >>> gzip_fault(EOFError("Compressed file ended before the end-of-stream marker"))
      'it ends too early. Copy it again'
    """
    if isinstance(error, EOFError):
        return "it ends too early. Copy it again"
    if str(error).startswith("Not a gzipped file"):
        return "not a gzip file. Rename it without .gz, or copy it again"
    if str(error).startswith("CRC check failed"):
        return "its checksum is wrong. Copy it again"
    return "its content is damaged. Copy it again"


def open_bytes(path: str | Path) -> IO[bytes]:
    """Opens a plain or .gz file, or standard input for "-"."""
    if str(path) == "-":
        # A duplicate, so that closing it leaves the process its standard input.
        return open(sys.stdin.fileno(), "rb", closefd=False)
    if str(path).endswith(".gz"):
        return cast(IO[bytes], gzip.open(path, "rb"))
    return open(path, "rb")


def _decode(line: bytes, name: str, number: int, problems: LineProblems) -> str | None:
    if line.endswith(b"\r\n"):
        line = line[:-2]
    elif line.endswith(b"\n"):
        line = line[:-1]
    if b"\0" in line:
        problems.add_line(name, number, "holds a NUL byte.", "Remove it.")
        return None
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        problems.add_line(
            name,
            number,
            "invalid UTF-8.",
            "Convert the file to UTF-8.",
            detail=f"invalid UTF-8 (byte {line[error.start]:#04x} in column "
            f"{error.start + 1}).",
        )
        return None
