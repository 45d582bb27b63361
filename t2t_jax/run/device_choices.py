"""What a run computes with on its devices: attention kernel and compute dtype."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

from jax.sharding import Mesh

from t2t_jax.config import ARCHITECTURES, Config
from t2t_jax.devices.processor import multiplies_bfloat16, resolve_compute_dtype
from t2t_jax.functional.fused_attention import LENGTH_MULTIPLE
from t2t_jax.model.attention_kernels import resolve_attention
from t2t_jax.model.config import TransformerConfig

_FAST = "which this processor multiplies. The run keeps it."
_SLOW = (
    "This processor does not multiply bfloat16: a step took 1.25 times as long as in "
    "float32 on such a one."
)


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


class DeviceChoices(NamedTuple):
    """What a training computes with.

    Attributes:
      config: with what its devices chose in place of "auto".
      compute_dtype: of its module.
      lines: what was chosen, and what bfloat16 costs here; saved if there are any.
    """

    config: Config
    compute_dtype: str
    lines: list[str]


def choose_for_devices(
    config: Config, mesh: Mesh, *, may_choose: bool
) -> DeviceChoices:
    """Resolves "auto" for a training, which keeps bfloat16 on any processor.

    A training on CPUs that began without this choice stays in float32.

    Args:
      may_choose: whether it begins, in one process (others may have other processors)
        and with the module of the configuration.
    """
    config, attention = choose_attention(config, mesh)
    network, section = config.network, ARCHITECTURES[config.architecture]
    platform, precision = mesh.devices.flat[0].platform, ""
    dtype = resolve_compute_dtype(network.compute_dtype, platform)
    if platform == "cpu" and dtype == "bfloat16":
        if network.compute_dtype == "bfloat16":
            precision = "" if multiplies_bfloat16() else _SLOW
        elif may_choose:
            precision = f"{section}.compute_dtype=auto: {dtype}, {_FAST}"
            changes: Any = {section: dataclasses.replace(network, compute_dtype=dtype)}
            config = dataclasses.replace(config, **changes)
        else:
            dtype = "float32"
    return DeviceChoices(config, dtype, list(filter(None, (precision, attention))))
