"""Attention weights of a few development sentences, small enough for a page."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from t2t_jax.evaluation.plots import label_of
from t2t_jax.types import BOS, EOS, Array

if TYPE_CHECKING:
    from flax import linen as nn

    from t2t_jax.data.vocabulary.pair import VocabularyPair
    from t2t_jax.types import Params

MAX_SENTENCES = 4
MAX_BYTES = 600_000
"""Of all weights, at a byte each; a third more in the page."""

_MAX_TOKENS = 40  # a side: more would be too small to see


def attention_of(
    module: nn.Module,
    params: Params,
    vocabularies: VocabularyPair,
    pairs: Iterable[tuple[str, str]],
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
    from t2t_jax.evaluation.attention_maps import attention_maps

    num_bytes = num_sentences = 0
    for text, translation in pairs:
        source = [
            *vocabularies.source.encode_sources([text], target_language="")[0],
            EOS,
        ]
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
    return {
        "shape": list(weights.shape),
        "weights": base64.b64encode(steps.tobytes()).decode(),
    }
