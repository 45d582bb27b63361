"""What is written down about a file that shards have become: of what, and its hash.

The shards are gone then; a job that came late would find nothing, and begin again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t2t_jax.errors import ConfigError, OutputError
from t2t_jax.files import read_object, write_whole

_MOST_LISTED = 5


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


def require_recorded(output: Path, made_of: Mapping[str, Any]) -> None:
    """Checks that a finished output, if there is one, is what this job would make.

    Args:
      output: as for `keep_record`.
      made_of: as for `keep_record`; what is not known yet is left out.

    Raises:
      ConfigError: the output was made with other settings or of other text.
      DataError: the record is damaged.
      OutputError: the output has been modified since it was written.
    """
    try:
        record = read_object(_place(output), mend="Remove it.")
        sha256 = _hash_of(output)
    except OSError:  # One of both is not there: nothing is finished.
        return
    was = record.get("made_of")
    if not isinstance(was, dict):
        was = {}
    if different := differences(was, made_of):
        raise ConfigError(
            f"{output} is complete and was made otherwise: {different}. Rerun the same "
            "command to keep it, choose another --output, or rerun without --resume "
            "to replace it."
        )
    if record.get("sha256") != sha256:
        raise OutputError(
            f"{output} has been modified since it was written. Choose another "
            "--output, or rerun without --resume to replace it."
        )


def differences(was: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Lists the settings that have changed, the first five of them.

    Args:
      was: JSON values by name, as recorded.
      now: the same of this job; names that are not in it are not compared.

    Example:
      >>> differences({"--shards": 2, "--format": ""}, {"--shards": 3})
      '--shards was 2 and is 3'
    """
    # As JSON gives it back: lists for tuples.
    values = json.loads(json.dumps(dict(now)))
    different = [
        f"{name} was {was.get(name)!r} and is {value!r}"
        for name, value in values.items()
        if was.get(name) != value
    ]
    more = len(different) - _MOST_LISTED
    listed = different[:_MOST_LISTED] + ([f"and {more} more"] if more > 0 else [])
    return ", ".join(listed)


def _place(output: Path) -> Path:
    return output.with_name(f"{output.name}.shards.json")


def _hash_of(output: Path) -> str:
    with output.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
