"""The attention kernel of a run: the configured one, if its devices have it."""

from __future__ import annotations

import dataclasses

from jax.sharding import Mesh

from t2t_jax.config import Config
from t2t_jax.model.attention_kernels import resolve_attention
from t2t_jax.model.config import TransformerConfig


def choose_attention(config: Config, mesh: Mesh) -> tuple[Config, str]:
    """Replaces `model.attention` by what computes it on the devices of a mesh.

    Returns:
      The configuration, and a line on what was chosen; "" for what was asked for, and
      for "plain" if that was not specified.
    """
    network = config.network
    if not isinstance(network, TransformerConfig):
        return config, ""
    devices = mesh.devices.flatten().tolist()
    kernel, reason = resolve_attention(
        network,
        devices[0].platform,
        devices=devices,
        mesh=mesh.shape,
    )
    model = dataclasses.replace(config.model, attention=kernel)
    chosen = dataclasses.replace(config, model=model)
    if kernel == network.attention or (kernel == "plain" and not reason):
        return chosen, ""
    since = f", since {reason}" if reason else ""
    return chosen, f"model.attention={network.attention}: {kernel} is used{since}."
