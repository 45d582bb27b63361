"""Checks arrays against the axis letters of `t2t_jax.types`."""

from __future__ import annotations

from t2t_jax.types import Array


def check_axes(**arrays: tuple[Array | None, str]) -> dict[str, int]:
    """Checks that arrays have the axes they should, of sizes that agree.

    A suffix in a name (`memory_BxSxD`) is a comment and can lie; this is the check
    that goes with it at a public entry point. Shapes are static, so it costs nothing
    in a compiled program.

    Args:
      **arrays: under each argument's name, the array and its axes, written as in a
        suffix: `"BxSxD"`. A number stands for itself (`"BxSx512"`), a leading `...` for
        any axes. None is an argument left out, and is not checked.

    Returns:
      The size of every letter met.

    Raises:
      ValueError: an array has another number of axes, or a letter two sizes.

    Example:
      >>> import numpy as np
      >>> check_axes(source=(np.zeros((2, 3)), "BxS"), rows=(None, "B"))
      {'B': 2, 'S': 3}
    """
    sizes: dict[str, int] = {}
    met_in: dict[str, str] = {}
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
                f"{name} must have the axes {_drawn(axes)}; it came with the shape "
                f"{list(array.shape)}. Pass {len(letters)} axes."
            )
        for letter, size in zip(letters, shape, strict=True):
            expected = int(letter) if letter.isdigit() else sizes.get(letter, size)
            if size != expected:
                where = f" (as in {met_in[letter]})" if letter in met_in else ""
                raise ValueError(
                    f"{name} must be {_drawn(axes)} with {letter}={expected}{where}; "
                    f"it came with the shape {list(array.shape)}. Pass arrays whose "
                    f"axis {letter} agrees."
                )
            if not letter.isdigit():
                sizes.setdefault(letter, size)
                met_in.setdefault(letter, name)
    return sizes


def _drawn(axes: str) -> str:
    """Writes "BxSxD" as [B, S, D]."""
    return f"[{', '.join(axes.split('x'))}]"
