"""The reference of Python: what `t2t_jax` exports, and the modules of formulas."""

import ast
import importlib
import inspect
import pkgutil
import re
import textwrap
from collections.abc import Iterator

from markdown_text import docstring

import t2t_jax
from t2t_jax import functional as formulas
from t2t_jax import types

_SHOWN = ("one_of", "field", "dataclasses.field")
_Definition = ast.FunctionDef | ast.ClassDef


def exports(folders: str) -> Iterator[str]:
    """Yields the exports of `t2t_jax` that are defined below some of its folders.

    Args:
      folders: names of folders or files, such as `decoding`, with spaces between them.
    """
    for name, module in t2t_jax.LAZY_EXPORTS.items():
        if module.split(".")[1] in folders.split():
            source = inspect.getsource(importlib.import_module(module))
            (node,) = (n for n in _definitions(ast.parse(source)) if n.name == name)
            yield from _entry(f"t2t_jax.{name}", node, source, level=3)
            path = module.replace(".", "/")
            file = path + ("/__init__" if _is_package(module) else "") + ".py"
            yield from [f"Defined in [`{file}`](/{file}).", ""]


def _is_package(module: str) -> bool:
    return hasattr(importlib.import_module(module), "__path__")


def functional() -> Iterator[str]:
    """Yields a section for each module of formulas."""
    for found in pkgutil.iter_modules(formulas.__path__):
        module = importlib.import_module(f"t2t_jax.functional.{found.name}")
        source = inspect.getsource(module)
        yield from ["", f"## t2t_jax.functional.{found.name}"]
        yield from docstring(module.__doc__ or "")
        for node in _definitions(ast.parse(source)):
            yield from _entry(node.name, node, source, level=3)


def axes() -> Iterator[str]:
    """Yields the legend of the letters of axes."""
    yield from ["```text", (types.__doc__ or "").partition("\n\n")[2].strip(), "```"]


def _definitions(tree: ast.Module | ast.ClassDef) -> Iterator[_Definition]:
    """Yields the public functions and classes that a module or class documents."""
    for node in tree.body:
        if isinstance(node, _Definition) and ast.get_docstring(node):
            if not node.name.startswith("_") or node.name == "__call__":
                yield node


def _lineage(node: ast.ClassDef, source: str) -> list[ast.ClassDef]:
    """Returns the classes of the same file that a class extends, then itself."""
    bases = {ast.unparse(base) for base in node.bases}
    known = (one for one in ast.parse(source).body if isinstance(one, ast.ClassDef))
    return [*(one for one in known if one.name in bases), node]


def _entry(name: str, node: _Definition, source: str, *, level: int) -> Iterator[str]:
    """Yields the description of a function, or of a class with its methods."""
    yield from ["", f"{'#' * level} `{name}`", ""]
    yield from ["```python", _declaration(node, source), "```"]
    yield from docstring(ast.get_docstring(node) or "")
    if isinstance(node, ast.ClassDef):
        found = {m.name: m for one in _lineage(node, source) for m in _definitions(one)}
        for method in found.values():
            yield from _entry(
                f"{name.removeprefix('t2t_jax.')}.{method.name}",
                method,
                source,
                level=level + 1,
            )


def _declaration(node: _Definition, source: str) -> str:
    """Returns the head of a function, or that of a class with its fields."""
    lines = source.splitlines()
    first = min(n.lineno for n in [node, *node.decorator_list])
    head = "\n".join(lines[first - 1 : node.body[0].lineno - 1])
    fields = {
        ast.unparse(field.target): _field(field, source)
        for one in (_lineage(node, source) if isinstance(node, ast.ClassDef) else ())
        for field in one.body
        if isinstance(field, ast.AnnAssign) and "ClassVar" not in ast.dump(field)
    }
    body = "".join(f"\n{field}" for field in fields.values()) or " ..."
    return textwrap.dedent(re.sub(r"  # noqa: .*", "", head) + body)


def _field(field: ast.AnnAssign, source: str) -> str:
    """Returns a field with its default, or the values that `one_of` lists."""
    shown = field.value
    if isinstance(shown, ast.Call) and ast.unparse(shown.func) not in _SHOWN:
        shown = shown.args[0] if shown.args else shown
    head = f"    {ast.unparse(field.target)}: {ast.unparse(field.annotation)}"
    return f"{head} = {ast.get_source_segment(source, shown)}" if shown else head
