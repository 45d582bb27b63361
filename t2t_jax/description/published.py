"""Results in Tables 2 and 3 of the paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

DEV = "newstest2013, English to German"
"""Test set of perplexity and BLEU in Table 3."""

TESTS = {
    "En-De": "newstest2014, English to German",
    "En-Fr": "newstest2014, English to French",
}
"""Test sets of BLEU in Table 2, by direction."""


class PaperResult(NamedTuple):
    """Results of one model in the paper.

    Attributes:
      perplexity: per subword, on `DEV`; None if not reported, as below.
      millions: parameters, in millions. If Table 3 omits them they are the base's.
      test_bleu: tokenised, compound-split BLEU on one of `TESTS`.

    Paper: Table 3; `test_bleu`: Table 2.
    """

    perplexity: float | None = None
    dev_bleu: float | None = None
    millions: int | None = None
    test_bleu: float | None = None


PAPER_RESULTS: Mapping[str, PaperResult] = {
    "base": PaperResult(4.92, 25.8, 65, 27.3),
    "A_h1": PaperResult(5.29, 24.9),
    "A_h4": PaperResult(5.00, 25.5),
    "A_h16": PaperResult(4.91, 25.8),
    "A_h32": PaperResult(5.01, 25.4),
    "B_dk16": PaperResult(5.16, 25.1, 58),
    "B_dk32": PaperResult(5.01, 25.4, 60),
    "C_N2": PaperResult(6.11, 23.7, 36),
    "C_N4": PaperResult(5.19, 25.3, 50),
    "C_N8": PaperResult(4.88, 25.5, 80),
    "C_d256": PaperResult(5.75, 24.5, 28),
    "C_d1024": PaperResult(4.66, 26.0, 168),
    "C_ff1024": PaperResult(5.12, 25.4, 53),
    "C_ff4096": PaperResult(4.75, 26.2, 90),
    "D_drop0": PaperResult(5.77, 24.6),
    "D_drop02": PaperResult(4.95, 25.5),
    "D_ls0": PaperResult(4.67, 25.3),
    "D_ls02": PaperResult(5.47, 25.7),
    "E_learned": PaperResult(4.92, 25.7),
    "big": PaperResult(4.33, 26.4, 213, 28.4),
    "En-Fr_base": PaperResult(test_bleu=38.1),
    "En-Fr_big": PaperResult(test_bleu=41.8),
}
"""Results of each row of `table3.ROWS`."""


def paper_result(row: str) -> dict[str, float | str | bool | None] | None:
    """Returns the results of a row in the paper, with their test sets.

    Args:
      row: from `table3.table3_row`; "" for none.

    Returns:
      JSON values; None if the configuration is not a row of the paper.

    Example:
      >>> paper_result("C_N2")["perplexity"], paper_result("En-Fr_big")["test_bleu"]
      (6.11, 41.8)
    """
    if row not in PAPER_RESULTS:
        return None
    found = PAPER_RESULTS[row]
    is_in_table_3 = found.perplexity is not None
    as_base = is_in_table_3 and found.millions is None
    direction = "En-Fr" if row.startswith("En-Fr") else "En-De"
    return {
        "parameters_in_millions": PAPER_RESULTS["base"].millions
        if as_base
        else found.millions,
        "parameters_as_base": as_base,
        "perplexity": found.perplexity,
        "dev_bleu": found.dev_bleu,
        "dev_set": DEV if is_in_table_3 else None,
        "test_bleu": found.test_bleu,
        "test_set": TESTS[direction] if found.test_bleu else None,
    }
