import math

import pytest

from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.errors import ConfigError


def test_the_defaults_are_those_of_the_paper():
    config = DecodingConfig()
    assert (config.beam_size, config.length_penalty, config.max_extra_tokens) == (
        4,
        0.6,
        50,
    )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"beam_size": 0},
            r"decoding.beam_size=0 must be a whole number of at least 1",
        ),
        ({"beam_size": 2.0}, r"decoding.beam_size=2.0 must be a whole number"),
        ({"beam_size": True}, r"decoding.beam_size=True must be a whole number"),
        ({"beam_size": math.nan}, r"decoding.beam_size=nan must be a whole number"),
        ({"max_extra_tokens": -1}, r"decoding.max_extra_tokens=-1 must .* at least 0"),
        ({"max_source_length": 1}, r"decoding.max_source_length=1 must .* at least 2"),
        ({"length_penalty": -0.5}, r"decoding.length_penalty=-0.5 must be a finite"),
        ({"length_penalty": math.nan}, r"decoding.length_penalty=nan must be a finite"),
        ({"length_penalty": math.inf}, r"decoding.length_penalty=inf must be a finite"),
        ({"length_penalty": "0.6"}, r"decoding.length_penalty='0.6' must be a finite"),
        (
            {"length_normalization": "mean"},
            r"decoding.length_normalization='mean' is not known; known are 'paper', "
            r"'power'. Change config.decoding.length_normalization.",
        ),
        ({"beam_rule": True}, r"decoding.beam_rule=True is not known"),
        ({"max_length_ratio": -1}, r"decoding.max_length_ratio=-1 must be a finite"),
        ({"max_length_ratio": math.nan}, r"max_length_ratio=nan must be a finite"),
        ({"allow_unk": 1}, r"decoding.allow_unk=1 must be true or false"),
        (
            {
                "max_length_ratio": 3,
                "max_extra_tokens": 9000,
                "tokens_per_batch": 3071,
            },
            r"hold one longest output, max_source_length \* max_length_ratio = 3072",
        ),
        ({"tokens_per_batch": 1073}, r"tokens_per_batch=1073 must hold .* = 1074"),
    ],
)
def test_a_value_that_breaks_its_rule_is_refused_by_its_full_key(values, message):
    with pytest.raises(ConfigError, match=message):
        DecodingConfig(**values)


def test_all_broken_rules_come_together():
    with pytest.raises(ConfigError) as caught:
        DecodingConfig(beam_size=0, length_penalty=math.nan, tokens_per_batch=0)
    assert len(caught.value.problems) == 3
    assert all("Change config.decoding." in line for line in caught.value.problems)


def test_a_batch_of_one_longest_output_is_allowed():
    assert DecodingConfig(tokens_per_batch=1074).tokens_per_batch == 1074
    assert DecodingConfig(length_penalty=0, max_extra_tokens=0).length_penalty == 0


def test_the_longest_output_is_the_smaller_of_both_limits():
    config = DecodingConfig(max_extra_tokens=50, max_length_ratio=2.5)
    assert [config.longest_output(n) for n in (1, 7, 30, 100)] == [3, 18, 75, 150]
    assert config.longest_output() == 1074
    assert DecodingConfig().longest_output(7) == 57
