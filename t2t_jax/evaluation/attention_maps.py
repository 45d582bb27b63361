"""Where a Transformer looks: the numbers behind Figures 3 to 5 of the paper."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from t2t_jax.errors import UserError
from t2t_jax.functional.masks import PAD
from t2t_jax.functional.shapes import check_axes
from t2t_jax.model.transformer import Transformer
from t2t_jax.types import Array, Params

_PLACES = {
    "encoder": ("encoder", "self_attention"),
    "decoder": ("decoder", "self_attention"),
    "cross": ("decoder", "cross_attention"),
}

KINDS = tuple(_PLACES)
"""The Transformer's three uses of attention (§3.2.3), by the stack that looks."""


def attention_maps(
    module: nn.Module, params: Params, source: Array, target_inputs: Array
) -> dict[str, np.ndarray[Any, np.dtype[np.float32]]]:
    """Reads the weights of all layers and heads off one pass over a sentence pair.

    They are the weights that the ordinary model computes: it leaves them in its
    collection "intermediates" for whoever makes that mutable.

    Args:
      module: a Transformer; its layers are numbered as in its parameters, from 0.
      source: [S] integer tokens of one sentence, as the encoder reads them: eos last.
      target_inputs: [T] integer tokens, as the decoder reads them: bos first.

    Returns:
      The weights of `encoder` self-attention, [N, H, S, S]; of `decoder`
      self-attention, [N, H, T, T], zero for what comes later; of `cross`, what the
      decoder looks at in the source, [N, H, T, S]. All float32; each row sums to 1.

    Raises:
      UserError: the module is no Transformer.
      ValueError: there is no token, or there is padding, which looks nowhere.

    Paper:
      Figures 3, 4 and 5.

    Example:
      >>> from t2t_jax.model.config import TransformerConfig
      >>> config = TransformerConfig(
      ...     vocab_size=11, num_layers=1, d_model=4, d_ff=8, num_heads=2, d_k=2, d_v=2
      ... )
      >>> source, target_inputs = jnp.array([5, 7, 2]), jnp.array([1, 6, 8, 9])
      >>> model = Transformer(config)
      >>> params = model.init(jax.random.key(0), source[None], target_inputs[None])
      >>> maps = attention_maps(model, params["params"], source, target_inputs)
      >>> {kind: weights.shape for kind, weights in maps.items()}
      {'encoder': (1, 2, 3, 3), 'decoder': (1, 2, 4, 4), 'cross': (1, 2, 4, 3)}
    """
    if not isinstance(module, Transformer):
        raise UserError(
            f"Attention maps are read off a Transformer, and this is a model of class "
            f"{type(module).__name__}. Load another."
        )
    sentences = {"source": source, "target_inputs": target_inputs}
    for name, tokens in sentences.items():
        check_axes(**{name: (tokens, "L")})
        if not tokens.size or np.any(np.asarray(tokens) == PAD):
            raise ValueError(
                f"{name} must be the tokens of one sentence, at least one and none of "
                f"them pad={PAD}; it came as {np.asarray(tokens).tolist()}. Cut the "
                "padding off."
            )
    maps = _weights(module, params, source[None], target_inputs[None])
    return {kind: np.asarray(maps[kind][:, 0]) for kind in KINDS}


@functools.partial(jax.jit, static_argnames="module")
def _weights(
    module: Transformer, params: Params, source_BxS: Array, target_inputs_BxT: Array
) -> dict[str, jax.Array]:
    """Returns the weights of every use, [N, B, H, Q, K]."""
    _, collections = module.apply(
        {"params": params}, source_BxS, target_inputs_BxT, mutable=["intermediates"]
    )
    sown = collections["intermediates"]

    def stacked(stack: str, attention: str) -> jax.Array:
        # What is sown comes as a tuple, for a module may be called more than once.
        layers = [
            sown[stack][f"layer_{n}"][attention]["weights"][0]
            for n in range(module.config.num_layers)
        ]
        return jnp.stack(layers)

    return {kind: stacked(*place) for kind, place in _PLACES.items()}
