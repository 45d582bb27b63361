"""Attention weights of a sentence pair: the data of Figures 3 to 5 of the paper.

Those of a few pairs are made small enough for a page.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import linen as nn

from t2t_jax.data.batching.modifiers import Pair
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.errors import UserError
from t2t_jax.evaluation.plots import label_of
from t2t_jax.functional.shapes import check_axes
from t2t_jax.model.architectures import sown_weights
from t2t_jax.model.config import decoder_layers
from t2t_jax.model.transformer import Transformer
from t2t_jax.types import BOS, EOS, PAD, Array, Params

_ATTENTION_PATHS = {
    "encoder": ("encoder", "self_attention"),
    "decoder": ("decoder", "self_attention"),
    "cross": ("decoder", "cross_attention"),
}

KINDS = tuple(_ATTENTION_PATHS)
"""The Transformer's three uses of attention (§3.2.3)."""

MAX_SENTENCES = 4
MAX_BYTES = 600_000
"""Of all weights, at a byte each; a third more in the page."""

_MAX_TOKENS = 40  # a side: more would be too small to see


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
    for name, tokens in {"source": source, "target_inputs": target_inputs}.items():
        check_axes(**{name: (tokens, "L")})
        if not tokens.size or np.any(np.asarray(tokens) == PAD):
            raise ValueError(
                f"{name} must be the tokens of one sentence, none of them pad={PAD}, "
                f"not {np.asarray(tokens).tolist()}. Remove the padding."
            )
    maps = _weights(module, params, source[None], target_inputs[None])
    return {kind: np.asarray(maps[kind][:, 0]) for kind in KINDS}


@functools.partial(jax.jit, static_argnames="module")
def _weights(
    module: Transformer, params: Params, source_BxS: Array, target_inputs_BxT: Array
) -> dict[str, jax.Array]:
    """Returns the weights of every use, [N, B, H, Q, K]."""
    sown = sown_weights(module, {"params": params}, source_BxS, target_inputs_BxT)
    config = module.config
    depths = {"encoder": config.num_layers, "decoder": decoder_layers(config)}
    maps = {}
    for kind, (stack, attention) in _ATTENTION_PATHS.items():
        layers = (sown[stack][f"layer_{n}"] for n in range(depths[stack]))
        maps[kind] = jnp.stack([layer[attention]["weights"][0] for layer in layers])
    return maps


def attention_of(
    module: nn.Module,
    params: Params,
    vocabularies: VocabularyPair,
    pairs: Iterable[Pair],
) -> Iterator[dict[str, Any]]:
    """Computes the attention weights of sentence pairs, for the page's scripts.

    Sentences of more than 40 subwords are left out, and all that would exceed
    `MAX_BYTES` or `MAX_SENTENCES`.

    Args:
      pairs: a source sentence each, and the model's translation.

    Yields:
      JSON values of a sentence: its text and translation; the labels of its `source`
      tokens and `target` inputs; and for each kind of attention `shape`, [N, H, Q, K],
      and `weights`, one byte each (255 is 1) in base64.

    Raises:
      UserError: the module is not a Transformer.
    """
    num_bytes = num_sentences = 0
    for text, translation in pairs:
        (ids,) = vocabularies.source.encode_sources([text], target_language="")
        source = [*ids, EOS]
        target = [BOS, *vocabularies.target.encode([translation])[0]]
        if max(len(source), len(target)) > _MAX_TOKENS or len(source) < 2:
            continue
        maps = attention_maps(module, params, np.array(source), np.array(target))
        num_bytes += sum(weights.size for weights in maps.values())
        if num_bytes > MAX_BYTES:
            return
        num_sentences += 1
        yield {
            "text": text,
            "translation": translation,
            "source": list(map(label_of, vocabularies.source.pieces(source))),
            "target": list(map(label_of, vocabularies.target.pieces(target))),
            "maps": {kind: quantize(weights) for kind, weights in maps.items()},
        }
        if num_sentences == MAX_SENTENCES:
            return


def quantize(weights_NxHxQxK: Array) -> dict[str, Any]:
    """Rounds weights in [0, 1] to bytes, in base64.

    Example:
      >>> quantize(np.array([[[[0.0, 1.0]]]]))
      {'shape': [1, 1, 1, 2], 'weights': 'AP8='}
    """
    weights = np.asarray(weights_NxHxQxK, np.float32)
    steps = np.rint(np.clip(weights, 0.0, 1.0) * 255).astype(np.uint8)
    content = base64.b64encode(steps.tobytes()).decode()
    return {"shape": list(weights.shape), "weights": content}
