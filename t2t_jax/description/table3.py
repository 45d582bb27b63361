"""Variations in the paper: Table 3, and the English-French models of Table 2.

A configuration that equals one of these rows is the paper's, though not its base.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from t2t_jax.config import Config, flatten, to_dict

_BIG = {
    "model.d_model": 1024,
    "model.d_ff": 4096,
    "model.num_heads": 16,
    "steps": 300_000,
}
_ENGLISH_FRENCH = {"vocabulary.size": 32_000}


def _heads(num_heads: int) -> dict[str, int]:
    """Returns the keys for another number of heads at d_model 512."""
    depth = 512 // num_heads
    return {"model.num_heads": num_heads, "model.d_k": depth, "model.d_v": depth}


def _width(d_model: int) -> dict[str, int]:
    """Returns the keys for another d_model with 8 heads."""
    depth = d_model // 8
    return {"model.d_model": d_model, "model.d_k": depth, "model.d_v": depth}


ROWS: Mapping[str, Mapping[str, Any]] = {
    "base": {},
    "A_h1": _heads(1),
    "A_h4": _heads(4),
    "A_h16": _heads(16),
    "A_h32": _heads(32),
    "B_dk16": {"model.d_k": 16},
    "B_dk32": {"model.d_k": 32},
    "C_N2": {"model.num_layers": 2},
    "C_N4": {"model.num_layers": 4},
    "C_N8": {"model.num_layers": 8},
    "C_d256": _width(256),
    "C_d1024": _width(1024),
    "C_ff1024": {"model.d_ff": 1024},
    "C_ff4096": {"model.d_ff": 4096},
    "D_drop0": {"model.dropout": 0.0},
    "D_drop02": {"model.dropout": 0.2},
    "D_ls0": {"training.label_smoothing": 0.0},
    "D_ls02": {"training.label_smoothing": 0.2},
    "E_learned": {"model.positions": "learned"},
    "big": {**_BIG, "model.dropout": 0.3},
    "En-Fr_base": _ENGLISH_FRENCH,
    "En-Fr_big": {**_BIG, **_ENGLISH_FRENCH},
}
"""The models of Tables 2 and 3: the keys in which each differs from base."""

_VARIED = tuple(dict.fromkeys(key for row in ROWS.values() for key in row))


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


def table3_row(config: Config) -> str:
    """Returns the name of the row that a configuration equals, or "".

    Keys that the paper does not vary are ignored.

    Example:
      >>> table3_row(Config()), table3_row(Config(steps=7))
      ('base', '')
    """
    if config.architecture != "transformer":
        return ""
    changed = {key: here for key, _, here in _changed_keys(config)}
    return next((name for name, row in ROWS.items() if row == changed), "")


def variations(config: Config) -> list[Variation]:
    """Lists the varied keys in which a configuration differs from base.

    Returns:
      One entry per key; its `row` is that of the configuration, if it equals one.

    Paper:
      Table 3; §5.1 and §6.1 for English-French.

    Example:
      >>> variations(Config(steps=300_000))
      [Variation(key='steps', base=100000, here=300000, row='big, En-Fr')]
    """
    own_row = table3_row(config)
    found = []
    for key, base, here in _changed_keys(config):
        names = [name for name, row in ROWS.items() if row.get(key, base) == here]
        letters = dict.fromkeys(map(_letter, [own_row] if own_row else names))
        found.append(Variation(key, base, here, ", ".join(letters)))
    return found


def _letter(row: str) -> str:
    return row.partition("_")[0]


def _changed_keys(config: Config) -> list[tuple[str, Any, Any]]:
    """Lists (key, base, here) of the varied keys that differ from base."""
    base, here = (dict(flatten(to_dict(c))) for c in (Config(), config))
    other_model = config.architecture != "transformer"
    return [
        (key, base[key], here[key])
        for key in _VARIED
        if base[key] != here[key] and not (other_model and key.startswith("model."))
    ]
