"""What a run computes with on its devices: attention kernel and compute dtype."""

from __future__ import annotations

from jax.sharding import Mesh

from t2t_jax.config import ARCHITECTURES, Config
from t2t_jax.devices.processor import is_slow_in_bfloat16, multiplies_bfloat16
from t2t_jax.functional.fused_attention import LENGTH_MULTIPLE
from t2t_jax.model.attention_kernels import resolve_attention
from t2t_jax.model.config import TransformerConfig

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
    if not isinstance(network := config.network, TransformerConfig):
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
    chosen = config.with_network(attention=kernel)
    since = f", since {reason}" if reason else ""
    return chosen, f"model.attention={network.attention}: {kernel} is used{since}."


def choose_for_devices(
    config: Config, mesh: Mesh, *, may_choose: bool
) -> tuple[Config, str, list[str]]:
    """Resolves "auto" for a training, which keeps bfloat16 on any processor.

    A training on CPUs that began without this choice stays in float32.

    Args:
      may_choose: whether it begins, in one process (others may have other processors)
        and with the module of the configuration.

    Returns:
      The configuration, with what its devices chose in place of "auto"; what
      `compute_dtype="auto"` of its module is, "" for that of the devices; and what was
      chosen, and what bfloat16 costs here, which is saved if there is any.
    """
    config, attention = choose_attention(config, mesh)
    network, section = config.network, ARCHITECTURES[config.architecture]
    if mesh.devices.flat[0].platform != "cpu":
        return config, "", [attention] * bool(attention)
    precision = ""
    if network.compute_dtype == "bfloat16" and is_slow_in_bfloat16():
        precision = _SLOW
    if network.compute_dtype == "auto" and may_choose and multiplies_bfloat16():
        precision = (
            f"{section}.compute_dtype=auto: bfloat16, which this processor multiplies. "
            "The run keeps it. A run in float32 begins with config."
            f"{section}.compute_dtype=float32."
        )
        config = config.with_network(compute_dtype="bfloat16")
    return config, "float32", list(filter(None, (precision, attention)))
