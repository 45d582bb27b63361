import dataclasses

import pytest

from configs import table3
from t2t_jax.config import Config, parse
from t2t_jax.model.config import TransformerConfig
from t2t_jax.run.description.table3_rows import (
    ROWS,
    Variation,
    closest_row,
    table3_row,
    variations,
)
from t2t_jax.training.config import TrainingConfig
from tests.configs.test_configs import PRINTED, _config


def changed(**sections):
    return dataclasses.replace(Config(), **sections)


@pytest.mark.parametrize("row", table3.ROWS)
def test_every_config_of_table_3_is_the_row_it_names(row):
    config = parse(table3.get_config(row).to_dict())
    assert table3_row(config) == row
    assert {found.row for found in variations(config)} <= {row.split("_")[0]}
    assert ([*variations(config)] == []) == (row == "base")


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("wmt_en_fr", "En-Fr_base"),
        ("wmt_en_fr_big", "En-Fr_big"),
        ("multi30k_en_de", ""),
        ("rnn_baseline", ""),
    ],
)
def test_the_other_configs_are_the_rows_they_say(name, row):
    assert table3_row(_config(name)) == row


def test_a_value_names_each_row_that_holds_it():
    config = changed(model=TransformerConfig(d_k=32, d_v=7, dropout=0.3), steps=300_000)
    assert [*variations(config)] == [
        Variation("model.d_k", 64, 32, "A, B, C"),
        Variation("model.d_v", 64, 7, ""),
        Variation("model.dropout", 0.1, 0.3, "big"),
        Variation("steps", 100_000, 300_000, "big, En-Fr"),
    ]


def test_the_baseline_is_no_row_and_is_not_judged_by_the_other_model():
    config = changed(
        architecture="rnn",
        model=TransformerConfig(num_layers=2),
        training=TrainingConfig(label_smoothing=0.2),
    )
    assert table3_row(config) == ""
    assert [*variations(config)] == [
        Variation("training.label_smoothing", 0.1, 0.2, "D")
    ]


def test_the_results_are_those_that_the_paper_prints():
    assert list(PRINTED) == list(ROWS)
    for name, row in ROWS.items():
        figures = [row.millions, row.perplexity, row.dev_bleu, row.test_bleu]
        found = [figure for figure in figures if figure is not None]
        assert found == [float(figure) for figure in PRINTED[name] if figure != "-"]


@pytest.mark.parametrize("row", table3.ROWS)
def test_a_shorter_run_with_another_vocabulary_is_closest_to_its_row(row):
    config = _config("table3", row)
    vocabulary = dataclasses.replace(config.vocabulary, size=150)
    changed = dataclasses.replace(config, steps=7, vocabulary=vocabulary)
    assert table3_row(changed) == ""
    assert closest_row(changed) == closest_row(config) == row
