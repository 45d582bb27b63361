"""The functions of formulas, and what is the paper's and what is not, from the code."""

import ast
import importlib
import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path

from markdown_text import prose, table

from t2t_jax.config import Config
from t2t_jax.description import departures as lists
from t2t_jax.description.paper_defaults import PAPER_DEFAULTS
from t2t_jax.description.table3 import TABLE_3

_BLOB = "https://github.com/t2t-jax/t2t_jax/blob/main"


def source(symbol: str) -> Iterator[str]:
    """Yields the code of a function, without its docstring, and where it is.

    Args:
      symbol: such as `t2t_jax.functional.attention.attention`.
    """
    module, _, name = symbol.rpartition(".")
    lines, first = inspect.getsourcelines(
        getattr(importlib.import_module(module), name)
    )
    text = textwrap.dedent("".join(lines))
    docstring = ast.parse(text).body[0].body[0]
    code = text.splitlines()
    del code[docstring.lineno - 1 : docstring.end_lineno]
    path = Path(*module.split(".")).with_suffix(".py")
    yield from ["```python", *code, "```", "", "{.source}"]
    yield f"[{path}]({_BLOB}/{path}#L{first}); described in {{py:obj}}`{symbol}`"
    yield ""


def matches() -> Iterator[str]:
    """Yields what the default configuration does exactly as the paper."""
    rows = [[match.name, prose(match.paper)] for match in lists.matches(Config())]
    yield from table(["what", "as the paper has it"], rows)


def departures() -> Iterator[str]:
    """Yields what the default configuration does otherwise."""
    rows = [
        [known.name, prose(known.paper), prose(known.here)]
        for known in lists.departures(Config())
    ]
    yield from table(["what", "the paper", "here"], rows)


def choices() -> Iterator[str]:
    """Yields the keys that depart from the paper when they are changed."""
    rows = [
        [
            prose(known.key.replace("network.", "model.")),
            f"`{known.faithful}`" if known.faithful != "" else "empty",
            known.name,
            prose(known.paper),
        ]
        for known in PAPER_DEFAULTS
    ]
    yield from table(["key", "the paper's value", "what it changes", "the paper"], rows)


def table3() -> Iterator[str]:
    """Yields the rows of Table 3: what each changes, and what the paper prints."""
    rows = []
    for name, row in TABLE_3.items():
        changed = [f"`{key}={value}`" for key, value in row.changes.items()]
        printed = [row.perplexity, row.dev_bleu, row.millions]
        shown = ["" if value is None else f"{value:g}" for value in printed]
        rows.append([f"`{name}`", ", ".join(changed) or "nothing", *shown])
    yield from table(
        ["row", "what it changes", "perplexity", "BLEU", "million parameters"], rows
    )
