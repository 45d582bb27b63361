"""Table 3 of the paper, and the English-French models of Table 2.

A configuration that equals one of these rows is the paper's, though not its base.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from t2t_jax.config import Config, flatten, to_dict
from t2t_jax.run.description.parsing import is_parser


class Row(NamedTuple):
    """A model of the paper; None for results that are not printed.

    Attributes:
      changes: the keys in which it differs from base.
      perplexity: per subword, on newstest2013.
      dev_bleu: on newstest2013; tokenized and compound-split, as `test_bleu`.
      millions: parameters, in millions; if Table 3 omits them, they are those of base.
      test_bleu: on newstest2014 (Table 2).
    """

    changes: Mapping[str, Any]
    perplexity: float | None = None
    dev_bleu: float | None = None
    millions: int | None = None
    test_bleu: float | None = None


_BIG = {"model.d_model": 1024, "model.d_ff": 4096, "model.num_heads": 16}
_ENGLISH_FRENCH = {"vocabulary.size": 32_000}


def _heads(number: int, depth: int) -> dict[str, int]:
    return {"model.num_heads": number, "model.d_k": depth, "model.d_v": depth}


def _width(d_model: int) -> dict[str, int]:
    depth = d_model // 8
    return {"model.d_model": d_model, "model.d_k": depth, "model.d_v": depth}


TABLE_3: Mapping[str, Row] = {
    "base": Row({}, 4.92, 25.8, 65, 27.3),
    "A_h1": Row(_heads(1, 512), 5.29, 24.9),
    "A_h4": Row(_heads(4, 128), 5.00, 25.5),
    "A_h16": Row(_heads(16, 32), 4.91, 25.8),
    "A_h32": Row(_heads(32, 16), 5.01, 25.4),
    "B_dk16": Row({"model.d_k": 16}, 5.16, 25.1, 58),
    "B_dk32": Row({"model.d_k": 32}, 5.01, 25.4, 60),
    "C_N2": Row({"model.num_layers": 2}, 6.11, 23.7, 36),
    "C_N4": Row({"model.num_layers": 4}, 5.19, 25.3, 50),
    "C_N8": Row({"model.num_layers": 8}, 4.88, 25.5, 80),
    "C_d256": Row(_width(256), 5.75, 24.5, 28),
    "C_d1024": Row(_width(1024), 4.66, 26.0, 168),
    "C_ff1024": Row({"model.d_ff": 1024}, 5.12, 25.4, 53),
    "C_ff4096": Row({"model.d_ff": 4096}, 4.75, 26.2, 90),
    "D_drop0": Row({"model.dropout": 0.0}, 5.77, 24.6),
    "D_drop02": Row({"model.dropout": 0.2}, 4.95, 25.5),
    "D_ls0": Row({"training.label_smoothing": 0.0}, 4.67, 25.3),
    "D_ls02": Row({"training.label_smoothing": 0.2}, 5.47, 25.7),
    "E_learned": Row({"model.positions": "learned"}, 4.92, 25.7),
    "big": Row({**_BIG, "steps": 300_000, "model.dropout": 0.3}, 4.33, 26.4, 213, 28.4),
}
"""The rows that `configs/table3.py` trains."""

ROWS: Mapping[str, Row] = {
    **TABLE_3,
    "En-Fr_base": Row(_ENGLISH_FRENCH, test_bleu=38.1),
    "En-Fr_big": Row({**_BIG, "steps": 300_000, **_ENGLISH_FRENCH}, test_bleu=41.8),
}

_VARIED = tuple(dict.fromkeys(key for row in ROWS.values() for key in row.changes))


class Variation(NamedTuple):
    """A key that the paper varies and that differs from base.

    Attributes:
      row: letters of Table 3's rows with this value, `big`, or `En-Fr` for Table 2;
        joined by commas; "" if no row has it.
    """

    key: str
    base: Any
    here: Any
    row: str


def table3_row(
    config: Config, rows: Mapping[str, Row] = ROWS, *, ignored: Collection[str] = ()
) -> str:
    """Returns the name of the row that a configuration equals, or "".

    Keys that the paper does not vary are ignored. Parsers are not among the rows.

    Args:
      ignored: keys that may also differ.

    Example:
      >>> table3_row(Config()), table3_row(Config(steps=7))
      ('base', '')
    """
    is_other = config.architecture != "transformer" or config.python.module
    if is_other or is_parser(config):
        return ""
    changed = {key: here for key, _, here in _changed_keys(config)}
    for name, row in rows.items():
        if all(key in ignored for key, _ in changed.items() ^ row.changes.items()):
            return name
    return ""


def closest_row(config: Config) -> str:
    """Returns the row of Table 3 whose model a configuration has, or "".

    Unlike in `table3_row`, the steps and the size of the vocabulary may differ.

    Example:
      >>> closest_row(Config(steps=7)), closest_row(Config())
      ('base', 'base')
    """
    return table3_row(config, TABLE_3, ignored=("steps", "vocabulary.size"))


def variations(config: Config) -> Iterator[Variation]:
    """Yields the varied keys in which a configuration differs from base.

    Parsers have none: Table 3 is about translation.

    Paper: Table 3; §5.1 and §6.1 for English-French.

    Example:
      >>> [*variations(Config(steps=300_000))]
      [Variation(key='steps', base=100000, here=300000, row='big, En-Fr')]
    """
    if is_parser(config):
        return
    own_row = table3_row(config)
    rows = {own_row: ROWS[own_row]} if own_row else ROWS
    for key, base, here in _changed_keys(config):
        names = [n for n, row in rows.items() if row.changes.get(key, base) == here]
        letters = dict.fromkeys(name.partition("_")[0] for name in names)
        yield Variation(key, base, here, ", ".join(letters))


def _changed_keys(config: Config) -> list[tuple[str, Any, Any]]:
    """Lists (key, base, here) of the varied keys that differ from base."""
    base, here = (dict(flatten(to_dict(c))) for c in (Config(), config))
    other_model = config.architecture != "transformer"
    return [
        (key, base[key], here[key])
        for key in _VARIED
        if base[key] != here[key] and not (other_model and key.startswith("model."))
    ]


def paper_result(row: str) -> dict[str, Any] | None:
    """Returns the results of a row in the paper, with their test sets.

    Returns:
      JSON values; None if `row` is not one of the paper.

    Example:
      >>> paper_result("C_N2")["perplexity"], paper_result("En-Fr_big")["test_bleu"]
      (6.11, 41.8)
    """
    if row not in ROWS:
        return None
    found, is_in_table_3 = ROWS[row], row in TABLE_3
    as_base = is_in_table_3 and found.millions is None
    target = "French" if row.startswith("En-Fr") else "German"
    return {
        "parameters_in_millions": (ROWS["base"] if as_base else found).millions,
        "parameters_as_base": as_base,
        "perplexity": found.perplexity,
        "dev_bleu": found.dev_bleu,
        "dev_set": "newstest2013, English to German" if is_in_table_3 else None,
        "test_bleu": found.test_bleu,
        "test_set": f"newstest2014, English to {target}" if found.test_bleu else None,
    }
