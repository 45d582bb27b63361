"""The attention kernel of a run: the configured one, if its devices have it."""

from __future__ import annotations

import dataclasses

from jax.sharding import Mesh

from t2t_jax.config import Config
from t2t_jax.functional.fused_attention import LENGTH_MULTIPLE
from t2t_jax.model.attention_kernels import resolve_attention
from t2t_jax.model.config import TransformerConfig


def choose_attention(config: Config, mesh: Mesh) -> tuple[Config, str]:
    """Replaces `model.attention` by what computes it on the devices of a mesh.

    "auto" that chooses no kernel stays, so that another machine may choose one.

    Returns:
      The configuration, and a line on what was chosen; "" if it stays.
    """
    network = config.network
    if not isinstance(network, TransformerConfig):
        return config, ""
    devices = mesh.devices.flatten().tolist()
    kernel, reason = resolve_attention(
        network, devices[0].platform, devices=devices, mesh=mesh.shape
    )
    data = config.data
    if kernel != "plain" and data.layout == "packed":
        if all(length % LENGTH_MULTIPLE for length in data.row_lengths):
            kernel, reason = "plain", ""
            if network.attention != "auto":
                reason = f"data.row_length={data.row_length} is no multiple of 128"
    if kernel == network.attention or (kernel == "plain" and not reason):
        return config, ""
    model = dataclasses.replace(config.model, attention=kernel)
    chosen = dataclasses.replace(config, model=model)
    since = f", since {reason}" if reason else ""
    return chosen, f"model.attention={network.attention}: {kernel} is used{since}."
