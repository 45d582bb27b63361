"""What the paper prints of its own models: the figures of Tables 2 and 3."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

DEV = "newstest2013, English to German"
"""What perplexity and BLEU of Table 3 are measured on."""

TESTS = {
    "En-De": "newstest2014, English to German",
    "En-Fr": "newstest2014, English to French",
}
"""What BLEU of Table 2 is measured on, by the direction."""


class Printed(NamedTuple):
    """The figures of one model, as the paper prints them.

    Attributes:
      perplexity: per subword, on `DEV`; None where none is printed, as below.
      dev_bleu: tokenised BLEU on `DEV`.
      millions: parameters, in millions. Where Table 3 prints none they are the base's.
      test_bleu: tokenised, compound-split BLEU on one of `TESTS`.

    Paper: Table 3, but for `test_bleu`, which is Table 2's.
    """

    perplexity: float | None = None
    dev_bleu: float | None = None
    millions: int | None = None
    test_bleu: float | None = None


PRINTED: Mapping[str, Printed] = {
    "base": Printed(4.92, 25.8, 65, 27.3),
    "A_h1": Printed(5.29, 24.9),
    "A_h4": Printed(5.00, 25.5),
    "A_h16": Printed(4.91, 25.8),
    "A_h32": Printed(5.01, 25.4),
    "B_dk16": Printed(5.16, 25.1, 58),
    "B_dk32": Printed(5.01, 25.4, 60),
    "C_N2": Printed(6.11, 23.7, 36),
    "C_N4": Printed(5.19, 25.3, 50),
    "C_N8": Printed(4.88, 25.5, 80),
    "C_d256": Printed(5.75, 24.5, 28),
    "C_d1024": Printed(4.66, 26.0, 168),
    "C_ff1024": Printed(5.12, 25.4, 53),
    "C_ff4096": Printed(4.75, 26.2, 90),
    "D_drop0": Printed(5.77, 24.6),
    "D_drop02": Printed(4.95, 25.5),
    "D_ls0": Printed(4.67, 25.3),
    "D_ls02": Printed(5.47, 25.7),
    "E_learned": Printed(4.92, 25.7),
    "big": Printed(4.33, 26.4, 213, 28.4),
    "En-Fr_base": Printed(test_bleu=38.1),
    "En-Fr_big": Printed(test_bleu=41.8),
}
"""The figures of each row of `variations.ROWS`."""


def printed_of(row: str) -> dict[str, float | str | bool | None] | None:
    """Returns what the paper prints of a row, with what it was measured on.

    Args:
      row: as `variations.table3_row` names it; "" for none.

    Returns:
      JSON values; None where the configuration is not a row of the paper.

    Example:
      >>> printed_of("C_N2")["perplexity"], printed_of("En-Fr_big")["test_bleu"]
      (6.11, 41.8)
    """
    if row not in PRINTED:
        return None
    found = PRINTED[row]
    is_in_table_3 = found.perplexity is not None
    as_base = is_in_table_3 and found.millions is None
    direction = "En-Fr" if row.startswith("En-Fr") else "En-De"
    return {
        "parameters_in_millions": PRINTED["base"].millions
        if as_base
        else found.millions,
        "parameters_as_base": as_base,
        "perplexity": found.perplexity,
        "dev_bleu": found.dev_bleu,
        "dev_set": DEV if is_in_table_3 else None,
        "test_bleu": found.test_bleu,
        "test_set": TESTS[direction] if found.test_bleu else None,
    }
