import json
import re

import pytest

from t2t_jax import config
from t2t_jax.config import Config, default, keys, parse, to_dict, unknown_key
from t2t_jax.errors import ConfigError
from t2t_jax.training.config import LoggingConfig


def problems_of(values):
    with pytest.raises(ConfigError) as info:
        parse(values)
    return info.value.problems


def test_the_default_is_the_paper_s_base_model():
    config = parse(default())
    assert config == Config()
    model = config.model
    assert (model.num_layers, model.d_model, model.d_ff) == (6, 512, 2048)
    assert (model.num_heads, model.d_k, model.d_v) == (8, 64, 64)
    assert (model.dropout, config.training.label_smoothing) == (0.1, 0.1)
    assert config.steps == 100_000
    assert (config.vocabulary.size, config.data.tokens_per_batch) == (37_000, 24_576)
    assert (config.decoding.beam_size, config.decoding.length_penalty) == (4, 0.6)
    assert (config.checkpoint.every_minutes, config.checkpoint.keep) == (10.0, 5)


def test_a_configuration_survives_json():
    config = Config(steps=7, logging=LoggingConfig(every_steps=3))
    assert parse(json.loads(json.dumps(to_dict(config)))) == config


def test_the_vocabulary_s_size_is_declared_once():
    assert "vocab_size" not in to_dict(Config())["model"]
    assert "model.vocab_size" not in keys()
    config = parse({"vocabulary": {"size": 1_000}})
    assert config.model.vocab_size == config.vocabulary.size == 1_000
    rate = parse({"model": {"dropout": 0}}).model.dropout
    assert (rate, type(rate)) == (0.0, float)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"steps": "7"}, r"steps='7' must be an integer\. Change config\.steps\."),
        ({"model": {"dropout": None}}, r"model\.dropout=None must be a number"),
        ({"model": {"vocab_size": 999}}, r"model\.vocab_size"),
        ({"model": 3}, r"model=3 must hold keys"),
        ({"steps": 0}, r"steps=0 must be at least 1\. Change config\.steps\."),
        ({"architecture": "lstm"}, "known are 'transformer', 'rnn'"),
        (
            {"architecture": "rnn", "model": {"norm": "rms"}},
            r"model\.norm=rms has no effect with architecture=rnn\. Leave",
        ),
        (
            {"architecture": "rnn", "model": {"positions": "rotary"}},
            r"model\.positions=rotary has no effect with architecture=rnn\. Leave",
        ),
        (
            {"architecture": "rnn", "model": {"activation": "geglu"}},
            r"model\.activation=geglu has no effect with architecture=rnn\. Leave",
        ),
        (
            {"model": {"positions": "learned", "max_positions": 1073}},
            r"max_extra_tokens=1074 must not exceed model\.max_positions=1073",
        ),
        ({"training": {"label_smoothing": 1.0}}, r"training\.label_smoothing=1\.0"),
        ({"profile": {"steps": "0:3"}}, r"profile\.steps='0:3' must be \"first:last"),
    ],
)
def test_each_rule_states_what_came_and_what_to_change(values, said):
    with pytest.raises(ConfigError, match=said):
        parse(values)


def test_all_broken_rules_are_named_at_once():
    said = problems_of(
        {
            "stepz": 1,
            "seed": "x",
            "model": {"d_model": 513, "dropout": 1.5},
            "optimizer": {"beta1": 2.0, "warmup": 3},
            "checkpoint": {"keep": 0},
        }
    )
    together = "\n".join(said)
    for name in ("stepz", "seed='x'", "d_model=513", "dropout=1.5", "keep=0"):
        assert name in together
    assert "optimizer.warmup." in together
    assert len(said) == 6  # beta1 is not judged before the section's keys are right


def test_the_source_s_own_vocabulary_reaches_the_model_that_is_built():
    values = {"vocabulary": {"size": 50, "source_size": 30}}
    config = parse({**values, "model": {"tying": "decoder"}})
    assert config.network is config.model
    assert (config.model.vocab_size, config.model.source_vocab_size) == (50, 30)
    assert config.rnn.source_vocab_size == 0
    config = parse({**values, "architecture": "rnn", "rnn": {"tying": "none"}})
    assert config.network is config.rnn
    assert (config.rnn.vocab_size, config.rnn.source_vocab_size) == (50, 30)
    (said,) = problems_of(values)
    assert "model.tying='all' needs one vocabulary" in said


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("model.d_modle", " Did you mean model.d_model?"),
        ("data.num_layers", " Did you mean model.num_layers?"),
        ("evaluaton.every_steps", " Did you mean evaluation.every_steps?"),
        ("model.vocab_size", " It always equals config.vocabulary.size."),
        ("zzz", ""),
    ],
)
def test_a_suggestion_is_what_was_meant_or_nothing(name, meant):
    assert unknown_key(name) == f"There is no key config.{name}.{meant}"


def test_a_retired_key_of_a_saved_run_is_ignored(monkeypatch):
    saved = to_dict(Config())
    saved["model"]["former"] = 3
    with pytest.raises(ConfigError, match=r"no key config\.model\.former"):
        config.parse_saved(saved)
    monkeypatch.setattr(config, "RETIRED", frozenset({"model.former"}))
    assert config.parse_saved(saved) == Config()


@pytest.mark.parametrize(
    ("key", "most"),
    [
        ("steps", 1_000_000_000),
        ("decoding.beam_size", 1_000),
        ("mesh.fsdp", 100_000),
    ],
)
def test_an_absurd_size_is_refused_with_its_limit(key, most):
    section, _, name = key.rpartition(".")
    huge = {name: 10**12}
    said = "\n".join(problems_of({section: huge} if section else huge))
    assert re.search(
        rf"{key}=.* must be at most {most:,}.*Change config\.{key}\.", said
    )
