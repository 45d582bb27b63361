"""Absolute paths of a run's text, so that every later command works from anywhere."""

from __future__ import annotations

import dataclasses
import os
import re
from typing import Any

from t2t_jax.config import Config
from t2t_jax.data.corpora.open import split_spec

_FILES = re.compile(
    r"(?P<before>(?:[^:]*\*)?(?P<kind>text|tsv|trees):)(?P<files>.*?)"
    # The columns of a tsv file, which have a comma, and a slice.
    r"(?P<after>(?:#\d+,\d+)?(?:\[[^\[\]]*\])?)"
)
# In the name of a directory they would separate file names in a spec.
_SEPARATORS = set("+,:#*[]$~")


def with_absolute_text(config: Config) -> Config:
    """Returns a configuration whose corpora and first model have absolute paths.

    Relative paths are those of the working directory. Other keys stay as they are:
    `vocabulary.file` is read once.
    """
    data: dict[str, Any] = {
        name: absolute_spec(getattr(config.data, name), os.getcwd())
        for name in ("train", "dev", "held_out")
    }
    return dataclasses.replace(
        config,
        data=dataclasses.replace(config.data, **data),
        init_from=config.init_from and os.path.abspath(config.init_from),
    )


def absolute_spec(spec: str, directory: str) -> str:
    """Makes the paths of a spec absolute; those after `~` or `$NAME` stay.

    Nothing changes below a directory whose name has a character that separates the
    file names of a spec.

    Args:
      directory: an absolute path, which relative ones begin from.

    Example:
      >>> absolute_spec("2*text:a.en+/b.en,a.de+/b.de[9:]++tsv:../x#3,1", "/home/me")
      '2*text:/home/me/a.en+/b.en,/home/me/a.de+/b.de[9:]++tsv:/home/x#3,1'
    """
    if _SEPARATORS & set(directory):
        return spec
    return "++".join(_absolute_part(part, directory) for part in split_spec(spec))


def _absolute_part(part: str, directory: str) -> str:
    found = _FILES.fullmatch(part)
    if found is None:
        return part
    sides = found["files"].split(",")
    files = ",".join(_absolute_side(side, directory) for side in sides)
    return f"{found['before']}{files}{found['after']}"


def _absolute_side(side: str, directory: str) -> str:
    # One name may have a + in it.
    is_one = os.path.isfile(os.path.join(directory, side))
    names = [side] if is_one else side.split("+")
    return "+".join(
        os.path.normpath(os.path.join(directory, name))
        if name and name[0] not in "/~$"
        else name
        for name in names
    )
