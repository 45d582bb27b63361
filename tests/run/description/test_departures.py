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


CHOICES = {
    "model.norm": "rms",
    "model.norm_position": "pre",
    "model.tying": "decoder",
    "model.attention_dropout": 0.1,
    "model.relu_dropout": 0.1,
    "model.positions": "learned",
    "model.activation": "swish",
    "model.attention_biases": True,
    "model.output_bias": True,
    "model.scale_embeddings": False,
    "model.position_rates": "tensor2tensor",
    "model.first_position": 2,
    "model.start": "zero",
    "model.tag_position": "last",
    "model.num_decoder_layers": 2,
    "model.layer_norm_epsilon": 1e-5,
    "model.compute_dtype": "bfloat16",
    "vocabulary.byte_fallback": True,
    "data.max_length_ratio": 3.0,
    "data.drop_copies": True,
    "data.drop_duplicates": True,
    "data.tokens_per_batch": 4096,
    "optimizer.warmup_steps": 8000,
    "optimizer.schedule": "cosine",
    "optimizer.peak_learning_rate": 1e-3,
    "optimizer.name": "muon",
    "optimizer.beta1": 0.8,
    "optimizer.beta2": 0.997,
    "optimizer.epsilon": 1e-8,
    "training.ema_decay": 0.5,
    "training.simcut": 3.0,
    "training.r_drop": 5.0,
    "training.gradient_dtype": "bfloat16",
    "training.skip_gradient_norm": 5.0,
    "decoding.beam_size": 5,
    "decoding.length_penalty": 1.0,
    "decoding.max_extra_tokens": 100,
    "decoding.min_tokens": 3,
    "decoding.sample": True,
    "decoding.constraint": "tree",
    "decoding.mbr": "chrf",
    "decoding.length_normalization": "power",
    "decoding.beam_rule": "shrinking",
    "decoding.shortlist": "a.npz",
    "decoding.max_length_ratio": 3.0,
    "decoding.allow_unk": False,
    "checkpoint.every_minutes": 7.0,
    "checkpoint.keep": 7,
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
    (found,) = (d for d in departures(config_of(key, CHOICES[key])) if d.key)
    assert found.key == key
    assert found.paper != found.here


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


@pytest.mark.parametrize(
    "name", ["wmt_en_de", "wmt_en_de_big", "wmt_en_fr", "wmt_en_fr_big"]
)
def test_the_paper_s_own_configs_choose_no_departure_and_match_it(name):
    assert [departure.name for departure in departures(_config(name))] == ALWAYS
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
    value = others[key] if key in others else CHOICES[here]
    config = config_of(here, value)
    assert here in {d.key for d in departures(config)}
    left = {match.name for match in matches(config)}
    assert left == set(EXACT) - {
        match.name
        for match in _MATCHES.values()
        if key in match.keys or (key.endswith("source_size") and "tying" in str(match))
    }
