import dataclasses

import pytest

from t2t_jax.config import Config, parse
from t2t_jax.model.config import RNNConfig, TransformerConfig
from t2t_jax.run.description.departures import _MATCHES, departures, matches
from t2t_jax.training.config import OptimizerConfig
from tests.configs.test_configs import _config

ALWAYS = [
    *("packed rows", "dropout masks", "vocabulary", "scores", "pad and bos"),
    *("longest sentence", "shortest output"),
]


def chosen(**sections):
    """Lists what a configuration departs in, beside what it always does."""
    found = departures(dataclasses.replace(Config(), **sections))
    assert [departure.name for departure in found[:7]] == ALWAYS
    assert {departure.key for departure in found[:7]} == {""}
    return found[7:]


@pytest.mark.parametrize(
    "name", ["wmt_en_de", "wmt_en_de_big", "wmt_en_fr", "wmt_en_fr_big"]
)
def test_the_paper_s_own_configs_choose_no_departure(name):
    assert [departure.name for departure in departures(_config(name))] == ALWAYS


CHOICES = {
    "model.norm": ("rms", "RMS norm"),
    "model.norm_position": ("pre", "pre-norm"),
    "model.attention_dropout": (0.1, "attention dropout"),
    "model.relu_dropout": (0.1, "ReLU dropout"),
    "model.positions": ("learned", "kind of positions"),
    "model.tying": ("decoder", "tying"),
    "model.activation": ("swish", "activation"),
    "model.attention_biases": (True, "biases of attention"),
    "model.output_bias": (True, "bias of the logits"),
    "model.scale_embeddings": (False, "scale of embeddings"),
    "model.position_rates": ("tensor2tensor", "rates of the sinusoids"),
    "model.first_position": (2, "first position"),
    "model.start": ("zero", "first input of the decoder"),
    "model.tag_position": ("last", "position of a source's first token"),
    "model.num_decoder_layers": (2, "depth of the decoder"),
    "model.layer_norm_epsilon": (1e-5, "epsilon of the norms"),
    "model.compute_dtype": ("bfloat16", "precision"),
    "vocabulary.byte_fallback": (True, "byte fallback"),
    "data.max_length_ratio": (3.0, "pairs of unlike length"),
    "data.drop_copies": (True, "copies"),
    "data.drop_duplicates": (True, "duplicates"),
    "data.tokens_per_batch": (4096, "batch size"),
    "optimizer.warmup_steps": (8000, "warm-up"),
    "optimizer.schedule": ("cosine", "schedule"),
    "optimizer.peak_learning_rate": (1e-3, "peak learning rate"),
    "optimizer.beta1": (0.8, "Adam's beta1"),
    "optimizer.beta2": (0.997, "Adam's beta2"),
    "optimizer.epsilon": (1e-8, "Adam's epsilon"),
    "optimizer.name": ("muon", "another optimizer"),
    "training.ema_decay": (0.5, "moving average"),
    "training.simcut": (3.0, "SimCut"),
    "training.r_drop": (5.0, "R-Drop"),
    "training.gradient_dtype": ("bfloat16", "gradients between devices"),
    "training.skip_gradient_norm": (5.0, "large gradients"),
    "decoding.beam_size": (5, "beam"),
    "decoding.length_penalty": (1.0, "alpha"),
    "decoding.max_extra_tokens": (100, "longest output"),
    "decoding.min_tokens": (3, "shortest output"),
    "decoding.sample": (True, "search"),
    "decoding.constraint": ("tree", "constraint on outputs"),
    "decoding.length_normalization": ("power", "length penalty"),
    "decoding.beam_rule": ("shrinking", "width of the beam"),
    "decoding.mbr": ("chrf", "choice of the output"),
    "decoding.shortlist": ("a.npz", "logits"),
    "decoding.max_length_ratio": (3.0, "longest output by ratio"),
    "decoding.allow_unk": (False, "unk"),
    "checkpoint.every_minutes": (7.0, "spacing of checkpoints"),
    "checkpoint.keep": (7, "checkpoints averaged"),
}


def config_of(key, value):
    section, _, name = key.rpartition(".")
    values = {section: {name: value}} if section else {name: value}
    if key == "vocabulary.source_size":
        values["model"] = {"tying": "decoder"}
    if value == "learned":
        values["decoding"] = {"max_source_length": 400}
    return parse(values)


@pytest.mark.parametrize("key", CHOICES)
def test_each_choice_that_departs_is_named(key):
    value, name = CHOICES[key]
    (found,) = (d for d in departures(config_of(key, value)) if d.key)
    assert (found.name, found.key) == (name, key)
    assert found.paper != found.here


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"positions": "rotary"}, "rotated by their positions"),
        ({"activation": "geglu"}, "(gelu(x W) * x V) W2, without biases"),
    ],
)
def test_what_a_block_is_stands_in_its_departure(changes, said):
    (found,) = chosen(model=TransformerConfig(**changes))
    assert said in found.here


def test_a_departure_reports_how_the_paper_has_it_and_how_it_is_here():
    (found,) = chosen(optimizer=OptimizerConfig(peak_learning_rate=2e-3))
    # (512 * 4000)^-0.5
    assert "6.988e-04" in found.paper
    assert found.here == "2.000e-03"


def test_the_baseline_departs_in_its_own_keys_only():
    found = chosen(
        architecture="rnn",
        model=TransformerConfig(
            norm_position="pre", activation="swish", num_decoder_layers=2
        ),
        rnn=RNNConfig(tying="none"),
    )
    assert [(d.name, d.key) for d in found] == [
        ("recurrent baseline", "architecture"),
        ("tying", "rnn.tying"),
    ]
    assert found[1].here == "rnn.tying=none"


EXACT = [
    *("layers", "attention", "feed-forward networks", "embeddings", "positions"),
    *("dropout", "loss", "batch size", "optimizer", "learning rate", "beam search"),
    "checkpoint averaging",
]


@pytest.mark.parametrize("name", ["wmt_en_de", "wmt_en_de_big", "wmt_en_fr"])
def test_the_paper_s_own_configs_match_it_in_everything_listed(name):
    assert [match.name for match in matches(_config(name))] == EXACT


@pytest.mark.parametrize("key", sorted({k for m in _MATCHES.values() for k in m.keys}))
def test_a_key_of_a_match_is_one_that_departs_and_takes_the_match_away(key):
    here = key.replace("network", "model")
    others = {
        "architecture": "rnn",
        "vocabulary.source_size": 500,
        "checkpoint.every_epochs": 7,
        "checkpoint.every_steps": 1_000,
    }
    value = others[key] if key in others else CHOICES[here][0]
    config = config_of(here, value)
    assert here in {d.key for d in departures(config)}
    left = {match.name for match in matches(config)}
    assert left == set(EXACT) - {
        match.name
        for match in _MATCHES.values()
        if key in match.keys or (key.endswith("source_size") and "tying" in str(match))
    }
