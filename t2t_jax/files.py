"""Files that are there whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

VISIBLE_SECONDS = 60.0
"""How long a network file system may go on showing a directory as it was."""


def write_whole(path: Path, content: bytes | str) -> None:
    """Writes a file beside its place and renames it there.

    Whoever reads `path` meanwhile, or after a crash, finds the old content or the new.

    Args:
      path: the file to make or to replace; its directory exists.
      content: bytes, or text to be written as UTF-8.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(content.encode() if isinstance(content, str) else content)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
