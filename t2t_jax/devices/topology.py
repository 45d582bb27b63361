"""Devices that are not here, for which XLA's compilers compile all the same.

NVIDIA's plugin compiles for the description of a GPU, libtpu for the name of a TPU, and
neither needs a device. What is compiled so cannot be run here.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from math import prod
from typing import Any, NamedTuple

import jax
from jax.experimental import topologies

from t2t_jax.errors import UserError

_MOST_DEVICES = 256


class Gpu(NamedTuple):
    """What only a GPU has.

    Attributes:
      kind: NVIDIA's name of it.
      capability: compute capability, as major and minor version.
      network: bytes per second of its adapter to other hosts.
      cores: multiprocessors; `units` of float32 and bytes of shared `memory` in each.
      cache: bytes of the second level.
    """

    kind: str
    capability: tuple[int, int]
    network: float
    cores: int
    units: int
    memory: int
    cache: int


@dataclass(frozen=True)
class Target:
    """One kind of accelerator, by its data sheet.

    Attributes:
      memory: bytes of a device.
      bandwidth: of its memory, in bytes per second.
      peak: of dense bfloat16 products, in operations per second.
      link: bytes per second that a device sends inside a host or a TPU slice.
      clock: cycles per second.
      gpu: None for a TPU.
      axes: of its topology.
    """

    memory: float
    bandwidth: float
    peak: float
    link: float
    clock: float
    gpu: Gpu | None = None
    axes: int = 2

    @property
    def platform(self) -> str:
        """As in `jax.Device.platform`."""
        return "gpu" if self.gpu else "tpu"


_H100 = Gpu("NVIDIA H100 80GB HBM3", (9, 0), 50e9, 132, 128, 233_472, 52_428_800)
_H200 = _H100._replace(kind="NVIDIA H200 141GB HBM3e")
_A100 = Gpu("NVIDIA A100-SXM4-80GB", (8, 0), 25e9, 108, 64, 167_936, 41_943_040)
_B200 = Gpu("NVIDIA B200", (10, 0), 50e9, 148, 128, 233_472, 132_644_864)

# Data sheets: NVIDIA's of A100 80GB SXM, H100 SXM, H200 SXM and DGX B200 (a link is one
# direction of NVLink, the network an adapter of 200 or 400 Gbit/s for each GPU); Google
# Cloud's pages of TPU v5e, v5p and v6e (a link is half of a chip's bidirectional
# interconnect). Cores, caches and clocks of GPUs: XLA's descriptions of them. Clocks of
# TPUs: the peak divided by the operations of the matrix units in a cycle.
TARGETS = {
    "a100": Target(85.1e9, 2.039e12, 312e12, 300e9, 1.41e9, _A100),
    "h100": Target(84.9e9, 3.352e12, 989e12, 450e9, 1.98e9, _H100),
    "h200": Target(151.4e9, 4.8e12, 989e12, 450e9, 1.98e9, _H200),
    "b200": Target(191.5e9, 7.672e12, 2250e12, 900e9, 1.965e9, _B200),
    "v5e": Target(17.2e9, 0.82e12, 197e12, 200e9, 1.5e9),
    "v5p": Target(103e9, 2.765e12, 459e12, 600e9, 1.75e9, axes=3),
    "v6e": Target(34.4e9, 1.64e12, 918e12, 400e9, 1.75e9),
}


def gpu_description(target: Target, gpu: Gpu) -> str:
    """Describes a GPU for XLA's compiler: a `GpuTargetConfigProto` as text."""
    major, minor = gpu.capability
    # A block may have all shared memory of a multiprocessor but 1 KiB.
    return f"""gpu_device_info {{
  threads_per_block_limit: 1024 threads_per_warp: 32 threads_per_core_limit: 2048
  shared_memory_per_block: 49152 shared_memory_per_core: {gpu.memory}
  shared_memory_per_block_optin: {gpu.memory - 1024}
  core_count: {gpu.cores} fpus_per_core: {gpu.units}
  block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535
  memory_bandwidth: {target.bandwidth:.0f} l2_cache_size: {gpu.cache}
  clock_rate_ghz: {target.clock / 1e9} device_memory_size: {target.memory:.0f}
  cuda_compute_capability {{ major: {major} minor: {minor} }}
  registers_per_core_limit: 65536 registers_per_block_limit: 65536
}}
platform_name: "CUDA" device_description_str: "{gpu.kind}"
dnn_version_info {{ major: 9 minor: 10 }}
runtime_version {{ major: 12 minor: 9 patch: 0 }}
"""


@dataclass(frozen=True)
class Topology:
    """Devices that are not here.

    Attributes:
      text: as it was requested.
      name: of the kind of devices, a key of `TARGETS`.
      shape: hosts x GPUs of a host; or the chips of a TPU slice along its axes.
      target: the kind of devices.
    """

    text: str
    name: str
    shape: tuple[int, ...]
    target: Target = field(repr=False)

    @property
    def linked(self) -> int:
        """The number of devices that the fast links connect."""
        return self.shape[-1] if self.target.gpu else prod(self.shape)

    def devices(self) -> list[jax.Device]:
        """Returns devices for a mesh whose programs are compiled and cannot run.

        Sets environment variables for libtpu, which else asks for a TPU's metadata.

        Raises:
          UserError: the compiler is not installed.
        """
        gpu, sides = self.target.gpu, "x".join(map(str, self.shape))
        if not any(map(find_spec, _COMPILERS[self.target.platform])):
            fault = f"topology={self.text} needs a compiler that is not installed"
            run = f"Run pip install 't2t-jax[aot-{self.target.platform}]'."
            raise UserError(f"{fault}. {run}")
        os.environ.update({**_NO_METADATA, **os.environ})
        jax.config.update("jax_platforms", "cpu")
        jax.devices()  # registers the plugins
        options: dict[str, Any] = {}
        name, platform = f"{self.name}:{sides}", "tpu"
        if gpu:
            told = gpu_description(self.target, gpu)
            name, platform = self.name, "cuda"
            options = {"target_config": told, "topology": f"1x{sides}"}
        elif prod(self.shape) == 1:  # A host has 2 x 2 chips, but for one alone.
            options = {"chips_per_host_bounds": [1, 1, 1]}
        return [*topologies.get_topology_desc(name, platform, **options).devices]


_COMPILERS = {"gpu": ["jax_cuda12_plugin", "jax_cuda13_plugin"], "tpu": ["libtpu"]}

_NO_METADATA = {
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5litepod-8",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # which another program may have loaded
}


def parse_topology(text: str, *, peak_tflops: float = 0.0) -> Topology:
    """Parses the name of devices that are not here.

    Args:
      peak_tflops: replaces that of the target's data sheet; 0 for none.

    Raises:
      UserError: the target is unknown, or its shape is not valid.

    Example:
      >>> parse_topology("gpu:h100:2x8")
      Topology(text='gpu:h100:2x8', name='h100', shape=(2, 8))
      >>> parse_topology("tpu:v5e:2x4").shape
      (2, 4)
    """
    platform, name, sides = [*text.split(":", 2), "", ""][:3]
    if (target := TARGETS.get(name)) is None or target.platform != platform:
        known = ", ".join(f"{one.platform}:{n}" for n, one in TARGETS.items())
        rule = f"name one of {known}, and its devices, as in gpu:h100:8"
        raise UserError(f"topology={text} must {rule}. Change it.")
    sizes = r"[1-9]\d{0,2}(x[1-9]\d{0,2})*"
    shape = tuple(map(int, sides.split("x"))) if re.fullmatch(sizes, sides) else ()
    if target.gpu:
        example, is_valid = "8, or 2x8 for hosts x GPUs", 0 < len(shape) <= 2
    else:  # Hosts of 2 x 2 chips.
        example = "x".join("224"[-target.axes :])
        whole = prod(shape) == 1 or not any(side % 2 for side in shape[:2])
        is_valid = len(shape) == target.axes and whole
    if not is_valid or prod(shape) > _MOST_DEVICES:
        rule = f"end in the number of devices, as {example}, at most {_MOST_DEVICES}"
        raise UserError(f"topology={text} must {rule}. Change it.")
    if peak_tflops:
        target = replace(target, peak=1e12 * peak_tflops)
    return Topology(text, name, shape if len(shape) > 1 else (1, *shape), target)
