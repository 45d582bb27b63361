"""The layout of a batch's rows over devices and micro-batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
from jax.sharding import Mesh

from t2t_jax.sharding.mesh import local_batch_shard, round_up_rows, row_shards
from t2t_jax.types import BatchShard


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
        return round_up_rows(self.mesh, 1, micro_batches=self.micro_batches)

    @property
    def shapes(self) -> list[tuple[int, int]]:
        """The shapes of the batches, padded with empty rows to be divisible."""
        return [
            (round_up_rows(self.mesh, rows, micro_batches=self.micro_batches), length)
            for rows, length in self.planned
        ]

    def text(self) -> str:
        """Describes how batches are split, and the padding rows.

        Example:
          >>> import jax
          >>> from t2t_jax.sharding.mesh import make_mesh
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
            if rows > wanted:
                fills = (  # Another number would change the length buckets.
                    f" A data.tokens_per_batch of {rows * length:,} would fill them."
                    if len(self.planned) == 1
                    else ""
                )
                lines.append(
                    f"{rows - wanted} of {rows} rows x {length} slots are empty, so "
                    f"that all parts are alike.{fills}"
                )
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
