"""What is written down about a file that shards have become: of what, and its hash.

The shards are gone then; a job that came late would find nothing, and begin again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t2t_jax.files import read_object, write_whole


def keep_record(output: Path, made_of: Mapping[str, Any]) -> None:
    """Writes down that a file is whole.

    Args:
      output: the file.
      made_of: JSON values by name: what it depends on.
    """
    told = {"made_of": dict(made_of), "sha256": _hash_of(output)}
    write_whole(_place(output), json.dumps(told, indent=1))


def is_recorded(output: Path, made_of: Mapping[str, Any]) -> bool:
    """Tells whether a file is there as it was written down, and made of just this.

    Args:
      output: as for `keep_record`.
      made_of: as for `keep_record`.

    Raises:
      DataError: the record is damaged.
    """
    try:
        record = read_object(_place(output), mend="Remove it.")
        # As JSON gives it back: lists for tuples.
        now = json.loads(json.dumps(dict(made_of)))
        return record.get("made_of") == now and record.get("sha256") == _hash_of(output)
    except OSError:  # One of both is not there.
        return False


def _place(output: Path) -> Path:
    return output.with_name(f"{output.name}.shards.json")


def _hash_of(output: Path) -> str:
    with output.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
