"""A model directory: a model to be used, without the run that it comes from.

It has the layout of a run's workdir, so that whatever reads the one reads the other.
"""

from __future__ import annotations

import os
import shutil
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from t2t_jax.checkpointing.safetensors_io import write_safetensors
from t2t_jax.checkpointing.step_dirs import SAFETENSORS
from t2t_jax.checkpointing.writer import CheckpointWriter
from t2t_jax.config import Config, to_dict
from t2t_jax.data.token_cache.known_words import FILE, KnownWords
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.errors import OutputError
from t2t_jax.files import atomic_write
from t2t_jax.run.workdir import Workdir, require_outside_runs
from t2t_jax.types import Params


def save_model_dir(
    to: Path,
    params: Params,
    *,
    vocabularies: VocabularyPair,
    config: Config,
    origin: Mapping[str, Any],
    known_words: KnownWords | None = None,
    as_safetensors: bool = False,
) -> None:
    """Writes a model with its configuration and its vocabulary.

    Args:
      to: the directory, made where there is none.
      params: nested dict of float32 arrays.
      vocabularies: from text to subwords and back.
      config: what the model is, and how it translates.
      origin: JSON values that say where it comes from, `step` and `kinds` among them;
        `model.json`.
      known_words: the source words of its training text, if they are known.
      as_safetensors: whether the parameters go into one file that other programs read,
        instead of a checkpoint.

    Raises:
      OutputError: something is in the way.
      UserError: the package for that file is not installed.
    """
    target = Workdir(to)
    target.create()
    vocabularies.save(to)
    if known_words is not None:
        atomic_write(to / FILE, known_words.to_bytes())
    fingerprints = {"vocabulary": vocabularies.fingerprint}
    if as_safetensors:
        write_safetensors(to / SAFETENSORS, params)
    else:
        checkpoints = CheckpointWriter(target.checkpoints, keep=1)
        checkpoints.save(
            origin["step"],
            params=params,
            optimizer=None,
            meta={
                **origin,
                "config": to_dict(config),
                "fingerprints": fingerprints,
            },
            files=vocabularies.files,
        )
        checkpoints.wait()
    target.write_json("fingerprints.json", fingerprints)
    target.write_json("model.json", dict(origin))
    target.write_config(config)


@contextmanager
def atomic_directory(to: Path, *, flag: str) -> Iterator[Path]:
    """Makes a directory that takes its place when it is complete.

    A kill leaves nothing at the place itself, and of two that make it one is refused.

    Args:
      to: the directory, which must not exist or be empty.

    Yields:
      Where to write.

    Raises:
      OutputError: it cannot be made.
    """
    place = to.resolve()
    # Processes of several machines may write into one directory.
    beside = place.with_name(f".{place.name}.{socket.gethostname()}.{os.getpid()}")
    with _explained(to, flag):
        beside.mkdir(parents=True)
    try:
        yield beside
        with _explained(to, flag):
            os.rename(beside, place)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def _explained(to: Path, flag: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"--{flag}={to} must be a directory that can be made: {error.strerror}. "
            "Choose another."
        ) from error


def check_new_dir(workdir: Workdir, to: Path, *, flag: str = "to") -> None:
    """Checks that a model directory can be made here, before the work for it begins.

    Args:
      workdir: what the model is made from.

    Raises:
      OutputError: it holds something already, or lies among the run's checkpoints, or
        nothing can be made there.
    """
    if problem := _occupied(workdir, to):
        raise OutputError(
            f"--{flag}={to} cannot be written: it {problem}. Choose a new or empty "
            "directory."
        )
    require_outside_runs(to, flag=flag)
    try:
        near = next(place for place in (to, *to.resolve().parents) if place.exists())
        # Tried, for permissions do not tell: nobody makes anything in /proc.
        with TemporaryDirectory(prefix=".", dir=near):
            pass
    except OSError as error:
        raise OutputError(
            f"--{flag}={to} must be a directory that can be made, and cannot: "
            f"{error.strerror}. Choose another."
        ) from error


def _occupied(workdir: Workdir, to: Path) -> str:
    """Says what is in the way of a model directory, or "" for nothing."""
    if workdir.checkpoints.resolve() in [to.resolve(), *to.resolve().parents]:
        return "lies among the checkpoints of the run"
    if to.exists() and not to.is_dir():
        return "exists and is not a directory"
    return "exists and is not empty" if to.exists() and any(to.iterdir()) else ""
