"""The text of `--version`, without importing JAX."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError, version

import t2t_jax

_SHOWN = {"JAX": "jax", "Flax": "flax"}


def version_text() -> str:
    """Names the versions of t2t_jax, Python, JAX and Flax.

    Example:
      >>> version_text().startswith("t2t-jax ")
      True
    """
    parts = [f"Python {platform.python_version()}"]
    for name, package in _SHOWN.items():
        try:
            parts.append(f"{name} {version(package)}")
        except PackageNotFoundError:
            parts.append(f"{name} not installed")
    return f"t2t-jax {t2t_jax.__version__} ({', '.join(parts)})"
