"""`--help`: every flag and key has a meaning, and every example and choice is valid.

Seen to fail: with a key or flag without an entry in its docstring, with a choice that
the configuration refuses, and with an example that a flag of another mode is added to.
"""

import re
import shlex

import pytest

from t2t_jax.cli.flags.arguments import split
from t2t_jax.cli.flags.modes import (
    FLAGS,
    MODES,
    examples_of,
    flag_help,
    flags_of,
    key_docs,
    modes_of,
)
from t2t_jax.cli.flags.options import OPTIONS, RunOptions
from t2t_jax.cli.flags.parse_argv import parse_argv
from t2t_jax.cli.flags.usage import help_page, requested_help
from t2t_jax.config import choices, defaults, keys, parse
from t2t_jax.errors import ConfigError, UserError

# What a choice needs beside it.
BESIDE = {
    ("model.positions", "learned"): {"decoding": {"max_source_length": 400}},
    ("vocabulary.source_unit", "words"): {
        "vocabulary": {"source_size": 500},
        "model": {"tying": "decoder"},
    },
}


def with_value(key, value):
    section, _, name = key.rpartition(".")
    values = {s: dict(beside) for s, beside in BESIDE.get((key, value), {}).items()}
    (values.setdefault(section, {}) if section else values)[name] = value
    return values


@pytest.mark.parametrize("key", keys())
def test_every_key_has_a_meaning_and_a_number_its_unit(key):
    doc = key_docs()[key]
    assert len(doc.meaning) > 10
    assert doc.meaning.endswith(".")
    assert bool(doc.unit) == (type(doc.default) in (int, float))
    assert isinstance(doc.default, str) or not doc.choices


@pytest.mark.parametrize("name", FLAGS)
def test_every_flag_has_a_meaning_and_one_type_in_all_its_modes(name):
    for mode in modes_of(name):
        assert re.fullmatch(r"[A-Z].{10,}\.", flag_help(name, mode))
    kinds = {(flag.default, flag.type, flag.key) for flag in modes_of(name).values()}
    assert len(kinds) == 1


@pytest.mark.parametrize("key", choices())
def test_every_choice_that_is_listed_is_accepted_and_no_other_word(key):
    for word in choices()[key]:
        parse(with_value(key, word))
    with pytest.raises(ConfigError, match=f"{key}='?zzz"):
        parse(with_value(key, "zzz"))


def test_every_key_that_refuses_a_made_up_word_lists_its_choices():
    # A span of steps, names with rates, and two that need another key beside them.
    others = {"profile.steps", "data.modifiers", "data.filters"}
    others |= {"vocabulary.source_file", "data.glossary"}
    for key in defaults().keys() - choices() - others:
        if isinstance(defaults()[key], str):
            parse(with_value(key, "zzz"))


def test_the_help_on_everything_names_every_mode_and_key():
    text = help_page("all")
    for key in keys():
        assert f"--config.{key}=" in text
    for mode in MODES:
        assert f"t2t-jax {mode}: " in text


@pytest.mark.parametrize("mode", MODES)
def test_the_help_of_a_mode_has_its_flags_and_no_others(mode):
    text = help_page(mode)
    listed = set(re.findall(r"^  --(\w+)", text, re.MULTILINE)) - {"config"}
    assert listed == set(flags_of(mode))
    if issubclass(OPTIONS[mode], RunOptions):
        assert "--workdir=DIR  (required)" in text
    assert text.count("\n  t2t-jax ") == 2


@pytest.mark.parametrize(
    ("mode", "line"), [(mode, line) for mode in MODES for line in examples_of(mode)]
)
def test_every_example_is_a_valid_command_line(mode, line, empty_directory):
    assert parse_argv(shlex.split(line)).mode == mode


@pytest.mark.parametrize(
    ("topic", "said"),
    [
        ("data", "--config.data.layout=packed  (one of packed, length_buckets)"),
        ("config.optimizer.warmup_steps", "(integer: optimizer steps)"),
        ("norm", "      The paper: layer normalization (§3.1).\n"),
        ("checkpoint.every_steps", "      May change when a run is resumed.\n"),
        ("--beam_size", "short for config.decoding.beam_size"),
        ("to", "(required without --sliding)"),
        ("mode=translate", "t2t-jax translate: "),
        ("own_text", "Without a row, --config=own_text is own_text:medium."),
        ("table3:C_N2", "t2t-jax train --config=table3:C_N2"),
        ("", "Common flags:"),
    ],
)
def test_a_topic_is_a_mode_a_section_a_flag_a_key_or_a_configuration(topic, said):
    assert said in help_page(topic)


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("--help=trin", "train"),
        ("--help=modl", "model"),
        ("--help=warmup_stes", "optimizer.warmup_steps"),
        ("translat --help", "translate"),
        ("--mode=trian --help", "train"),
    ],
)
def test_an_unknown_topic_is_answered_with_the_nearest(line, meant):
    with pytest.raises(UserError, match=rf"Did you mean {re.escape(meant)}\?"):
        requested_help(split(line.split()))


@pytest.mark.parametrize(
    ("line", "topic"),
    [
        ("--help", ""),
        ("help translate", "translate"),
        ("translate --help=data", "data"),
        ("--workdri=x --mode=train --help", "train"),
        ("decoding --help", "decoding"),
        ("", None),
        ("translate --workdir=help", None),
    ],
)
def test_help_is_asked_for_in_several_ways(line, topic):
    expected = None if topic is None else help_page(topic)
    assert requested_help(split(line.split())) == expected
