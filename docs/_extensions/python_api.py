"""The reference of Python: what `t2t_jax` exports, and the modules of formulas."""

import inspect
import pkgutil
from collections.abc import Iterator

import t2t_jax
from t2t_jax import functional as formulas


def exports(folders: str) -> Iterator[str]:
    """Yields the exports of `t2t_jax` that are defined below some of its folders.

    Args:
      folders: names of folders or files, such as `decoding`, with spaces between them.
    """
    for name, path in t2t_jax.LAZY_EXPORTS.items():
        if path.split(".")[1] in folders.split():
            yield from _automatic(f"t2t_jax.{name}", getattr(t2t_jax, name))


def functional() -> Iterator[str]:
    """Yields a section for each module of formulas."""
    for found in pkgutil.iter_modules(formulas.__path__):
        module = f"t2t_jax.functional.{found.name}"
        yield from ["", f"## {found.name}", "", "```{eval-rst}"]
        yield from [f".. automodule:: {module}", "   :members:", "```", ""]


def _automatic(name: str, exported: object) -> Iterator[str]:
    yield "```{eval-rst}"
    if not inspect.isclass(exported):
        yield f".. autofunction:: {name}"
    elif issubclass(exported, Exception):
        yield from [f".. autoexception:: {name}"]
    else:
        yield from [f".. autoclass:: {name}", "   :members:"]
    yield from ["```", ""]
