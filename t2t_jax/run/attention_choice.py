"""The attention kernel of a run: the configured one, if its devices have it."""

from __future__ import annotations

import dataclasses

from jax.sharding import Mesh

from t2t_jax.config import Config
from t2t_jax.model.attention_kernels import KernelChoice, resolve_attention
from t2t_jax.model.config import TransformerConfig


def choose_attention(config: Config, mesh: Mesh) -> tuple[Config, str]:
    """Replaces `model.attention` by what computes it on the devices of a mesh.

    Returns:
      The configuration, and a line on what was chosen; "" if it is what was asked for.
    """
    network = config.network
    if not isinstance(network, TransformerConfig) or network.attention == "plain":
        return config, ""
    choice = run_kernel(config, mesh)
    if choice.kernel == network.attention:
        return config, ""
    model = dataclasses.replace(config.model, attention=choice.kernel)
    reason = f", since {choice.reason}" if choice.reason else ""
    line = f"model.attention={network.attention}: {choice.kernel} is used{reason}."
    return dataclasses.replace(config, model=model), line


def run_kernel(config: Config, mesh: Mesh) -> KernelChoice:
    """Chooses the attention kernel of a run."""
    platform = mesh.devices.flat[0].platform
    in_one_part = mesh.shape["data"] == config.training.micro_batches == 1
    packs_rows = config.data.layout == "packed" and in_one_part
    return resolve_attention(config.network, platform, packs_rows=packs_rows)
