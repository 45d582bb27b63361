import math
import re

import pytest

from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.search.static_params import (
    BeamParams,
    SamplingParams,
    SpecialIds,
    params_from_config,
)
from t2t_jax.errors import ConfigError, UserError

BROKEN = {
    "beam_size": (0, 2.0, True, math.nan, 1_001),
    "max_extra_tokens": (-1,),
    "max_source_length": (1,),
    "length_penalty": (-0.5, math.nan, math.inf, "0.6"),
    "length_normalization": ("mean",),
    "beam_rule": (True,),
    "max_length_ratio": (-1, math.nan),
    "allow_unk": (1,),
    "num_samples": (0,),
    "temperature": (0.0, math.nan),
    "top_k": (-1,),
    "top_p": (0.0, 1.1),
    "min_tokens": (-1,),
    "seed": (-1, 2**32),
    "attention_layer": (0.5,),
    "tokens_per_batch": (1073,),
    "ids": ((0, 1, 2, 3), SpecialIds(unk=-1)),
    "forbidden": ([7], (-1,), 7),
}


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, one) for name, values in BROKEN.items() for one in values],
)
def test_a_value_that_breaks_its_rule_is_refused_with_its_name(name, value):
    shown = {repr(value), f"{value:,}" if isinstance(value, int) else ""}
    said = rf"{name}=({'|'.join(map(re.escape, shown))}) .*"
    if name in DecodingConfig.__dataclass_fields__:
        with pytest.raises(ConfigError, match=rf"^decoding\.{said}config\.decoding\."):
            DecodingConfig(**{name: value})
    for kind in (BeamParams, SamplingParams):
        if name in kind.__dataclass_fields__ and value != 1_001:  # a limit of files
            with pytest.raises(UserError, match=rf"^{said}Change {name}\."):
                kind(**{name: value})


LONG = {"max_length_ratio": 3, "max_extra_tokens": 9000}
SHORT = {"max_length_ratio": 0.25, "max_source_length": 65}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({**LONG, "tokens_per_batch": 3071}, r"max_source_length \* .*_ratio = 3072"),
        ({"tokens_per_batch": 1073}, r"max_source_length \+ max_extra_tokens = 1074"),
        ({**SHORT, "tokens_per_batch": 64}, "longest source, max_source_length = 65"),
        ({"n_best": 5}, "n_best=5 must be at most decoding.beam_size=4"),
        ({"constraint": "tree", "sample": True}, r"constraint=tree .*decoding\.sample"),
        ({"constraint": "tree", "max_extra_tokens": 2}, "max_extra_tokens=2 of"),
        ({"constraint": "tree", "min_tokens": 2}, "min_tokens=2 of 0 or 1"),
    ],
)
def test_values_that_do_not_go_together_are_refused(changes, named):
    with pytest.raises(ConfigError, match=named):
        DecodingConfig(**changes)


def test_values_at_their_limits_are_allowed():
    assert DecodingConfig(tokens_per_batch=1074).tokens_per_batch == 1074
    assert DecodingConfig(length_penalty=0, max_extra_tokens=0).length_penalty == 0
    assert DecodingConfig(constraint="tree", max_extra_tokens=3).constraint == "tree"


def test_the_longest_output_is_the_smaller_of_both_limits():
    config = DecodingConfig(max_extra_tokens=50, max_length_ratio=2.5)
    assert [config.longest_output(n) for n in (1, 7, 30, 100)] == [3, 18, 75, 150]
    assert config.longest_output() == 1074
    assert DecodingConfig().longest_output(7) == 57
    assert DecodingConfig(max_length_ratio=1e308).longest_output() == 1074


def test_a_search_has_the_settings_of_its_configuration():
    beams = DecodingConfig(beam_size=3, n_best=2, min_tokens=2, allow_unk=False)
    found = params_from_config(beams)
    assert found == BeamParams(3, 0.6, 2, min_tokens=2, allow_unk=False)
    drawing = DecodingConfig(sample=True, n_best=7, top_k=5, seed=3)
    assert params_from_config(drawing) == SamplingParams(7, 1.0, 5, min_tokens=1)
    with pytest.raises(UserError, match="n_best=5 must be at most beam_size=4"):
        BeamParams(n_best=5)
