"""How the devices of a run are arranged (no JAX needed)."""

from __future__ import annotations

from dataclasses import dataclass

from t2t_jax.errors import ErrorCollector

_MOST_DEVICES = 100_000
_SPLIT_BY = {"tensor": ("num_heads", "d_ff"), "fsdp": ("d_model", "d_hidden")}


@dataclass(frozen=True, kw_only=True)
class MeshConfig:
    """The mesh of devices: data x fsdp x tensor must be their number.

    None of this changes what is computed, but for the order of floating-point sums.

    Attributes:
      data (devices): Number of parts into which the rows of a batch are split, each
        with all parameters; -1 for all devices that the other two axes leave.
      fsdp (devices): Number of parts into which rows and parameters are split (fully
        sharded data parallelism): a device gathers a layer's parameters when it needs
        them.
      tensor (devices): Number of parts into which heads, the inner feed-forward width
        and the vocabulary are split; these devices process the same rows.
      shard_optimizer: Whether to split Adam's moments over `data` as well (ZeRO-1). It
        saves memory, and costs gathering the updated parameters.

    Raises:
      ConfigError: rules are broken; it names them all.
    """

    data: int = -1
    fsdp: int = 1
    tensor: int = 1
    shard_optimizer: bool = False

    def __post_init__(self) -> None:
        problems = ErrorCollector()
        sizes = {"data": self.data, "fsdp": self.fsdp, "tensor": self.tensor}
        for name, size in sizes.items():
            problems.check(
                size >= 1 or size == -1,
                f"mesh.{name}={size} must be at least 1, or -1 for the rest of the "
                f"devices. Change config.mesh.{name}.",
            )
            problems.limit(f"mesh.{name}", size, _MOST_DEVICES)
        rest = [name for name, size in sizes.items() if size == -1]
        problems.check(
            len(rest) <= 1,
            f"Only one of {', '.join(f'mesh.{name}' for name in rest)} may be -1, the "
            f"rest of the devices. Change config.mesh.{rest[0] if rest else ''}.",
        )
        problems.raise_if_any()

    def require_division(
        self, problems: ErrorCollector, network: object, *, section: str
    ) -> None:
        """Checks that the axes of a model can be split as this says.

        Args:
          problems: takes what is wrong.
          network: the configuration of the model, with sizes as attributes.
          section: of the configuration, where they are set.
        """
        for axis, names in _SPLIT_BY.items():
            parts = getattr(self, axis)
            for name in names:
                size = getattr(network, name, parts)
                problems.check(
                    parts < 1 or size % parts == 0,
                    f"{section}.{name}={size} must be divisible by mesh.{axis}={parts},"
                    f" which splits it. Change config.mesh.{axis}.",
                )
