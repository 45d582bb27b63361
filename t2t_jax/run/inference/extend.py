"""Adds a language to a model: a tag, pieces of its text, and rows of matrices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

from t2t_jax.data.line_arguments import as_directory, as_lines
from t2t_jax.data.vocabulary.extension import Extension, extend_vocabulary
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.devices.sharding.rules import path_of
from t2t_jax.errors import UserError
from t2t_jax.run.inference.load import load
from t2t_jax.run.inference.model_dir import check_new_dir, write_model
from t2t_jax.run.inference.provenance import changed_origin, provenance_of
from t2t_jax.run.workdir import Workdir
from t2t_jax.types import Params

_MATRIX = re.compile(r"(^|/)(\w*embedding|pre_softmax)/(table|bias)$")


def extend_model(
    directory: str | Path,
    to: str | Path,
    *,
    language: str,
    like: str,
    lines: Sequence[str] = (),
    pieces: int = 0,
    kept: Sequence[str] = (),
    checkpoint: str | int = "best",
) -> Extension:
    """Writes a model with one more language, to be trained on its text.

    Its tag begins as that of another language, and the row of a new piece as the mean
    of the rows of the pieces that it was split into. Other rows stay, so text that has
    no new piece is read as before.

    Args:
      directory: of a run or a model whose vocabulary has tags of languages.
      to: directory to create.
      language, like, lines, pieces, kept: as of `extend_vocabulary`.
      checkpoint: as of `t2t_jax.load`.

    Returns:
      The new vocabulary, and with what its rows begin.

    Raises:
      OutputError: `to` is not empty, or cannot be created.
      InputMissingError, DataError: the directory is not that of a model, or damaged.
      UserError: source and target have different vocabularies; or as
        `extend_vocabulary`.
    """
    workdir = Workdir(as_directory(directory, caller="extend_model"))
    target = as_directory(to, caller="extend_model")
    check_new_dir(workdir, target)
    model = load(workdir.path, checkpoint=checkpoint)
    if not (both := model.vocabularies).shared:
        raise UserError(
            f"{workdir.path} has a vocabulary for each side, and a language can only "
            "be added to one that both share. Choose another model."
        )
    text, words = (as_lines(some, caller="extend_model") for some in (lines, kept))
    extension = extend_vocabulary(
        both.target, language, like=like, lines=text, pieces=pieces, kept=words
    )
    config, size = workdir.read_config(), extension.vocabulary.size
    vocabulary = replace(config.vocabulary, size=size)
    config = replace(config, vocabulary=vocabulary).with_network(vocab_size=size)
    origin = changed_origin(provenance_of(workdir, model.step), "extended")
    params = with_rows(model.params, extension.rows)
    both = VocabularyPair(*[extension.vocabulary] * 2)
    extended = replace(model, params=params, vocabularies=both)
    write_model(target, extended, config=config, origin=origin)
    return extension


def with_rows(params: Params, rows: Sequence[Sequence[int]]) -> Params:
    """Makes the matrices of another vocabulary, and its bias of the logits.

    Args:
      rows: of each new row, the old rows whose mean it is.
    """
    first = [ids[0] for ids in rows]
    means = {number: list(ids) for number, ids in enumerate(rows) if len(ids) > 1}

    def extended(path: tuple[object, ...], leaf: jax.Array) -> Any:
        if not _MATRIX.search(path_of(path)):
            return leaf
        old = np.asarray(leaf)
        new = old[first]
        for number, ids in means.items():
            new[number] = old[ids].mean(axis=0)
        return new

    return jax.tree_util.tree_map_with_path(extended, params)
