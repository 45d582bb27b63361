"""The functions of formulas, and what is the paper's and what is not, from the code."""

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from markdown_text import named, prose, table

from t2t_jax.config import Config, defaults, parse
from t2t_jax.config_files import load_config
from t2t_jax.run.description import departures as lists
from t2t_jax.run.description.paper_defaults import paper_defaults
from t2t_jax.run.description.table3_rows import TABLE_3

_PARSERS = ("parsing_wsj", "parsing_semi", "parsing_gum")
# Keys that depart by a rule, and a value of each that does.
_BY_A_RULE = {
    "model.num_decoder_layers": 2,
    "model.position_rates": "tensor2tensor",
    "data.tokens_per_batch": 4_096,
    "data.max_length": 128,
    "optimizer.name": "adamw",
    "optimizer.schedule": "cosine",
    "optimizer.peak_learning_rate": 1e-3,
    "decoding.min_tokens": 3,
    "checkpoint.every_minutes": 7.0,
    "checkpoint.every_steps": 1_000,
    "checkpoint.every_epochs": 1,
    "checkpoint.keep": 10,
}
_ROOT = Path(__file__).parents[2]
_MAP = "docs/explanation/paper/index.md"


def source(symbol: str) -> Iterator[str]:
    """Yields the code of a function, without its docstring, and where it is.

    Args:
      symbol: such as `t2t_jax.functional.attention.attention`.
    """
    module, _, name = symbol.rpartition(".")
    found = getattr(importlib.import_module(module), name)
    text = textwrap.dedent(inspect.getsource(found))
    code = text.splitlines()
    first_statement = ast.parse(text).body[0].body[0]  # type: ignore[attr-defined]
    if isinstance(getattr(first_statement, "value", None), ast.Constant):
        del code[first_statement.lineno - 1 : first_statement.end_lineno]
        if not code[first_statement.lineno - 1]:  # the blank line below that of a class
            del code[first_statement.lineno - 1]
    path = module.replace(".", "/") + ".py"
    described = f"; described in {_symbol(symbol)}" if _has_page(symbol) else ""
    yield from ["```python", *code, "```", "", f"[`{path}`](/{path}){described}"]


def _has_page(symbol: str) -> bool:
    return symbol.startswith("t2t_jax.functional.") and "._" not in symbol


def where(section: str) -> Iterator[str]:
    """Yields what the map of the paper has for a section.

    Args:
      section: how the first cell of its row begins, such as `§3.2.1`.
    """
    text = (_ROOT / _MAP).read_text(encoding="utf-8")
    row = re.search(rf"^\| {re.escape(section)}.*$", text, re.MULTILINE)
    if row is None:
        raise ValueError(f"{_MAP} has no row of the paper for {section}.")
    _, _, program, keys, tests, *_ = row[0].split("|")
    yield from ["> **In the program**", ">"]
    if symbols := re.findall(r"`(\w+)`\]\([./]*([\w/]+)\.py\)", program):
        names = [f"{path.replace('/', '.')}.{name}" for name, path in symbols]
        yield "> - " + ", ".join(map(_symbol, names))
    if found := re.findall(r"`(?:config\.)?([^`]+)`", keys):
        yield "> - keys: " + ", ".join(named(f"config.{key}") for key in found)
    if paths := re.findall(r"\([./]*(tests/[^)]+)\)", tests):
        yield "> - tests: " + ", ".join(f"[`{path}`](/{path})" for path in paths)


def _symbol(symbol: str) -> str:
    """Returns a link to the description or to the file of a function or class."""
    module, _, name = symbol.rpartition(".")
    if _has_page(symbol):
        return f"[`{name}`](/docs/reference/api/functional.md#{name})"
    return f"[`{name}`](/{module.replace('.', '/')}.py)"


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


def parsers() -> Iterator[str]:
    """Yields what the shipped parsers do otherwise than §6.3, by their choice."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for name in _PARSERS:
        settings = load_config(name).to_dict()
        for known in lists.departures(parse(settings)):
            if known.key:
                cells = found.setdefault((known.name, known.paper), {})
                cells[name] = prose(known.here)
    rows = [
        [what, prose(printed), *(cells.get(name, "as the paper") for name in _PARSERS)]
        for (what, printed), cells in found.items()
    ]
    header = ["what", "the paper", *(f"`{name}`" for name in _PARSERS)]
    yield from table(header, rows)


def choices() -> Iterator[str]:
    """Yields the keys that depart from the paper when they are changed."""
    rows = [
        [
            prose(known.key.replace("network.", "model.")),
            f"`{known.faithful}`" if known.faithful != "" else "empty",
            known.name,
            prose(known.paper),
        ]
        for known in paper_defaults()
    ]
    yield from table(["key", "the paper's value", "what it changes", "the paper"], rows)
    rows = [
        [prose(key), f"`{defaults()[key]}`", *_departure(key, value)]
        for key, value in _BY_A_RULE.items()
    ]
    about = "Other values of these keys can be departures as well, by a rule for each: "
    yield from [
        "",
        f"{about}the batch, say, may differ from the paper's by a fifth.",
        "",
    ]
    yield from table(["key", "default", "what it changes", "the paper"], rows)


def _departure(key: str, value: object) -> list[str]:
    """Returns what another value of a key changes, and how the paper has it."""
    section, _, name = key.partition(".")
    found = lists.departures(parse({section: {name: value}}))
    (known,) = (one for one in found if one.key == key)
    return [known.name, prose(known.paper)]


def table3() -> Iterator[str]:
    """Yields the rows of Table 3: what each changes, and what the paper prints."""
    rows = []
    for name, row in TABLE_3.items():
        changed = [f"`{key}={value}`" for key, value in row.changes.items()]
        printed = [(row.perplexity, ".2f"), (row.dev_bleu, ".1f"), (row.millions, "d")]
        shown = ["" if value is None else f"{value:{form}}" for value, form in printed]
        rows.append([f"`{name}`", ", ".join(changed) or "nothing", *shown])
    yield from table(
        ["row", "what it changes", "perplexity", "BLEU", "million parameters"], rows
    )
