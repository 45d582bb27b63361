"""Reads the weights of a MarianMTModel into this package's parameter tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from t2t_jax.checkpointing.safetensors_io import read_safetensors
from t2t_jax.errors import DataError, InputMissingError
from t2t_jax.exchange.importing.huggingface.settings import Settings
from t2t_jax.exchange.importing.huggingface.vocabulary import Ids
from t2t_jax.exchange.importing.layout import (
    Array,
    ParameterTree,
    interleaved_from_halves,
    read_stacks,
)
from t2t_jax.exchange.importing.source import Source
from t2t_jax.exchange.importing.torch_layers import ATTENTIONS, TorchLayers
from t2t_jax.exchange.readers.torch_file import read_torch_file
from t2t_jax.types import BOS, EOS, PAD, Params

WEIGHTS = ("model.safetensors", "pytorch_model.bin")

_SHARED, _HEAD, _BIAS = "model.shared.weight", "lm_head.weight", "final_logits_bias"
_STACKS = ("encoder", "decoder")


def find_weights(directory: Path) -> Path:
    """Returns the file of weights of a directory.

    Raises:
      InputMissingError: there is none.
    """
    for name in WEIGHTS:
        if (directory / name).exists():
            return directory / name
    raise InputMissingError(
        f"{directory} has neither {' nor '.join(WEIGHTS)}. Pass a complete model, in "
        "one file."
    )


def read_weights(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Reads all tensors of a file of weights, by name.

    Raises:
      DataError: the file is damaged, or has more than tensors.
      OSError: it cannot be read.
    """
    if path.name == WEIGHTS[0]:
        return read_safetensors(path)[0]
    found = read_torch_file(path)
    if not isinstance(found, dict):
        raise DataError(f"{path} has no tensors by name. Pass a state dict.")
    tensors = {
        name: one
        for name, one in found.items()
        if isinstance(name, str) and isinstance(one, np.ndarray)
    }
    if len(tensors) < len(found):
        raise DataError(f"{path} has more than tensors by name. Pass a state dict.")
    return tensors


class Matrices(NamedTuple):
    """The vocabulary matrices [V, D]; `output` is None if it is the target's."""

    source: Array
    target: Array
    output: Array | None
    bias: Array


def take_matrices(source: Source, settings: Settings) -> Matrices:
    """Takes the vocabulary matrices and the bias of the logits.

    Raises:
      DataError: one is missing or has another shape, or two that are tied differ.
    """
    stacks = [f"model.{stack}.embed_tokens.weight" for stack in _STACKS]
    d_model = settings.d_model
    target_shape = (settings.decoder_vocab_size, d_model)
    if settings.shared:
        rows = target = _take_equal(source, (_SHARED, *stacks, _HEAD), target_shape)
    else:
        rows = source.take(stacks[0], settings.vocab_size, d_model)
        equal = (stacks[1], _HEAD) if settings.tied else stacks[1:]
        target = _take_equal(source, equal, target_shape)
    bias = np.zeros(settings.decoder_vocab_size, np.float32)
    if _BIAS in source:
        bias = source.take(_BIAS, 1, settings.decoder_vocab_size)[0]
    output = None if settings.tied else source.take(_HEAD, *target_shape)
    return Matrices(rows, target, output, bias)


def _take_equal(source: Source, names: Sequence[str], shape: tuple[int, int]) -> Array:
    """Takes a matrix that may be stored under several names."""
    found = [source.take(name, *shape) for name in names if name in source]
    if not found:
        found = [source.take(names[0], *shape)]
    if not all(np.array_equal(found[0], other) for other in found):
        raise DataError(
            f"{', '.join(names)} must be one matrix by the configuration, and differ. "
            "Pass the files of one model."
        )
    return found[0]


def has_attention_biases(tensors: Mapping[str, npt.NDArray[Any]]) -> bool:
    """Returns whether any bias of an attention is not 0."""
    return any(
        one.any() for name, one in tensors.items() if name.endswith("_proj.bias")
    )


def build_params(
    source: Source,
    matrices: Matrices,
    *,
    settings: Settings,
    model: Mapping[str, Any],
    ids: tuple[Ids, Ids],
) -> Params:
    """Takes all other tensors, and returns the parameters of a `Transformer`.

    Args:
      model: values of `config.model`.
      ids: the foreign id of each of ours, of source and target.

    Raises:
      DataError: a tensor is missing or has another shape.
    """
    order = interleaved_from_halves(settings.d_model)
    tree = ParameterTree(num_heads=settings.num_heads, order=order)
    layers = TorchLayers(source, tree, model, prefix="model.")
    # Ours are 0 where the decoder has as many layers as the encoder.
    counts = {"num_decoder_layers": settings.decoder_layers, "norm_position": "post"}
    read_stacks(layers, {**model, **counts}, attentions=ATTENTIONS, final_norm="")
    if settings.shared:
        tree.add_table("embedding", matrices.target, ids=ids[1])
    else:
        tree.add_table("source_embedding", matrices.source, ids=ids[0])
        tree.add_table("target_embedding", matrices.target, ids=ids[1])
    output = "embedding" if settings.shared else "target_embedding"
    if matrices.output is not None:
        output = "pre_softmax"
        tree.add_table(output, matrices.output, ids=ids[1])
    if model["output_bias"]:
        # A second copy of a row would take probability.
        own = list(ids[1])
        if own[BOS] in (own[PAD], own[EOS]):
            own[BOS] = None
        tree.add_output_bias(output, matrices.bias, ids=own)
    return tree.params
