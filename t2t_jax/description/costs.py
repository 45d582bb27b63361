"""What a training step costs, by formula and as the compiler sees it.

The step is compiled as a run compiles it, for devices that need not be there; nothing
is computed and no array allocated.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from typing import Any, NamedTuple

import jax
from jax.sharding import Mesh

from t2t_jax.config import Config
from t2t_jax.data.batching.planner import batch_shapes
from t2t_jax.model.architectures import make_module, training_flops
from t2t_jax.sharding.mesh import round_up_rows
from t2t_jax.sharding.rules import path_of
from t2t_jax.training.accumulation import MicroBatching
from t2t_jax.training.optimizer import make_optimizer
from t2t_jax.training.state import TrainState, init_state, state_shardings
from t2t_jax.training.step import lower_step, skip_bad_updates, train_step
from t2t_jax.types import Params, PyTree

# Without these a CPU compiles 7 s instead of 5 s for base; the figures are the same.
FAST_COMPILE_OPTIONS: dict[str, str | bool] = {
    "xla_llvm_disable_expensive_passes": True,
    "xla_backend_optimization_level": "0",
}

# The first that is found in a parameter's path says what kind of sub-layer it is of.
_KINDS = (
    ("embedding", r"(^|/)table$"),
    ("attention", r"attention/"),
    ("feed_forward", r"feed_forward/"),
    ("lstm", r"/cell/"),
    ("readout", r"readout/"),
    ("norms", r"norm/"),
)


class Memory(NamedTuple):
    """Bytes that a step takes on one device, by the compiler's analysis.

    Attributes:
      arguments: the state and this device's share of the batch.
      temporaries: activations, gradients, and what else lives only during the step.
      outputs: the new state.
      aliased: of the outputs, what takes the place of an argument.
    """

    arguments: int
    temporaries: int
    outputs: int
    aliased: int

    @property
    def total(self) -> int:
        """All that must fit at once."""
        return self.arguments + self.temporaries + self.outputs - self.aliased


class Compiled(NamedTuple):
    """What the compiler says of a training step.

    Attributes:
      flops: operations on all devices; the body of a loop is counted once.
      memory: bytes on each device.
      platform: whose compiler it is: cpu, gpu or tpu.
    """

    flops: float
    memory: Memory
    platform: str


def state_shapes(config: Config) -> TrainState:
    """Returns the shapes of what training holds, without making any of it.

    Example:
      >>> state = state_shapes(Config())
      >>> state.params["embedding"]["table"].shape
      (37000, 512)
    """
    module = make_module(config.network)
    optimizer = make_optimizer(config.optimizer, d_model=config.network.d_model)
    shapes: TrainState = jax.eval_shape(
        partial(init_state, module, optimizer), jax.random.key(config.seed)
    )
    return shapes


def bytes_of(shapes: PyTree) -> int:
    """Adds up the bytes of all the arrays of a tree.

    Example:
      >>> bytes_of([jax.ShapeDtypeStruct((2, 3), "float32")])
      24
    """
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))


def per_device_state(config: Config, *, state: TrainState, mesh: Mesh) -> TrainState:
    """Returns the shapes of what one device holds of the state.

    Args:
      state: its shapes, of `state_shapes`.

    Raises:
      ConfigError: the model's axes do not divide by those of the mesh.
    """
    places = state_shardings(state, mesh, shard_optimizer=config.mesh.shard_optimizer)
    share: TrainState = jax.tree.map(
        lambda leaf, place: jax.ShapeDtypeStruct(
            place.shard_shape(leaf.shape), leaf.dtype
        ),
        state,
        places,
    )
    return share


def micro_batches(config: Config) -> int:
    """Returns how many there are, 1 where as many are asked for as memory needs."""
    return config.training.micro_batches or 1


def rows_of_a_batch(config: Config, mesh: Mesh) -> int:
    """Counts the rows of the global batches of `longest_shape`, empty ones included."""
    rows, _ = longest_shape(config)
    return round_up_rows(mesh, rows, micro_batches=micro_batches(config))


def parameter_table(params: Params) -> dict[str, dict[str, int]]:
    """Counts parameters by part and by kind of sub-layer.

    Args:
      params: nested dict of arrays or of their shapes.

    Returns:
      For embedding, encoder and decoder: the number in each kind of sub-layer that
      it has.

    Raises:
      ValueError: a parameter is of no known kind.

    Example:
      >>> table = parameter_table(state_shapes(Config()).params)
      >>> table["encoder"]
      {'attention': 6291456, 'feed_forward': 12598272, 'norms': 12288}
    """
    counts: dict[str, Counter[str]] = {
        part: Counter() for part in ("embedding", "encoder", "decoder")
    }
    for keys, leaf in jax.tree_util.tree_leaves_with_path(params):
        path = path_of(keys)
        kind = _kind_of(path)
        part = "embedding" if kind == "embedding" else path.partition("/")[0]
        counts[part][kind] += leaf.size
    return {
        part: {kind: found[kind] for kind, _ in _KINDS if kind in found}
        for part, found in counts.items()
    }


def _kind_of(path: str) -> str:
    for kind, pattern in _KINDS:
        if re.search(pattern, path):
            return kind
    raise ValueError(
        f"Every parameter must be of a known kind, and {path} is of none. "
        "Add a pattern for it to the table."
    )


def longest_shape(config: Config) -> tuple[int, int]:
    """Returns (rows, slots of a row) of the batches with the longest rows.

    Others, of length groups or of halved rows, have more rows of fewer slots, and about
    as many slots in all: what is counted of the longest is more than they need. Which
    length groups there are depends on the corpus.

    Example:
      >>> longest_shape(Config())
      (96, 256)
    """
    return batch_shapes(config.data)[-1]


def step_flops(config: Config, *, rows: int) -> dict[str, float]:
    """Counts the operations of a step by formula: what is computed, padding included.

    Args:
      rows: of the global batch, empty ones included.

    Returns:
      FLOPs by part. A row is as long as in `longest_shape` on either side, and its
      scores are those of all its positions, however many pairs are packed into it.
    """
    _, length = longest_shape(config)
    of_a_row = training_flops(
        config.network, source_length=length, target_length=length
    )
    return {part: rows * flops for part, flops in of_a_row._asdict().items()}


def compile_costs(config: Config, *, state: TrainState, mesh: Mesh) -> Compiled:
    """Compiles the training step and asks the compiler what it costs.

    Args:
      state: its shapes, of `state_shapes`.
      mesh: the devices, real or simulated.
    """
    platform = mesh.devices.flat[0].platform
    step = partial(
        skip_bad_updates(train_step),
        module=make_module(config.network, platform=platform),
        optimizer=make_optimizer(config.optimizer, d_model=config.network.d_model),
        label_smoothing=config.training.label_smoothing,
        mesh=mesh,
        split=MicroBatching.of(config.training, micro_batches(config)),
    )
    lowered = lower_step(
        step,
        state,
        batch_shape=(rows_of_a_batch(config, mesh), longest_shape(config)[1]),
        mesh=mesh,
        shard_optimizer=config.mesh.shard_optimizer,
    )
    compiled = lowered.compile(
        compiler_options=FAST_COMPILE_OPTIONS if platform == "cpu" else None
    )
    of_a_device: Any = compiled.cost_analysis()
    found: Any = compiled.memory_analysis()
    memory = Memory(
        arguments=found.argument_size_in_bytes,
        temporaries=found.temp_size_in_bytes,
        outputs=found.output_size_in_bytes,
        aliased=found.alias_size_in_bytes,
    )
    return Compiled(of_a_device["flops"] * mesh.size, memory, platform)
