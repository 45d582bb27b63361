import dataclasses

import pytest

from configs import table3
from t2t_jax.config import Config, parse
from t2t_jax.data.config import VocabularyConfig
from t2t_jax.description.table3 import ROWS, Variation, table3_row, variations
from t2t_jax.model.config import TransformerConfig
from t2t_jax.training.config import TrainingConfig
from tests.configs.test_configs import _config


def changed(**sections):
    return dataclasses.replace(Config(), **sections)


@pytest.mark.parametrize("row", table3.ROWS)
def test_every_config_of_table_3_is_the_row_it_names(row):
    config = parse(table3.get_config(row).to_dict())
    assert table3_row(config) == row
    letter = row.split("_")[0]
    assert {found.row for found in variations(config)} <= {letter}
    assert (variations(config) == []) == (row == "base")


@pytest.mark.parametrize(
    ("name", "row"),
    [
        ("wmt_en_de", "base"),
        ("wmt_en_de_big", "big"),
        ("wmt_en_fr", "En-Fr_base"),
        ("wmt_en_fr_big", "En-Fr_big"),
        ("multi30k_en_de", ""),
        ("rnn_baseline", ""),
    ],
)
def test_the_other_configs_are_the_rows_they_say(name, row):
    assert table3_row(_config(name)) == row


def test_no_two_rows_are_alike():
    assert len({tuple(sorted(row.items())) for row in ROWS.values()}) == len(ROWS)


def test_a_value_names_each_row_that_holds_it():
    config = changed(model=TransformerConfig(d_k=32, d_v=7, dropout=0.3), steps=300_000)
    assert variations(config) == [
        Variation("model.d_k", 64, 32, "A, B, C"),
        Variation("model.d_v", 64, 7, ""),
        Variation("model.dropout", 0.1, 0.3, "big"),
        Variation("steps", 100_000, 300_000, "big, En-Fr"),
    ]


def test_in_a_row_every_value_is_that_row_s():
    config = changed(model=TransformerConfig(d_k=32))
    assert variations(config) == [Variation("model.d_k", 64, 32, "B")]


@pytest.mark.parametrize(
    ("key", "value"),
    [("num_layers", 3), ("d_model", 128), ("d_ff", 512), ("dropout", 0.4)],
)
def test_what_table_3_does_not_hold_is_not_in_the_paper(key, value):
    config = changed(model=TransformerConfig(**{key: value}))
    (found,) = variations(config)
    assert (found.key, found.here, found.row) == (f"model.{key}", value, "")
    assert table3_row(config) == ""


def test_the_baseline_is_no_row_and_is_not_judged_by_the_other_model():
    config = changed(
        architecture="rnn",
        model=TransformerConfig(num_layers=2),
        training=TrainingConfig(label_smoothing=0.2),
    )
    assert table3_row(config) == ""
    assert variations(config) == [Variation("training.label_smoothing", 0.1, 0.2, "D")]


def test_the_vocabulary_of_english_french_is_the_paper_s():
    vocabulary = VocabularyConfig(size=32_000)
    assert variations(changed(vocabulary=vocabulary)) == [
        Variation("vocabulary.size", 37_000, 32_000, "En-Fr")
    ]
