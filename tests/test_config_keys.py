"""Answers to keys that do not exist."""

import pytest

from t2t_jax.config import keys
from t2t_jax.config_keys import suggestion


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("model.d_modle", " Did you mean model.d_model?"),
        ("data.num_layers", " Did you mean model.num_layers?"),
        ("evaluaton.every_steps", " Did you mean evaluation.every_steps?"),
        ("model.vocab_size", " It always equals vocabulary.size."),
        ("zzz", ""),
    ],
)
def test_a_suggestion_is_what_was_meant_or_nothing(name, meant):
    assert suggestion(name, known=keys()) == meant
