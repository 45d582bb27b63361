"""The reference of Python: what `t2t_jax` exports, and the modules of formulas."""

import inspect
import pkgutil
from collections.abc import Iterator

import t2t_jax
from t2t_jax import functional as formulas


def exports(module: str) -> Iterator[str]:
    """Yields the exports of `t2t_jax` that are defined below one of its folders.

    Args:
      module: name of the folder or file, such as `decoding`; `other` for those whose
        folder has no part of the page.
    """
    folders = [*_FOLDERS] if module == "other" else []
    for name, path in t2t_jax.LAZY_EXPORTS.items():
        folder = path.split(".")[1]
        if folder == module or (folders and folder not in folders):
            yield from _automatic(f"t2t_jax.{name}", getattr(t2t_jax, name))


_FOLDERS = ("inference", "decoding", "model", "exchange", "types")


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
