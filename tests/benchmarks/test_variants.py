"""A contest of ours with itself, some settings changed.

Seen to fail: where values are left as text, where the environment is left as it was,
where `varied` drops the text's settings, and where they are changed one by one.
"""

import pytest
from contest import Work
from real_text import RealText
from variants import changes, varied

from t2t_jax.data.config import DataConfig, VocabularyConfig
from t2t_jax.errors import ConfigError
from t2t_jax.model.config import TransformerConfig


def work(**given):
    return Work(config=TransformerConfig(), device="cpu", rows=2, length=3, **given)


@pytest.mark.parametrize(
    ("variant", "wanted"),
    [
        ("", {}),
        ("model.remat=True", {"model.remat": True}),
        (
            "model.compute_dtype=bfloat16,training.micro_batches=4",
            {"model.compute_dtype": "bfloat16", "training.micro_batches": 4},
        ),
    ],
)
def test_a_variant_is_keys_and_values(variant, wanted):
    assert changes(variant) == wanted


def test_settings_of_every_section_can_be_changed(tmp_path):
    text = RealText(
        source="phrasebook:train",
        folder=tmp_path,
        data=DataConfig(tokens_per_batch=512),
        vocabulary=VocabularyConfig(),
    )
    found = varied(
        work(text=text),
        changes(
            "model.d_ff=8,training.loss_chunks=4,data.row_length=32,data.max_length=32,"
            "XLA_FLAGS=--xla_a=1 --xla_b=true"
        ),
    )
    assert (found.config.d_ff, found.config.d_model) == (8, 512)
    assert found.training.loss_chunks == 4
    assert (found.text.data.row_length, found.text.data.tokens_per_batch) == (32, 512)
    assert found.text.folder == tmp_path
    assert found.environment == {"XLA_FLAGS": "--xla_a=1 --xla_b=true"}
    assert (found.rows, found.length) == (2, 3)


def test_the_terms_of_two_passes_are_settings_of_the_step():
    found = varied(
        work(), changes("training.simcut=3.0,training.simcut_probability=0.1")
    )
    assert (found.training.simcut, found.training.passes) == (3.0, 2)
    assert varied(work(), changes("training.r_drop=5.0")).training.r_drop == 5.0


def test_without_changes_it_is_the_same():
    assert varied(work(), changes("")) == work()


@pytest.mark.parametrize(
    "key",
    ["model.widht", "model.__init__", "data.row_length", "training.max_bad_steps"],
)
def test_what_the_work_has_not_is_refused(key):
    with pytest.raises(ValueError, match=f"{key} is no key"):
        varied(work(), {key: 1})


def test_variables_are_left_as_they_are_written():
    assert changes("XLA_A=1.50,B=false") == {"XLA_A": "1.50", "B": "false"}


def test_what_cannot_be_is_refused():
    with pytest.raises(ConfigError, match="loss_chunks=0"):
        varied(work(), {"training.loss_chunks": 0})
