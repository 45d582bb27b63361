import pytest

from t2t_jax.errors import ConfigError
from t2t_jax.evaluation.config import EvaluationConfig


@pytest.mark.parametrize("name", ["every_steps", "bleu_sentences", "num_samples"])
def test_0_turns_off_and_less_is_refused(name):
    EvaluationConfig(**{name: 0})
    with pytest.raises(ConfigError, match=rf"Change config\.evaluation\.{name}\."):
        EvaluationConfig(**{name: -1})


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_the_share_of_unfinished_translations_is_a_share(share):
    with pytest.raises(ConfigError, match=r"config\.evaluation\.max_unfinished"):
        EvaluationConfig(max_unfinished=share)
