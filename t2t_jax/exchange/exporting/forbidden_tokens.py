"""Puts what a search never generates into weights, for programs that forbid nothing."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np

from t2t_jax.exchange.exporting.base import Original
from t2t_jax.model.architectures import make_module
from t2t_jax.types import BOS, PAD, UNK

# A logit whose exponential is 0 in float32. Not -inf, which quantization cannot scale.
_NO_PROBABILITY = -200.0


def without_forbidden_tokens(original: Original, *, unk: bool = True) -> Original:
    """Returns a model that gives no probability to what the search never generates.

    Its output bias excludes pad and bos, and unk with `decoding.allow_unk=false`. The
    probabilities of the other tokens keep their ratios, so that greedy outputs are the
    same.

    Args:
      unk: whether to exclude unk; False if its readers have an option for it.
    """
    model, config = original.model, original.config
    forbidden = [PAD, BOS] + [UNK] * (unk and not config.decoding.allow_unk)
    params = jax.tree.map(np.array, model.params)
    names = ("pre_softmax", "target_embedding", "embedding")
    output = params[next(name for name in names if name in params)]
    output.setdefault("bias", np.zeros(len(output["table"]), np.float32))
    output["bias"][forbidden] = _NO_PROBABILITY
    network = dataclasses.replace(config.model, output_bias=True)
    exact = dataclasses.replace(network, compute_dtype="float32")
    return original._replace(
        model=dataclasses.replace(model, params=params, module=make_module(exact)),
        config=dataclasses.replace(config, model=network),
    )
