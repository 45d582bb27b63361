"""The layout of batches over devices, and the step compiled for each shape."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
from jax.sharding import Mesh

from t2t_jax.devices.distributed.processes import barrier, current_processes
from t2t_jax.devices.sharding.mesh import local_batch_shard, row_shards
from t2t_jax.devices.sharding.rules import make_global_batch, replicated
from t2t_jax.errors import ConfigError
from t2t_jax.training.state import TrainState
from t2t_jax.training.step import StepOutput, lower_step
from t2t_jax.types import Batch, BatchShard

_GIGABYTE = 1e9
USABLE = 0.92
"""Usable share of a device's memory; fragments and prefetched batches take the rest."""


@dataclass(frozen=True, kw_only=True)
class BatchLayout:
    """The shapes of a run's global batches, and how they are split.

    Attributes:
      planned: (rows, slots of a row on each side) of the batches, short rows first.
      micro_batches: parts that each device processes one after the other.
    """

    planned: Sequence[tuple[int, int]]
    mesh: Mesh
    micro_batches: int = 1

    @property
    def share(self) -> BatchShard:
        """This process's shard of every batch."""
        return local_batch_shard(self.mesh, process=jax.process_index())

    @property
    def row_multiple(self) -> int:
        """The divisor of the rows of every batch."""
        return row_shards(self.mesh) * self.micro_batches

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """The shapes of the batches, padded with empty rows to be divisible."""
        size = self.row_multiple
        return [(-(-rows // size) * size, length) for rows, length in self.planned]

    def text(self) -> str:
        """Describes how batches are split, and the padding rows.

        Example:
          >>> import jax
          >>> from t2t_jax.devices.sharding.mesh import make_mesh
          >>> mesh = make_mesh(jax.devices()[:1])
          >>> print(BatchLayout(planned=[(9, 8)], mesh=mesh, micro_batches=2).text())
          1 device x 2 micro-batches x 40 = 80 tokens a side
          1 of 10 rows x 8 slots are empty, so that all parts are alike. A
          data.tokens_per_batch of 80 would fill them.
        """
        rows, length = max(self.shapes, key=lambda shape: shape[0] * shape[1])
        most = "at most " * (len(self.planned) > 1)
        parts = row_shards(self.mesh)
        micro = pluralize(self.micro_batches, "micro-batch")
        lines = [
            f"{_devices(self.mesh)} x {micro} x "
            f"{rows * length // (parts * self.micro_batches):,} = "
            f"{most}{rows * length:,} tokens a side"
        ]
        for (wanted, length), (rows, _) in zip(self.planned, self.shapes, strict=True):
            empty = f"{rows - wanted} of {rows} rows x {length} slots are empty"
            line = f"{empty}, so that all parts are alike."
            if not most:  # Another number would change the length buckets.
                full = rows * length
                line += f" A data.tokens_per_batch of {full:,} would fill them."
            lines += [line] * (rows > wanted)
        return "\n".join(lines)


def pluralize(number: int, thing: str) -> str:
    """Formats a count with its noun: "2 micro-batches"."""
    ending = "" if number == 1 else "es" if thing.endswith("ch") else "s"
    return f"{number} {thing}{ending}"


def _devices(mesh: Mesh) -> str:
    """Formats the devices, and the number of row shards if it differs."""
    named = pluralize(mesh.size, "device")
    if row_shards(mesh) == mesh.shape["data"] == mesh.size:
        return named
    sizes = ", ".join(f"{axis} {size}" for axis, size in mesh.shape.items())
    return f"{named} ({sizes}): {pluralize(row_shards(mesh), 'part')}"


class Memory(NamedTuple):
    """Bytes of a step on one device, by the compiler's analysis.

    Attributes:
      arguments: the state and this device's share of the batch.
      temporaries: activations and gradients.
      aliased: outputs that reuse the buffer of an argument.
    """

    arguments: int
    temporaries: int
    outputs: int
    aliased: int

    @property
    def total(self) -> int:
        """Peak bytes."""
        return self.arguments + self.temporaries + self.outputs - self.aliased


def memory_of(compiled: jax.stages.Compiled) -> Memory:
    """Returns the compiler's analysis of a program's memory."""
    found: Any = compiled.memory_analysis()
    kinds = ("argument", "temp", "output", "alias")
    return Memory(*(getattr(found, f"{kind}_size_in_bytes") for kind in kinds))


def device_memory_limit(mesh: Mesh) -> int:
    """Returns the bytes that a step may use on each device of this process.

    The minimum over the devices; 0 where they do not report it, as CPUs.
    """
    stats = (device.memory_stats() or {} for device in mesh.local_devices)
    return int(USABLE * min(one.get("bytes_limit", 0) for one in stats))


@dataclass
class StepCompiler:
    """Runs a step on host batches: the step of `training.loop`.

    Attributes:
      make_step: makes the jitted step with a number of micro-batches.
      state: shapes of the state.
      layout: the batches, with the current number of micro-batches.
      about: the expected compile time, in words.
    """

    make_step: Callable[[int], Any]
    state: TrainState
    layout: BatchLayout
    key: jax.Array
    log: Callable[[str], None]
    about: str
    _compiled: dict[tuple[int, int], Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._step = self.make_step(self.layout.micro_batches)
        key = self.key
        self.key = jax.jit(lambda: key, out_shardings=replicated(self.layout.mesh))()

    def __call__(
        self, state: TrainState, batch: Batch
    ) -> tuple[TrainState, StepOutput]:
        """Runs a step on a batch for which it is compiled; donates the state."""
        compiled = self._compiled[self._shape_of(batch)]
        placed = make_global_batch(batch, self.layout.mesh)
        made: tuple[TrainState, StepOutput] = compiled(state, placed, self.key)
        return made

    def is_ready(self, batch: Batch) -> bool:
        """Returns whether the step is compiled for the shape of a batch."""
        return self._shape_of(batch) in self._compiled

    def compile_for_batch(self, batch: Batch) -> None:
        """Compiles the step for batches of this shape."""
        self.compile_for(self._shape_of(batch))

    def hlo_texts(self) -> list[str]:
        """Returns the HLO text of the step for each compiled shape."""
        return [compiled.as_text() for compiled in self._compiled.values()]

    def compile_for(self, shape: tuple[int, int]) -> None:
        """Compiles the step for global batches of (rows, slots)."""
        several = len(self.layout.planned) > 1
        of_shape = f" for {shape[0]:,} rows of {shape[1]} slots" * several
        self.log(f"Compiling the training step{of_shape}, {self.about} …")
        began = time.perf_counter()
        lowered = lower_step(self._step, self.state, batch_shape=shape)
        self._compiled[shape] = lowered.compile()
        self.log(f"Compiled in {time.perf_counter() - began:.0f} s.")
        # Collectives time out, in Gloo after 30 s, so all processes start together.
        barrier(current_processes(), "compile the step")

    def choose_micro_batches(self, memory: int) -> None:
        """Compiles for the longest rows, with the fewest micro-batches that fit.

        Args:
          memory: bytes that the step may use on a device.

        Raises:
          ConfigError: it does not fit even with one row at a time.
        """
        rows_of_a_device = self.layout.shapes[-1][0] // row_shards(self.layout.mesh)
        micro_batches = 1
        while True:
            self._compiled.clear()  # for another number of micro-batches
            self._step = self.make_step(micro_batches)
            self.layout = dataclasses.replace(self.layout, micro_batches=micro_batches)
            if not (excess := self._excess(memory)):
                return
            micro = pluralize(micro_batches, "micro-batch")
            self.log(f"A step with {micro} does not fit: {excess}.")
            if micro_batches >= rows_of_a_device:
                raise ConfigError(
                    f"A training step of one row at a time does not fit a device: "
                    f"{excess}. Raise config.mesh.fsdp, set config.model.remat=True, "
                    "or lower config.data.row_length."
                )
            micro_batches = min(2 * micro_batches, rows_of_a_device)

    def _excess(self, memory: int) -> str:
        """Compiles the step; describes how it exceeds the memory, "" if it fits."""
        shape = self.layout.shapes[-1]
        try:
            self.compile_for(shape)
        except jax.errors.JaxRuntimeError as error:
            # Some compilers reject what does not fit.
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            return "it takes more than there is"
        needed = memory_of(self._compiled[shape]).total
        takes = f"it takes {needed / _GIGABYTE:.1f} of {memory / _GIGABYTE:.1f} GB"
        return takes if needed > memory else ""

    def _shape_of(self, batch: Batch) -> tuple[int, int]:
        """Returns the shape of the global batch of this process's rows."""
        rows, length = batch.source.shape
        return rows * self.layout.share.count, length
