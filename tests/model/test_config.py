import dataclasses
import re
import subprocess
import sys

import pytest

from t2t_jax.errors import ConfigError
from t2t_jax.model.config import RNNConfig, TransformerConfig, decoder_layers


def test_the_defaults_are_the_base_model_of_table_3():
    config = TransformerConfig()
    assert (config.num_layers, config.d_model, config.d_ff) == (6, 512, 2048)
    assert (config.num_heads, config.d_k, config.d_v) == (8, 64, 64)
    assert config.dropout == 0.1
    assert (config.norm_position, config.positions) == ("post", "sinusoidal")
    assert config.tying == "all"


def test_it_can_be_a_dictionary_key_and_cannot_be_changed():
    assert {TransformerConfig(): 1}[TransformerConfig()] == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        TransformerConfig().d_model = 256


@pytest.mark.parametrize("name", ["vocab_size", "num_heads", "d_k", "max_positions"])
@pytest.mark.parametrize("size", [0, -3, 8.0, True, "8", None])
def test_sizes_are_positive_whole_numbers(name, size):
    with pytest.raises(ConfigError, match=rf"model\.{name}={size!r} must be a whole"):
        TransformerConfig(**{name: size})


@pytest.mark.parametrize("name", ["dropout", "attention_dropout", "relu_dropout"])
@pytest.mark.parametrize("rate", [1.0, -0.1, float("nan"), True, "0.1"])
def test_rates_are_in_0_to_1(name, rate):
    with pytest.raises(ConfigError, match=rf"model\.{name}={rate!r} must be in \[0, 1"):
        TransformerConfig(**{name: rate})


def test_a_whole_number_is_a_rate_as_well():
    assert TransformerConfig(dropout=0).dropout == 0


@pytest.mark.parametrize("epsilon", [0, -1e-6, float("nan"), float("inf"), "1e-6"])
def test_epsilon_is_a_positive_number(epsilon):
    with pytest.raises(ConfigError, match=r"model\.layer_norm_epsilon=.* positive"):
        TransformerConfig(layer_norm_epsilon=epsilon)


@pytest.mark.parametrize(
    ("name", "most"), [("num_decoder_layers", "1,000"), ("first_position", "1,000")]
)
@pytest.mark.parametrize("value", [-1, 1_001, 2.0, False, "2", None])
def test_depth_of_the_decoder_and_first_position_may_be_0_and_are_bounded(
    name, most, value
):
    message = f"model.{name}={value!r} must be a whole number from 0 to {most}. Change"
    with pytest.raises(ConfigError, match=re.escape(message)):
        TransformerConfig(**{name: value})
    assert getattr(TransformerConfig(**{name: 0}), name) == 0


@pytest.mark.parametrize(
    ("name", "value", "known"),
    [
        ("activation", "silu", "'relu', 'swish', 'gelu', 'quick_gelu'"),
        ("position_rates", "marian", "'paper', 'tensor2tensor'"),
        ("start", "pad", "'bos', 'zero', 'eos'"),
        ("attention_biases", "yes", "False, True"),
        ("output_bias", None, "False, True"),
        ("scale_embeddings", 2, "True, False"),
    ],
)
def test_words_of_other_toolkits_come_with_those_of_this_package(name, value, known):
    message = f"model.{name}={value!r} is not known; known are {known}. Change"
    with pytest.raises(ConfigError, match=re.escape(message)):
        TransformerConfig(**{name: value})


def test_a_recurrent_model_s_stacks_are_equally_deep():
    assert decoder_layers(RNNConfig(num_layers=3)) == 3
    assert decoder_layers(TransformerConfig(num_decoder_layers=1)) == 1


def test_unknown_words_come_with_the_known_ones():
    with pytest.raises(
        ConfigError,
        match=r"model\.tying='both' is not known; .*'all', 'decoder', 'none'",
    ):
        TransformerConfig(tying="both")


def test_a_list_is_not_a_word():
    with pytest.raises(ConfigError, match=r"model\.tying=\['all'\] is not known"):
        TransformerConfig(tying=["all"])


def test_an_odd_width_is_refused_with_sinusoids_only():
    with pytest.raises(ConfigError, match=r"model\.d_model=7 must be even"):
        TransformerConfig(d_model=7)
    assert TransformerConfig(d_model=7, positions="learned").d_model == 7


def test_heads_need_not_divide_the_width():
    assert TransformerConfig(d_model=14, num_heads=3, d_k=5, d_v=7).d_k == 5


def test_all_problems_are_told_at_once():
    with pytest.raises(ConfigError) as caught:
        TransformerConfig(num_heads=0, dropout=1.5, positions="none")
    assert len(caught.value.problems) == 3
    assert caught.value.exit_code == 78


def test_it_costs_no_import_of_jax():
    program = "import sys, t2t_jax.model.config; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
