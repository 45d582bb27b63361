"""Attention weights of a sentence pair: the data of Figures 3 to 5 of the paper."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from t2t_jax.errors import UserError
from t2t_jax.functional.shapes import check_axes
from t2t_jax.model.architectures import sown_weights
from t2t_jax.model.config import decoder_layers
from t2t_jax.model.transformer import Transformer
from t2t_jax.types import PAD, Array, Params

_ATTENTION_PATHS = {
    "encoder": ("encoder", "self_attention"),
    "decoder": ("decoder", "self_attention"),
    "cross": ("decoder", "cross_attention"),
}

KINDS = tuple(_ATTENTION_PATHS)
"""The Transformer's three uses of attention (§3.2.3)."""


def attention_maps(
    module: nn.Module, params: Params, source: Array, target_inputs: Array
) -> dict[str, np.ndarray[Any, np.dtype[np.float32]]]:
    """Returns the attention weights of all layers and heads for a sentence pair.

    Args:
      module: a Transformer; layers are numbered as in its parameters, from 0.
      source: [S] integer tokens of one sentence, eos last.
      target_inputs: [T] integer decoder inputs, bos first.

    Returns:
      The weights of `encoder` self-attention, [N, H, S, S]; of `decoder`
      self-attention, [N, H, T, T], zero above the diagonal; of `cross`-attention, [N,
      H, T, S]. N are the layers of that stack. All float32; each row sums to 1.

    Raises:
      UserError: the module is not a Transformer.
      ValueError: a sentence is empty or contains padding, which attends to nothing.

    Paper: Figures 3, 4 and 5.
    """
    if not isinstance(module, Transformer):
        raise UserError(
            f"Attention maps need a Transformer, and this is a model of class "
            f"{type(module).__name__}. Load another model."
        )
    sentences = {"source": source, "target_inputs": target_inputs}
    for name, tokens in sentences.items():
        check_axes(**{name: (tokens, "L")})
        if not tokens.size or np.any(np.asarray(tokens) == PAD):
            raise ValueError(
                f"{name} must be the tokens of one sentence, at least one and none of "
                f"them pad={PAD}, not {np.asarray(tokens).tolist()}. Remove the "
                "padding."
            )
    maps = _weights(module, params, source[None], target_inputs[None])
    return {kind: np.asarray(maps[kind][:, 0]) for kind in KINDS}


@functools.partial(jax.jit, static_argnames="module")
def _weights(
    module: Transformer, params: Params, source_BxS: Array, target_inputs_BxT: Array
) -> dict[str, jax.Array]:
    """Returns the weights of every use, [N, B, H, Q, K]."""
    sown = sown_weights(module, {"params": params}, source_BxS, target_inputs_BxT)
    depths = {
        "encoder": module.config.num_layers,
        "decoder": decoder_layers(module.config),
    }
    return {
        kind: jnp.stack(
            [
                sown[stack][f"layer_{n}"][attention]["weights"][0]
                for n in range(depths[stack])
            ]
        )
        for kind, (stack, attention) in _ATTENTION_PATHS.items()
    }
