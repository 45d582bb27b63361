"""Checks array shapes against the axis letters of `t2t_jax.types`."""

from __future__ import annotations

from t2t_jax.types import Array


def check_axes(**arrays: tuple[Array | None, str]) -> dict[str, int]:
    """Checks the number of axes of arrays, and that their sizes agree.

    A suffix in a name (`memory_BxSxD`) is not checked; this is the check for a public
    entry point. Shapes are static, so it costs nothing in a compiled program.

    Args:
      **arrays: for each argument, the array and its axes, written as in a suffix:
        `"BxSxD"`. A number is a fixed size (`"BxSx512"`), a leading `...` stands for
        any axes. None is an omitted argument, and is not checked.

    Raises:
      ValueError: an array has another number of axes, or a letter two sizes.

    Example:
      >>> import numpy as np
      >>> check_axes(source=(np.zeros((2, 3)), "BxS"), rows=(None, "B"))
      {'B': 2, 'S': 3}
    """
    sizes: dict[str, int] = {}
    first_use: dict[str, str] = {}
    for name, (array, axes) in arrays.items():
        if array is None:
            continue
        letters = axes.split("x")
        shape = array.shape
        if letters[0] == "...":
            letters = letters[1:]
            shape = shape[max(0, len(shape) - len(letters)) :]
        if len(shape) != len(letters):
            raise ValueError(
                f"{name} must have the axes {_format_axes(axes)}; its shape is "
                f"{list(array.shape)}. Pass {len(letters)} axes."
            )
        for letter, size in zip(letters, shape, strict=True):
            expected = int(letter) if letter.isdigit() else sizes.get(letter, size)
            if size != expected:
                where = f" (as in {first_use[letter]})" if letter in first_use else ""
                raise ValueError(
                    f"{name} must be {_format_axes(axes)} with "
                    f"{letter}={expected}{where}; its shape is {list(array.shape)}. "
                    f"Pass arrays whose axis {letter} agrees."
                )
            if not letter.isdigit():
                sizes.setdefault(letter, size)
                first_use.setdefault(letter, name)
    return sizes


def _format_axes(axes: str) -> str:
    """Formats "BxSxD" as [B, S, D]."""
    return f"[{', '.join(axes.split('x'))}]"
