import pytest

from t2t_jax.data.config import DataConfig, VocabularyConfig
from t2t_jax.errors import ConfigError


@pytest.mark.parametrize(
    ("row_length", "most"), [(256, 8), (24, 4), (20, 3), (6, 2), (4, 2), (7, 1), (2, 1)]
)
def test_rows_are_halved_as_long_as_two_slots_are_left(row_length, most):
    keys = {"row_length": row_length, "max_length": 2}
    lengths = DataConfig(**keys, packed_row_lengths=most).row_lengths
    assert lengths == tuple(row_length // 2**k for k in range(most - 1, -1, -1))
    for count in (most + 1, 0):
        error = rf"packed_row_lengths={count} must be .*={row_length}, at most {most}:"
        with pytest.raises(ConfigError, match=error):
            DataConfig(**keys, packed_row_lengths=count)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"size": 4}, r"vocabulary\.size=4 must be at least 5"),
        ({"size": 260, "byte_fallback": True}, "at least 261: four special ids, 256"),
        ({"character_coverage": 1.5}, r"character_coverage=1\.5 must be above 0"),
        ({"symbols": "a,b", "size": 6}, "at least 7: four special ids, the symb"),
        ({"symbols": "<de>,x y"}, r"'x y' has a blank in it\. Change config"),
        ({"symbols": "<de>,<fr>,<de>"}, "'<de>' is there twice"),
        ({"symbols": "</s>"}, "is a special piece"),
        ({"sample_sentences": 0}, r"Change config\.vocabulary\.sample_sentences"),
    ],
)
def test_each_rule_of_the_vocabulary_is_reported(keys, message):
    with pytest.raises(ConfigError, match=message):
        VocabularyConfig(**keys)
