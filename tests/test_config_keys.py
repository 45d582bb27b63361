"""Answers to keys that do not exist.

Seen to fail: without `_RENAMED`, without the value of a former key, and without
`FORMER_LAYOUTS` in `DataConfig`.
"""

import pytest

from t2t_jax.config import keys, parse
from t2t_jax.config_keys import suggestion
from t2t_jax.errors import ConfigError


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("model.d_modle", " Did you mean model.d_model?"),
        ("num_layers", " Did you mean model.num_layers?"),
        ("data.num_layers", " Did you mean model.num_layers?"),
        ("rnn.num_lyers", " Did you mean rnn.num_layers?"),
        ("d_hidden", " Did you mean rnn.d_hidden?"),
        (
            "every_steps",
            " Did you mean evaluation.every_steps, checkpoint.every_steps or "
            "logging.every_steps?",
        ),
        ("evaluaton.every_steps", " Did you mean evaluation.every_steps?"),
        ("model.vocab_size", " It always equals vocabulary.size."),
        ("zzz", ""),
        (
            "data.row_halvings",
            " It is config.data.packed_row_lengths now, whose value is one more.",
        ),
    ],
)
def test_a_suggestion_is_what_was_meant_or_nothing(name, meant):
    assert suggestion(name, known=keys()) == meant


@pytest.mark.parametrize(("halvings", "lengths"), [(0, 1), (2, 3)])
def test_a_former_key_is_answered_with_its_name_and_value_of_today(halvings, lengths):
    with pytest.raises(ConfigError) as info:
        parse({"data": {"row_halvings": halvings}})
    assert list(info.value.problems) == [
        "There is no key config.data.row_halvings. It is "
        "config.data.packed_row_lengths now, whose value is one more. Set "
        f"config.data.packed_row_lengths={lengths}."
    ]


def test_a_former_layout_is_answered_with_its_name_of_today():
    with pytest.raises(ConfigError) as info:
        parse({"data": {"layout": "length_groups"}})
    assert list(info.value.problems) == [
        "data.layout='length_groups' is 'length_buckets' now. Set "
        "config.data.layout=length_buckets."
    ]
