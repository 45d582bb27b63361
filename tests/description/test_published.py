import re

import pytest

from configs import table3
from t2t_jax.description.published import PAPER_RESULTS, paper_result
from t2t_jax.description.table3 import ROWS
from tests.configs import test_configs
from tests.integration.tiny import ROOT


def test_every_row_of_the_paper_has_its_figures():
    assert set(PAPER_RESULTS) == set(ROWS)


@pytest.mark.parametrize("row", table3.ROWS)
def test_the_figures_are_those_in_the_comments_of_the_config_file(row):
    text = (ROOT / "configs" / "table3.py").read_text(encoding="utf-8")
    entry = text[text.index(f'    "{row}":') :]
    comment = re.search(r"}?,  # (\d[\d., ]+)$", entry, re.MULTILINE)[1]
    found = PAPER_RESULTS[row]
    printed = [f"{found.perplexity:.2f}", f"{found.dev_bleu:.1f}"]
    assert comment.split(", ") == printed + [str(found.millions)] * bool(found.millions)
    assert found.millions == test_configs.PAPER_RESULTS.get(row)


def test_table_2_is_printed_of_base_and_big_only():
    scores = {row: figures.test_bleu for row, figures in PAPER_RESULTS.items()}
    assert {row: bleu for row, bleu in scores.items() if bleu} == {
        "base": 27.3,
        "big": 28.4,
        "En-Fr_base": 38.1,
        "En-Fr_big": 41.8,
    }


def test_what_a_figure_was_measured_on_is_named_where_there_is_one():
    found = paper_result("A_h1")
    assert found["dev_set"] == "newstest2013, English to German"
    assert found["test_set"] is found["test_bleu"] is None
    assert found["parameters_as_base"]
    assert paper_result("En-Fr_base")["dev_set"] is None
    assert paper_result("") is None
