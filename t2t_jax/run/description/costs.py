"""Costs of a training step: by `model.counting`'s FLOPs formula, and by the compiler.

The step is compiled for real or simulated devices; no array is allocated.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import optax
from jax.sharding import Mesh

from t2t_jax.config import Config
from t2t_jax.data.batching.planner import batch_shapes
from t2t_jax.devices.sharding.rules import leaves_by_path
from t2t_jax.devices.topology import Topology
from t2t_jax.model.architectures import make_module
from t2t_jax.model.counting import training_flops
from t2t_jax.run.device_choices import choose_attention
from t2t_jax.training import state as training_state
from t2t_jax.training.compiled_step import BatchLayout, Memory, memory_of
from t2t_jax.training.optimizer import make_optimizer, matrix_shape
from t2t_jax.training.state import TrainState, state_shardings
from t2t_jax.training.step import lower_step, make_train_step
from t2t_jax.types import Params, PyTree

# Reduces the CPU's compilation of base from 7 s to 5 s; the analysis is the same.
FAST_COMPILE_OPTIONS: dict[str, str | bool] = {
    "xla_llvm_disable_expensive_passes": True,
    "xla_backend_optimization_level": "0",
}

SENTENCE_LENGTH = 28  # subwords of an average WMT sentence

# The first pattern that matches a parameter's path is its kind.
_KINDS = (
    ("embedding", r"(^|/)table$|^(target_embedding|embedding|pre_softmax)/bias$"),
    ("attention", r"attention/"),
    ("feed_forward", r"feed_forward/"),
    ("lstm", r"/cell/"),
    ("readout", r"readout/"),
    ("norms", r"norm/"),
)


class Compiled(NamedTuple):
    """The compiler's analysis.

    Attributes:
      flops: of all devices, a loop's body counted once.
      bytes: read and written on one device, if the compiler counts them.
      text: the program; "" if it does not fit the device.
    """

    flops: float
    memory: Memory
    platform: str
    bytes: float = 0.0
    text: str = ""


def state_shapes(config: Config) -> TrainState:
    """Returns the shapes of the training state without allocating it.

    Example:
      >>> state = state_shapes(Config())
      >>> state.params["embedding"]["table"].shape
      (37000, 512)
    """
    module, ema = make_module(config.network), config.training.ema_decay > 0
    return training_state.state_shapes(module, _make_optimizer(config), ema=ema)


def num_bytes(shapes: PyTree) -> int:
    """Sums the bytes of all arrays of a tree."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))


def per_device_state(config: Config, *, state: TrainState, mesh: Mesh) -> TrainState:
    """Returns the shapes of one device's shard of the state.

    Raises:
      ConfigError: the axes of the model are not divisible by those of the mesh.
    """
    places = _shardings(config, state, mesh)
    shard: TrainState = jax.tree.map(
        lambda x, place: x.update(shape=place.shard_shape(x.shape)), state, places
    )
    return shard


def batch_layout(config: Config, mesh: Mesh) -> BatchLayout:
    """Returns the shapes of the batches; of automatic micro-batches it has one."""
    planned, parts = batch_shapes(config.data), config.training.micro_batches or 1
    return BatchLayout(planned=planned, mesh=mesh, micro_batches=parts)


def parameter_table(params: Params) -> dict[str, dict[str, int]]:
    """Counts parameters by part and kind of sub-layer.

    Raises:
      ValueError: the kind of a parameter is unknown.

    Example:
      >>> table = parameter_table(state_shapes(Config()).params)
      >>> table["encoder"]
      {'attention': 6291456, 'feed_forward': 12598272, 'norms': 12288}
    """
    counts: Counter[tuple[str, str]] = Counter()
    for path, leaf in leaves_by_path(params).items():
        kind = next((kind for kind, known in _KINDS if re.search(known, path)), "")
        if not kind:
            advice = "Add a pattern for it to _KINDS."
            raise ValueError(f"The kind of parameter {path} is not known. {advice}")
        part = "embedding" if kind == "embedding" else path.partition("/")[0]
        counts[part, kind] += leaf.size
    return {
        part: {kind: counts[part, kind] for kind, _ in _KINDS if counts[part, kind]}
        for part in ("embedding", "encoder", "decoder")
    }


def longest_shape(config: Config) -> tuple[int, int]:
    """Returns (rows, slots of a row) of the batches with the longest rows.

    Batches of shorter rows have about as many slots, so these cost the most.

    Example:
      >>> longest_shape(Config())
      (96, 256)
    """
    return batch_shapes(config.data)[-1]


def step_flops(config: Config, *, rows: int) -> dict[str, float]:
    """Counts the FLOPs of each part of a step with rows as in `longest_shape`.

    Padding counts, and so do scores between the pairs that are packed into a row, and
    both passes of a step with a consistency term.
    """
    _, length = longest_shape(config)
    a_row = training_flops(config.network, source_length=length, target_length=length)
    passes = rows * config.training.passes
    return {part: passes * flops for part, flops in a_row.items() if flops}


def optimizer_flops(config: Config, optimizer: PyTree) -> dict[str, float]:
    """Counts the FLOPs of an update's matrix products; empty if it has none.

    Each Newton-Schulz iteration of Muon, on a matrix of m rows and n >= m columns, has
    two products of m * m * n and one of m * m * m multiplications.

    Args:
      optimizer: state of the optimizer, or its shapes.
    """
    if config.optimizer.name != "muon":
        return {}
    flops = 0.0
    for path, momentum in leaves_by_path(optimizer).items():
        if re.search(r"(^|/)muon/.*/kernel$", path):
            m, n = sorted(matrix_shape(path, momentum))
            flops += config.optimizer.ns_steps * (4 * m * m * n + 2 * m**3)
    return {"optimizer": flops}


def compile_costs(
    config: Config, *, state: TrainState, mesh: Mesh, topology: Topology | None = None
) -> Compiled:
    """Compiles the training step and returns the compiler's analysis.

    Args:
      topology: that of the mesh's devices, if they are not here.
    """
    config, _ = choose_attention(config, mesh)
    module, optimizer = make_module(config.network), _make_optimizer(config)
    training, places = config.training, _shardings(config, state, mesh)
    step = make_train_step(
        module, optimizer, mesh=mesh, config=training, shardings=places
    )
    shape = batch_layout(config, mesh).shapes[-1]
    lower = partial(lower_step, step, state, batch_shape=shape)
    return analyze(lower, mesh, topology=topology)


def _shardings(config: Config, state: TrainState, mesh: Mesh) -> TrainState:
    return state_shardings(state, mesh, shard_optimizer=config.mesh.shard_optimizer)


def analyze(
    lower: Callable[[], jax.stages.Lowered], mesh: Mesh, *, topology: Topology | None
) -> Compiled:
    """Compiles a program for the devices of a mesh; its analysis is of one device."""
    platform = mesh.devices.flat[0].platform
    options = FAST_COMPILE_OPTIONS if platform == "cpu" else None
    if topology and topology.target.gpu:
        options = {"xla_gpu_autotune_level": "0"}  # There is none to tune it on.
    try:
        compiled = lower().compile(compiler_options=options)
    except jax.errors.JaxRuntimeError as error:
        # A TPU's compiler rejects what does not fit.
        used = re.search(r"(?:Used |required[^(]*\()([\d.]+)([KMGT])", str(error))
        if not (topology and used):
            raise
        needed = int(float(used[1]) * 1024 ** (1 + "KMGT".index(used[2])))
        return Compiled(0.0, Memory(0, needed, 0, 0), platform)
    of_a_device: Any = compiled.cost_analysis() or {}
    flops = of_a_device.get("flops", 0.0) * mesh.size
    moved = of_a_device.get("bytes accessed", 0.0)
    text = (compiled.as_text() or "") if topology else ""
    return Compiled(flops, memory_of(compiled), platform, bytes=moved, text=text)


def _make_optimizer(config: Config) -> optax.GradientTransformation:
    width, frozen = config.network.d_model, config.training.frozen
    return make_optimizer(config.optimizer, d_model=width, frozen=frozen)
