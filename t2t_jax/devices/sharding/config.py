"""Configuration of the device mesh (no JAX needed)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from t2t_jax.errors import ErrorCollector, checked

_MAX_DEVICES = 100_000
_SPLIT_BY = {"tensor": ("num_heads", "d_ff"), "fsdp": ("d_model", "d_hidden")}


def axis_size(default: int) -> Any:
    """Makes a field for the size of an axis."""
    rule = "be at least 1, or -1 for the rest of the devices"
    return checked(default, rule, lambda x: x >= 1 or x == -1, most=_MAX_DEVICES)


@dataclass(frozen=True, kw_only=True)
class MeshConfig:
    """The device mesh: data x fsdp x tensor must be the number of devices.

    The mesh changes only the order of floating-point sums.

    Attributes:
      data (devices): Size of the axis that splits the rows of a batch and replicates
        the parameters; -1 for all devices that the other two axes leave.
      fsdp (devices): Size of the axis that splits rows and parameters (fully sharded
        data parallelism): each layer's parameters are gathered when they are used.
      tensor (devices): Size of the axis that splits heads, the inner feed-forward width
        and the vocabulary; these devices process the same rows.
      shard_optimizer: Whether to split the optimizer's moments over `data` as well
        (ZeRO-1), which saves memory and costs a gather of the updated parameters.

    Raises:
      ConfigError: values are not valid; all are listed.
    """

    data: int = axis_size(-1)
    fsdp: int = axis_size(1)
    tensor: int = axis_size(1)
    shard_optimizer: bool = False

    def __post_init__(self) -> None:
        problems = ErrorCollector("mesh", self)
        rest = [name for name, size in self.axes.items() if size == -1]
        problems.check(
            len(rest) <= 1,
            f"Only one of {', '.join(f'mesh.{name}' for name in rest)} may be -1, the "
            f"rest of the devices. Change config.mesh.{rest[0] if rest else ''}.",
        )
        problems.raise_if_any()

    @property
    def axes(self) -> dict[str, int]:
        """The sizes of the axes, as `make_mesh` takes them.

        Example:
          >>> MeshConfig(fsdp=2).axes
          {'data': -1, 'fsdp': 2, 'tensor': 1}
        """
        return {"data": self.data, "fsdp": self.fsdp, "tensor": self.tensor}

    def check_divisible(
        self, problems: ErrorCollector, network: object, *, section: str
    ) -> None:
        """Checks that the mesh axes divide the sizes of a model.

        Args:
          problems: collects the errors.
          network: the configuration of the model, with sizes as attributes.
          section: the name of its section.
        """
        for axis, names in _SPLIT_BY.items():
            parts = getattr(self, axis)
            for name in names:
                key, size = f"{section}.{name}", getattr(network, name, parts)
                rule = f"be divisible by mesh.{axis}={parts}, which splits it"
                text = f"{key}={size} must {rule}. Change config.mesh.{axis}."
                problems.check(parts < 1 or size % parts == 0, text)
