"""Chooses the attention kernel of training, from the configuration and the devices."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax

from t2t_jax import jax_internals
from t2t_jax.devices.processor import resolve_compute_dtype
from t2t_jax.functional.fused_attention import MAX_DEPTH
from t2t_jax.model.config import ModelConfig, TransformerConfig

_AMPERE = (8, 0)
"""The compute capability of NVIDIA's GPUs from which cuDNN has the kernel."""


class KernelChoice(NamedTuple):
    """An attention kernel.

    Attributes:
      kernel: "plain", "cudnn" or "splash".
      reason: why it is not the one that was asked for; "" if it is.
    """

    kernel: str
    reason: str = ""


def resolve_attention(
    config: ModelConfig,
    platform: str,
    *,
    devices: Sequence[jax.Device] | None = None,
    mesh: Mapping[str, int] | None = None,
) -> KernelChoice:
    """Chooses the attention kernel of a model.

    Args:
      platform: of the devices, as in `jax.Device.platform`.
      devices: which the program is compiled for, present or not; None: the local ones.
      mesh: the size of each axis of the mesh; None: not known. Then "auto" is "plain",
        as JAX cannot map or split every kernel by itself.

    Example:
      >>> config = TransformerConfig(attention="cudnn")
      >>> resolve_attention(config, "cpu")
      KernelChoice(kernel='plain', reason='the device is a CPU')
    """
    if not isinstance(config, TransformerConfig) or config.attention == "plain":
        return KernelChoice("plain")
    if config.attention == "auto" and mesh is None:
        return KernelChoice("plain")
    kernel = {"gpu": "cudnn", "cuda": "cudnn", "tpu": "splash"}.get(platform, "plain")
    if kernel == "plain" or config.attention not in ("auto", kernel):
        reason = f"the device is a {platform.upper()}"
    else:
        reason = _obstacle(config, platform) or _of_mesh(kernel, mesh or {})
    if kernel == "cudnn" and not reason:
        reason = _no_cudnn(jax.local_devices() if devices is None else devices)
    if not reason:
        return KernelChoice(kernel)
    return KernelChoice("plain", reason if config.attention != "auto" else "")


def _obstacle(config: TransformerConfig, platform: str) -> str:
    """Returns why no kernel fits this model."""
    if resolve_compute_dtype(config.compute_dtype, platform) != "bfloat16":
        return "activations are float32"
    if config.attention_dropout:
        return "model.attention_dropout needs the weights"
    if config.d_k != config.d_v or config.d_k % 8 or config.d_k > MAX_DEPTH:
        return f"heads of d_k={config.d_k} and d_v={config.d_v} are not supported"
    return ""


def _of_mesh(kernel: str, mesh: Mapping[str, int]) -> str:
    """Returns why a kernel cannot be used on a mesh.

    JAX cannot split a kernel of TPUs by itself, and in the step it maps over shards
    where `data` is not the only axis: for cuDNN with one mask for all heads it has no
    rule then.
    """
    other = next((axis for axis in ("fsdp", "tensor") if mesh.get(axis, 1) > 1), "")
    if other and (kernel == "splash" or mesh.get("data", 1) > 1):
        return f"mesh.{other} is not 1"
    return ""


def _no_cudnn(devices: Sequence[jax.Device]) -> str:
    """Returns why the oldest of some GPUs cannot use cuDNN."""
    found = [str(getattr(device, "compute_capability", "")) for device in devices]
    if not all(re.fullmatch(r"\d+\.\d+", text) for text in found):
        return "a GPU is not NVIDIA's"
    if min(tuple(map(int, text.split("."))) for text in found) < _AMPERE:
        return "the GPU is older than Ampere"
    return "" if jax_internals.has_cudnn() else "JAX finds no cuDNN"
