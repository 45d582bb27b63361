"""Zip archives without compression, as torch and Marian write them."""

from __future__ import annotations

import errno
import io
import struct
import zipfile
import zlib
from typing import IO

BAD_ZIP_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, struct.error, EOFError, LookupError),
    *(NotImplementedError, RuntimeError, ValueError),
)
"""What `StoredZip` raises for damaged archives."""


class StoredZip(zipfile.ZipFile):
    """An archive whose members take no more bytes than the file has.

    Compressed or overlapping members could take any amount of memory.

    Raises:
      BAD_ZIP_ERRORS: the archive is damaged or compressed.
    """

    def __init__(self, file: IO[bytes]):
        super().__init__(file)
        self.sizes = {member.filename: member.file_size for member in self.infolist()}
        if sum(member.file_size for member in self.infolist()) > _size_of(file):
            raise zipfile.BadZipFile("its members overlap, or are compressed")

    def read_member(self, name: str, *, most: int | None = None) -> bytes:
        """Returns the content of a member of at most `most` bytes."""
        if most is not None and self.sizes[name] > most:
            raise zipfile.BadZipFile(f"{name} has {self.sizes[name]:,} bytes")
        try:
            return self.read(name)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            raise zipfile.BadZipFile("a member is outside of the file") from error


def _size_of(file: IO[bytes]) -> int:
    return file.seek(0, io.SEEK_END)
