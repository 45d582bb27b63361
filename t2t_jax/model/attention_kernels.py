"""Chooses the attention kernel of training, from the configuration and the device.

The kernels of other packages are called through functions that are not public, since
the public ones take no segments: each is used with the versions that it is known from.
"""

from __future__ import annotations

import functools
import inspect
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

import jax

from t2t_jax import jax_internals
from t2t_jax.functional.attention import MAX_FUSED_DEPTH
from t2t_jax.model.config import (
    ModelConfig,
    TransformerConfig,
    resolve_compute_dtype,
)

AMPERE, HOPPER = (8, 0), (9, 0)
"""Compute capabilities of NVIDIA's GPUs."""

_JAX = ((0, 10), (0, 13))
"""Versions of JAX, the last excluded, whose function for packed rows is known."""

_TOKAMAX = ((0, 0, 17), (0, 1))
"""Versions of tokamax, the last excluded, whose ranges of keys are known."""

_PACKED_ARGUMENTS = {
    *("q_seqlen", "kv_seqlen", "q_offsets", "kv_offsets", "scale", "mask_type"),
}
_TOKAMAX_GPUS = (9, 10)
"""Major compute capabilities of which tokamax has the backward pass."""


class DeviceSupport(NamedTuple):
    """What the devices here can run.

    Attributes:
      platform: as in `jax.Device.platform`.
      capability: compute capability of the oldest GPU; (0, 0) without one.
      no_cudnn: why cuDNN cannot be used; "" if it can.
      no_packing: the same for its layout of packed rows.
      no_tokamax: the same for tokamax.
    """

    platform: str
    capability: tuple[int, int] = (0, 0)
    no_cudnn: str = ""
    no_packing: str = ""
    no_tokamax: str = ""


class KernelChoice(NamedTuple):
    """An attention kernel.

    Attributes:
      kernel: "plain", "cudnn", "cudnn_packed" or "tokamax".
      reason: why it is not the one that was asked for; "" if it is.
    """

    kernel: str
    reason: str = ""


def choose_kernel(
    config: TransformerConfig, support: DeviceSupport, *, packs_rows: bool = False
) -> KernelChoice:
    """Chooses the attention kernel on a device.

    Args:
      packs_rows: whether rows hold several segments, and the step does not map the
        model over shards of the axis `data` or over micro-batches, for which JAX has no
        rule with packed rows.

    Example:
      >>> config = TransformerConfig(attention="auto")
      >>> choose_kernel(config, DeviceSupport("cpu")).kernel
      'plain'
      >>> choose_kernel(config, DeviceSupport("gpu", (9, 0))).kernel
      'cudnn'
      >>> config = TransformerConfig(attention="cudnn_packed")
      >>> choose_kernel(config, DeviceSupport("gpu", (8, 0)))
      KernelChoice(kernel='cudnn', reason='the GPU is older than Hopper')
    """
    wanted = config.attention
    if wanted == "plain":
        return KernelChoice("plain")
    asked = wanted if wanted != "auto" else "cudnn"
    if reason := _obstacle(config, support) or _missing(asked, support):
        return KernelChoice("plain", reason if wanted != "auto" else "")
    if asked == "cudnn_packed" and (
        reason := support.no_packing
        or (support.capability < HOPPER and "the GPU is older than Hopper")
        or ("" if packs_rows else "rows are of one pair, or a step is in parts")
    ):
        return KernelChoice("cudnn", reason)
    return KernelChoice(asked)


def _obstacle(config: TransformerConfig, support: DeviceSupport) -> str:
    """Returns why no kernel but the plain one fits this model on this device."""
    if support.platform not in ("gpu", "cuda"):
        return f"the device is a {support.platform.upper()}"
    if support.capability < AMPERE:
        return "the GPU is older than Ampere"
    if resolve_compute_dtype(config, support.platform) != "bfloat16":
        return "activations are float32"
    if config.attention_dropout:
        return "model.attention_dropout needs the weights"
    if config.d_k != config.d_v or config.d_k % 8 or config.d_k > MAX_FUSED_DEPTH:
        return f"heads of d_k={config.d_k} and d_v={config.d_v} are not supported"
    return ""


def _missing(asked: str, support: DeviceSupport) -> str:
    if asked != "tokamax":
        return support.no_cudnn
    if support.capability[0] not in _TOKAMAX_GPUS:
        return "the GPU is neither a Hopper nor a Blackwell of data centres"
    return support.no_tokamax


def resolve_attention(
    config: ModelConfig, platform: str, *, packs_rows: bool = False
) -> KernelChoice:
    """Chooses the attention kernel of a model on the devices of a platform.

    Args:
      platform: as for `resolve_compute_dtype`.
      packs_rows: as for `choose_kernel`.

    Example:
      >>> config = TransformerConfig(attention="cudnn")
      >>> resolve_attention(config, "cpu")
      KernelChoice(kernel='plain', reason='the device is a CPU')
    """
    if not isinstance(config, TransformerConfig) or config.attention == "plain":
        return KernelChoice("plain")
    return choose_kernel(config, device_support(platform), packs_rows=packs_rows)


@functools.cache
def device_support(platform: str) -> DeviceSupport:
    """Describes the local devices of a platform, and the kernels installed for them."""
    if platform not in ("gpu", "cuda"):
        return DeviceSupport(platform)
    found = [
        tuple(int(number) for number in str(device.compute_capability).split("."))
        for device in jax.local_devices()
        if device.platform in ("gpu", "cuda") and hasattr(device, "compute_capability")
    ]
    oldest = min(found, default=(0, 0))
    return DeviceSupport(
        platform,
        (oldest[0], oldest[-1]),
        no_cudnn=_without_cudnn(),
        no_packing=_without_packing(),
        no_tokamax=_without_tokamax(),
    )


def _without_cudnn() -> str:
    try:
        jax_internals.cudnn_attention().check_cudnn_version()
    except (ImportError, AttributeError):
        return ""  # JAX checks it, where it is called.
    except RuntimeError:
        return "JAX finds no cuDNN"
    return ""


def _without_packing() -> str:
    if not _is_within(jax.__version__, _JAX):
        return f"JAX {jax.__version__} is not known to have packed rows"
    try:
        kernel = jax_internals.cudnn_attention().dot_product_attention
        parameters = inspect.signature(kernel).parameters
        has_all = _PACKED_ARGUMENTS <= parameters.keys()
    except (ImportError, AttributeError, ValueError):
        has_all = False
    return "" if has_all else f"JAX {jax.__version__} has no packed rows"


def _without_tokamax() -> str:
    try:
        installed = version("tokamax")
    except PackageNotFoundError:
        return "tokamax is not installed (pip install 't2t-jax[tokamax]')"
    if not _is_within(installed, _TOKAMAX):
        return f"tokamax {installed} is not known to have ranges of keys"
    try:
        from tokamax._src.ops.attention.api import IMPLEMENTATIONS
    except ImportError as error:
        return f"tokamax {installed} cannot be used: {error}"
    if "mosaic_gpu" not in IMPLEMENTATIONS:
        return f"tokamax {installed} has no kernel for this GPU"
    return ""


def _is_within(installed: str, bounds: tuple[tuple[int, ...], ...]) -> bool:
    """Returns whether a version lies between bounds, the last excluded.

    Example:
      >>> _is_within("0.12.0.1", ((0, 10), (0, 13))), _is_within("1.0rc1", ((0,), (1,)))
      (True, False)
    """
    numbers = []
    for part in installed.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    least, beyond = bounds
    return least <= tuple(numbers) < beyond
