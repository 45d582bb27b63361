import itertools
import re
import subprocess
import sys

import pytest

from t2t_jax.errors import ConfigError
from t2t_jax.model.config import TransformerConfig, decoder_layers

NAN, INF = float("nan"), float("inf")
WHOLE, BOUNDED = "must be a whole", "must be a whole number from 0 to 1,000. Change"


BAD_RATES = (1.0, -0.1, NAN, True, "0.1")


@pytest.mark.parametrize(
    ("names", "values", "rule"),
    [
        ("vocab_size num_heads d_k max_positions", (0, -3, 8.0, True, "8"), WHOLE),
        ("dropout attention_dropout relu_dropout", BAD_RATES, "must be in [0, 1"),
        ("layer_norm_epsilon", (0, -1e-6, NAN, INF, "1e-6"), "positive"),
        ("num_decoder_layers first_position", (-1, 1_001, 2.0, False, "2"), BOUNDED),
        ("tying", ("both", ["all"]), "known are 'all', 'decoder', 'none'"),
        ("activation", ("silu",), "'quick_gelu', 'swiglu', 'geglu'. Change"),
        ("position_rates", ("marian",), "known are 'paper', 'tensor2tensor'"),
        ("start", ("pad",), "known are 'bos', 'zero', 'eos'"),
        ("attention_biases output_bias remat", ("yes", None, 2), "known are"),
    ],
)
def test_a_value_that_cannot_be_is_refused_with_its_key(names, values, rule):
    for name, value in itertools.product(names.split(), values):
        message = rf"model\.{name}={re.escape(repr(value))} .*{re.escape(rule)}"
        with pytest.raises(ConfigError, match=message):
            TransformerConfig(**{name: value})


def test_zero_is_a_rate_a_depth_and_a_position():
    config = TransformerConfig(dropout=0, num_decoder_layers=0, first_position=0)
    assert (config.dropout, decoder_layers(config)) == (0, 6)


def test_an_odd_width_is_refused_with_sinusoids_only():
    with pytest.raises(ConfigError, match=r"model\.d_model=7 must be even"):
        TransformerConfig(d_model=7)
    assert TransformerConfig(d_model=7, positions="learned").d_model == 7


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("d_k", 7, "must be even: rotary positions turn pairs"),
        *((name, 3, "has no effect") for name in ("max_positions", "first_position")),
        ("position_rates", "tensor2tensor", "has no effect with model.positions=rot"),
    ],
)
def test_rotary_positions_need_pairs_and_no_keys_of_added_ones(name, value, rule):
    with pytest.raises(ConfigError, match=rf"model\.{name}={value} {re.escape(rule)}"):
        TransformerConfig(positions="rotary", **{name: value})
    assert TransformerConfig(positions="rotary", d_model=7).d_model == 7


def test_it_costs_no_import_of_jax():
    program = "import sys, t2t_jax.model.config; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
