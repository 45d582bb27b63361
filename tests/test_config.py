import json

import pytest

from t2t_jax import config
from t2t_jax.config import Config, default, keys, parse, to_dict
from t2t_jax.errors import ConfigError
from t2t_jax.training.config import LoggingConfig


def test_a_configuration_survives_json():
    assert parse(default()) == Config()
    config = Config(steps=7, logging=LoggingConfig(every_steps=3))
    assert parse(json.loads(json.dumps(to_dict(config)))) == config


def test_the_vocabulary_s_size_is_declared_once():
    assert "vocab_size" not in to_dict(Config())["model"]
    assert "model.vocab_size" not in keys()
    config = parse({"vocabulary": {"size": 1_000}})
    assert config.model.vocab_size == config.vocabulary.size == 1_000
    rate = parse({"model": {"dropout": 0}}).model.dropout
    assert (rate, type(rate)) == (0.0, float)


RNN = {"architecture": "rnn"}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"steps": "7"}, r"steps='7' must be an integer\. Change config\.steps\."),
        ({"model": {"dropout": None}}, r"model\.dropout=None must be a number"),
        ({"model": {"vocab_size": 999}}, r"model\.vocab_size"),
        ({"model": 3}, r"model=3 must hold keys"),
        ({"steps": 0}, r"steps=0 must be at least 1\. Change config\.steps\."),
        ({"architecture": "lstm"}, "known are 'transformer', 'rnn'"),
        ({**RNN, "model": {"norm": "rms"}}, r"norm=rms has .* architecture=rnn"),
        ({**RNN, "model": {"positions": "rotary"}}, r"model\.positions=rotary has no"),
        ({**RNN, "model": {"activation": "geglu"}}, r"model\.activation=geglu has no"),
        ({"model": {"positions": "learned", "max_positions": 1073}}, "exceed .*=1073"),
        ({"decoding": {"beam_size": 10**12}}, "beam_size=.* at most 1,000"),
        ({"mesh": {"fsdp": 10**12}}, "fsdp=.* at most 100,000"),
        ({"training": {"label_smoothing": 1.0}}, r"training\.label_smoothing=1\.0"),
        ({"profile": {"steps": "0:3"}}, r"profile\.steps='0:3' must be \"first:last"),
    ],
)
def test_each_rule_states_what_came_and_what_to_change(values, said):
    with pytest.raises(ConfigError, match=said):
        parse(values)


def test_the_source_s_own_vocabulary_reaches_the_model_that_is_built():
    values = {"vocabulary": {"size": 50, "source_size": 30}}
    config = parse({**values, "model": {"tying": "decoder"}})
    assert config.network is config.model
    assert (config.model.vocab_size, config.model.source_vocab_size) == (50, 30)
    assert config.rnn.source_vocab_size == 0
    config = parse({**values, "architecture": "rnn", "rnn": {"tying": "none"}})
    assert config.network is config.rnn
    assert (config.rnn.vocab_size, config.rnn.source_vocab_size) == (50, 30)
    with pytest.raises(ConfigError, match="tying='all' needs one vocabulary"):
        parse(values)


def test_a_retired_key_of_a_saved_run_is_ignored(monkeypatch):
    saved = to_dict(Config())
    saved["model"]["former"] = 3
    with pytest.raises(ConfigError, match=r"no key config\.model\.former"):
        config.parse_saved(saved)
    monkeypatch.setattr(config, "RETIRED", frozenset({"model.former"}))
    assert config.parse_saved(saved) == Config()
