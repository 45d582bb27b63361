"""Reads text files line by line, with one rule for all modes.

A line ends at the byte LF and nowhere else. U+2028, U+0085, vertical tabs and lone
carriage returns occur inside the sentences of real corpora; splitting there would
misalign all that follows.
"""

from __future__ import annotations

import codecs
import gzip
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, cast

from t2t_jax.errors import DataError, InputMissingError, UserError
from t2t_jax.files import require_file

BYTE_ORDER_MARK = codecs.BOM_UTF8

GZIP_ERRORS = (EOFError, zlib.error, gzip.BadGzipFile)

MAX_LINE_BYTES = 1 << 20
"""Bytes of a line, with its end; memory is bounded while a line is read."""

_MAX_LISTED = 20
_MAX_NUMBERS = 5

# UTF-32 before UTF-16, whose byte order mark is a prefix of UTF-32's.
_MAGIC_NUMBERS = {
    "UTF-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
    "UTF-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
    "gzip": (b"\x1f\x8b\x08",),
}


class LineTooLongError(ValueError):
    """A line is longer than `MAX_LINE_BYTES`; has its number, from 1."""

    def __init__(self, number: int):
        fault = f"has over {MAX_LINE_BYTES:,} bytes, more than a line may have"
        super().__init__(f"{fault}. Split it into lines, or remove it.")
        self.number = number


@dataclass
class _Fault:
    """A message: its parts before and after the numbers of lines with the same fault.

    Attributes:
      count: lines with the fault, of which the numbers of a few after the first.
    """

    text: str
    advice: str
    count: int = 1
    numbers: list[str] = field(default_factory=list)

    def message(self) -> str:
        if not (more := self.count - 1):
            return self.text + self.advice
        text, dots = self.text.removesuffix("."), ", …" * (more > len(self.numbers))
        lines = f"line{'s' * (more > 1)} ({', '.join(self.numbers)}{dots})"
        return f"{text}; the same fault in {more:,} more {lines}.{self.advice}"


class LineProblems:
    """Collects faults of text, one message for all lines with the same fault.

    Example:
      >>> problems = LineProblems()
      >>> for line in range(1, 24):
      ...     problems.add_line("news.de", line, "holds a NUL byte.", "Remove it.")
      >>> problems.found, problems.count
      (['news.de:1: holds a NUL byte; the same fault in 22 more lines
      (2, 3, 4, 5, 6, …). Remove it.'], 23)
    """

    def __init__(self) -> None:
        self._faults: dict[object, _Fault] = {}
        self.count = 0
        self.cut_short = False

    @property
    def found(self) -> list[str]:
        """The first twenty messages."""
        return [fault.message() for fault in self._faults.values()]

    def add(self, *messages: str) -> None:
        """Adds messages; after the twentieth only counts them."""
        for message in messages:
            self._add(object(), message, "", 0)  # never merged

    def add_line(
        self, name: str, number: int, fault: str, advice: str = "", *, shown: str = ""
    ) -> None:
        """Adds the fault of a line, merged with earlier lines of the same fault.

        Args:
          fault: with a full stop; equal for lines to be merged.
          advice: a sentence.
          shown: replaces `name:number: fault` in the message of the first line.
        """
        text = shown or f"{name}:{number}: {fault}"
        self._add((name, fault), text, advice and f" {advice}", number)

    def _add(self, kind: object, text: str, advice: str, number: int) -> None:
        self.count += 1
        if known := self._faults.get(kind):
            known.count += 1
            if len(known.numbers) < _MAX_NUMBERS:
                known.numbers.append(str(number))
        elif len(self._faults) < _MAX_LISTED:
            self._faults[kind] = _Fault(text, advice)

    def raise_if_any(self, error: type[UserError] = DataError) -> None:
        """Raises one `error` with the listed messages, if there are any."""
        if self.count:
            listed = sum(fault.count for fault in self._faults.values())
            raise error(self.found, unlisted=self.count - listed)


def foreign_format(head: bytes) -> str:
    r"""Detects text that is not UTF-8 by its first bytes.

    Returns:
      UTF-16, UTF-16LE or -BE without a byte order mark, UTF-32, gzip; "" otherwise.

    Example:
      >>> foreign_format("ab".encode("utf-16")), foreign_format(b"a\0b\0c\0d\0\n")
      ('UTF-16', 'UTF-16LE')
    """
    if name := _format_by_magic_number(head):
        return name
    # Latin letters have a zero byte each in UTF-16; text in UTF-8 has none.
    zeros = [head[start::2].count(0) for start in (0, 1)]
    if sum(zeros) * 4 > len(head) > 3 and min(zeros) == 0:
        return "UTF-16BE" if zeros[0] else "UTF-16LE"
    return ""


def _format_by_magic_number(head: bytes) -> str:
    """Detects UTF-16, UTF-32 and gzip by their magic number; "" otherwise."""
    return next((n for n, x in _MAGIC_NUMBERS.items() if head.startswith(x)), "")


def _conversion_advice(encoding: str, name: str) -> str:
    """Advises how to convert a file, which may have no name, to UTF-8."""
    if encoding == "gzip":
        return "Rename it to end in .gz, or unpack it."
    return f"Convert it to UTF-8: iconv -f {encoding} -t UTF-8 {name or 'OLD'} > NEW"


def require_files(*paths: str | Path, change: str = "the path") -> None:
    """Checks that every path is a regular file that opens.

    Pipes are refused: training reads its text more than once.

    Args:
      change: what to change if a file is missing, for the message.

    Raises:
      InputMissingError: some paths are not; one message each.
    """
    problems = LineProblems()
    for path in map(Path, paths):
        try:
            require_file(path, advice=f"Change {change}.")
            path.open("rb").close()
        except (FileNotFoundError, NotADirectoryError):
            problems.add(f"{path}: no such file. Change {change}.")
        except DataError as error:
            problems.add(str(error))
        except OSError as error:
            problems.add(f"{path}: cannot be read ({error.strerror}).")
    problems.raise_if_any(InputMissingError)


def read_lines(path: str | Path) -> Iterator[str]:
    """Reads text line by line, without line ends.

    Args:
      path: a plain or .gz file; "-" is standard input.

    Yields:
      Every line, empty ones too, until the first broken one. The rest of a file is then
      searched for further faults.

    Raises:
      DataError: invalid UTF-8, NUL bytes, a line that is too long, or broken gzip, with
        file and line.
      InputMissingError: the file does not exist or cannot be read.
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
    """Reads text line by line and collects faults instead of raising.

    Args:
      path: an existing plain or .gz file; "-" is standard input.
      problems: as for `decode_lines`.

    Yields:
      Every line without its end, None for a broken one.

    Raises:
      InputMissingError: the device or the file system fails.
    """
    name = "standard input" if str(path) == "-" else str(path)
    try:
        with open_bytes(path) as file:
            yield from decode_lines(bounded_lines(file), name, problems)
    except OSError as error:
        fault = f"{name}: cannot be read ({error.strerror})."
        raise InputMissingError(fault) from error


def decode_lines(
    lines: Iterable[bytes],
    name: str,
    problems: LineProblems,
    *,
    file: str = "",
    warn: Callable[[str], object] | None = None,
) -> Iterator[str | None]:
    """Decodes the lines of a file, from its first line, without a byte order mark.

    Args:
      name: of the file, for messages.
      problems: gets the faults; `cut_short` is set if the rest cannot be read.
      file: its path, if that is not its name; "-" is standard input.
      warn: None for text that must be UTF-8 without NUL bytes. Otherwise invalid bytes
        become lone surrogates, and it gets a message if the text looks like UTF-16.

    Yields:
      Every line without its end, None for a broken one.
    """
    number = 0
    try:
        for number, line in enumerate(lines, start=1):
            if number == 1:
                line = line.removeprefix(BYTE_ORDER_MARK)
                if encoding := foreign_format(line):
                    path = "" if file == "-" else file or name
                    advice = _conversion_advice(encoding, path)
                    fault = f"{name}: is {encoding} and not UTF-8. {advice}"
                    if warn is None or _format_by_magic_number(line):
                        problems.add(fault)
                        problems.cut_short = True
                        return
                    warn(fault)
            yield decode_line(line) if warn else _decode(line, name, number, problems)
    except (*GZIP_ERRORS, LineTooLongError) as error:
        is_long = isinstance(error, LineTooLongError)
        fault = str(error) if is_long else f"broken gzip: {gzip_fault(error)}."
        problems.add(f"{name}:{number + 1}: {fault}")
        problems.cut_short = True


def decode_line(line: bytes) -> str:
    r"""Decodes a line and strips its end; invalid bytes become lone surrogates.

    Example:
      >>> decode_line(b"A dog.\r\n"), decode_line(b"\xff\n")
      ('A dog.', '\udcff')
    """
    text = line.removesuffix(b"\n").removesuffix(b"\r")
    return text.decode("utf-8", errors="surrogateescape")


def bounded_lines(file: IO[bytes]) -> Iterator[bytes]:
    """Yields the lines of a file with their ends, from the present position.

    Raises:
      LineTooLongError: a line is longer than `MAX_LINE_BYTES`.
    """
    read = partial(file.readline, MAX_LINE_BYTES + 1)
    for number, line in enumerate(iter(read, b""), start=1):
        if len(line) > MAX_LINE_BYTES:
            raise LineTooLongError(number)
        yield line


def gzip_fault(error: Exception) -> str:
    """Describes one of `GZIP_ERRORS` and the fix, without Python's wording.

    Example:
      >>> gzip_fault(EOFError("Compressed file ended before the end-of-stream marker"))
      'it ends too early. Copy it again'
    """
    if str(error).startswith("Not a gzipped file"):
        return "not a gzip file. Rename it without .gz, or copy it again"
    fault = "its content is damaged"
    if isinstance(error, EOFError):
        fault = "it ends too early"
    elif str(error).startswith("CRC check failed"):
        fault = "its checksum is wrong"
    return f"{fault}. Copy it again"


def open_bytes(path: str | Path) -> IO[bytes]:
    """Opens a plain or .gz file, or standard input for "-"."""
    if str(path) == "-":
        # closefd=False keeps the process's standard input open.
        return open(sys.stdin.fileno(), "rb", closefd=False)
    if str(path).endswith(".gz"):
        return cast(IO[bytes], gzip.open(path, "rb"))
    return open(path, "rb")


def _decode(line: bytes, name: str, number: int, problems: LineProblems) -> str | None:
    if line.endswith(b"\n"):
        line = line[:-1].removesuffix(b"\r")
    if b"\0" in line:
        problems.add_line(name, number, "holds a NUL byte.", "Remove it.")
        return None
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        place = f"byte {line[error.start]:#04x} in column {error.start + 1}"
        fault, advice = "invalid UTF-8.", "Convert the file to UTF-8."
        shown = f"{name}:{number}: invalid UTF-8 ({place})."
        problems.add_line(name, number, fault, advice, shown=shown)
        return None
