"""The tensors of a foreign model, each taken once, with its shape checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from t2t_jax.errors import DataError

Array: TypeAlias = npt.NDArray[np.float32]

_MAX_LISTED = 5


class Source:
    """Tensors by name.

    Args:
      tensors: of any type of numbers.

    Attributes:
      name: of the file, for messages.
    """

    def __init__(self, tensors: Mapping[str, npt.NDArray[Any]], *, name: str):
        self.name = name
        self._tensors = tensors
        self._taken: set[str] = set()

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __contains__(self, tensor: str) -> bool:
        return tensor in self._tensors

    def shape(self, tensor: str) -> tuple[int, ...]:
        """Returns the shape of a tensor.

        Raises:
          DataError: the model does not have it.
        """
        if tensor not in self._tensors:
            raise DataError(
                f"{self.name} has no tensor {tensor}, which its configuration "
                "requires. Pass a complete model."
            )
        return self._tensors[tensor].shape

    def take(self, tensor: str, *shape: int) -> Array:
        """Returns a tensor as float32.

        Args:
          shape: the expected shape.

        Raises:
          DataError: the model does not have it, it has another shape, or its numbers
            are not finite.
        """
        if (found := self.shape(tensor)) != shape:
            raise DataError(
                f"{self.name}: {tensor} must have shape {shape} by its configuration, "
                f"and has {found}. Pass the files of one model."
            )
        self._taken.add(tensor)
        array = np.asarray(self._tensors[tensor], np.float32)
        if not np.isfinite(array).all():
            raise DataError(
                f"{self.name}: {tensor} has numbers that are not finite. Pass another "
                "checkpoint."
            )
        return array

    def check_all_taken(self, *, ignored: Iterable[str] = ()) -> None:
        """Checks that no tensor is left over, which would make another model.

        Args:
          ignored: tensors without an effect on the outputs.

        Raises:
          DataError: tensors are left over.
        """
        left = sorted(set(self._tensors) - self._taken - set(ignored))
        if left:
            more = f" and {len(left) - _MAX_LISTED:,} more" * (len(left) > _MAX_LISTED)
            raise DataError(
                f"{self.name} has tensors that a Transformer of its configuration "
                f"does not: {', '.join(left[:_MAX_LISTED])}{more}. Pass another model."
            )
