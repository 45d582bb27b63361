"""Paths of a run's text: absolute, so that every later command works from anywhere.

What leaves with an export has the names of the files alone.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Callable
from functools import partial
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
    return _with_sides(spec, partial(_absolute_side, directory=directory))


def without_folders(config: Config) -> Config:
    """Returns a configuration that tells no folder of the machine it was trained on."""
    data: dict[str, Any] = {
        name: spec_of_names(getattr(config.data, name))
        for name in ("train", "dev", "held_out")
    }
    files: dict[str, Any] = {
        name: os.path.basename(getattr(config.vocabulary, name))
        for name in ("file", "source_file")
    }
    return dataclasses.replace(
        config,
        data=dataclasses.replace(config.data, **data, cache_dir=""),
        vocabulary=dataclasses.replace(config.vocabulary, **files),
        init_from=os.path.basename(config.init_from.rstrip("/")),
    )


def spec_of_names(spec: str) -> str:
    """Leaves out the folders of a spec's files.

    Example:
      >>> spec_of_names("2*text:/home/me/a.en+/b.en,/a.de+~/b.de[9:]++tsv:../x#3,1")
      '2*text:a.en+b.en,a.de+b.de[9:]++tsv:x#3,1'
    """
    return _with_sides(spec, _side_of_names)


def _with_sides(spec: str, change: Callable[[str], str]) -> str:
    """Changes the file names of a spec, one side at a time."""
    parts = split_spec(spec)
    for number, part in enumerate(parts):
        if found := _FILES.fullmatch(part):
            files = ",".join(map(change, found["files"].split(",")))
            parts[number] = f"{found['before']}{files}{found['after']}"
    return "++".join(parts)


def _side_of_names(side: str) -> str:
    names = [side] if os.path.isfile(side) else side.split("+")
    return "+".join(map(os.path.basename, names))


def _absolute_side(side: str, *, directory: str) -> str:
    # One name may have a + in it.
    is_one = os.path.isfile(os.path.join(directory, side))
    names = [side] if is_one else side.split("+")
    return "+".join(
        os.path.normpath(os.path.join(directory, name))
        if name and name[0] not in "/~$"
        else name
        for name in names
    )
