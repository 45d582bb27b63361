"""`--help`: every flag and key has a meaning, and every example and choice is valid.

Seen to fail: with a key without an entry in its docstring, with a choice that the
configuration refuses, and with an example that a flag of another mode is added to.
"""

import dataclasses
import re
import shlex

import pytest

from t2t_jax.cli.flags import usage
from t2t_jax.cli.flags.diagnostics import read_line
from t2t_jax.cli.flags.key_docs import key_docs
from t2t_jax.cli.flags.modes import FLAGS, MODES, OPTIONS, flags_of, modes_of
from t2t_jax.cli.flags.options import RunOptions
from t2t_jax.cli.flags.parser import parse_argv
from t2t_jax.cli.flags.usage import help_page, requested_help
from t2t_jax.config import choices, defaults, keys, parse
from t2t_jax.errors import ConfigError, UserError
from t2t_jax.main import main

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
    return {section: {name: value}} if section else {name: value}


@pytest.mark.parametrize("key", keys())
def test_every_key_has_a_meaning_and_a_number_its_unit(key):
    doc = key_docs()[key]
    assert len(doc.meaning) > 10
    assert doc.meaning.endswith(".")
    is_number = isinstance(doc.default, int | float) and not isinstance(
        doc.default, bool
    )
    assert bool(doc.unit) == is_number


@pytest.mark.parametrize("key", [k for k, v in defaults().items() if v != str(v)])
def test_only_words_have_choices(key):
    assert key_docs()[key].choices == ()


@pytest.mark.parametrize("key", choices())
def test_every_choice_that_is_listed_is_accepted_and_no_other_word(key):
    for word in choices()[key]:
        beside = BESIDE.get((key, word), {})
        own = with_value(key, word)
        parse(
            {
                section: {**beside.get(section, {}), **own[section]}
                if isinstance(own.get(section), dict)
                else own.get(section, beside.get(section))
                for section in {**beside, **own}
            }
        )
    with pytest.raises(ConfigError, match=f"{key}='?zzz"):
        parse(with_value(key, "zzz"))


def test_every_key_that_refuses_a_made_up_word_lists_its_choices():
    refusing = set()
    for key, default in defaults().items():
        if isinstance(default, str):
            try:
                parse(with_value(key, "zzz"))
            except ConfigError:
                refusing.add(key)
    # The first is a span of steps; the other needs a size beside it.
    assert refusing - set(choices()) == {"profile.steps", "vocabulary.source_file"}


def test_the_help_on_everything_names_every_mode_flag_and_key():
    text = help_page("all")
    for key in keys():
        assert f"--config.{key}=" in text
    for flag in FLAGS:
        assert f"--{flag}" in text or flag == "mode"
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
    ("mode", "line"),
    [(mode, line) for mode in MODES for line in OPTIONS[mode].examples],
)
def test_every_example_is_a_valid_command_line(mode, line, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert parse_argv(shlex.split(line)).mode == mode


@pytest.mark.parametrize(
    ("topic", "said"),
    [
        ("data", "--config.data.layout=packed  (one of packed, length_buckets)"),
        ("optimizer.warmup_steps", "(integer: optimizer steps)"),
        ("config.optimizer.warmup_steps", "(integer: optimizer steps)"),
        ("peak_learning_rate", "--config.optimizer.peak_learning_rate=0.0"),
        ("num_layers", "--config.rnn.num_layers=2"),
        ("beam_size", "short for config.decoding.beam_size"),
        ("--beam_size", "Modes: translate or evaluate."),
        ("checkpoint", "--config.checkpoint.keep=5"),
        ("checkpoint", "--checkpoint=best|last|STEP"),
        ("decoding.seed", "short form --sampling_seed"),
        ("mode=translate", "t2t-jax translate: "),
        ("own_text", "t2t-jax describe --config=own_text:ROW"),
        ("own_text", "own_text is a configuration, in"),
        ("own_text", "Without a row, --config=own_text is own_text:medium."),
        ("wmt_en_de", "t2t-jax describe --config=wmt_en_de\n"),
        ("table3:C_N2", "t2t-jax train --config=table3:C_N2"),
        ("", "Common flags:"),
    ],
)
def test_a_topic_is_a_mode_a_section_a_flag_or_a_key(topic, said):
    assert said in help_page(topic)


@pytest.mark.parametrize(
    ("topic", "meant"),
    [
        ("trian", "train"),
        ("modle", "model"),
        ("warmup_step", "optimizer.warmup_steps"),
        ("beam_siz", "beam_size"),
    ],
)
def test_an_unknown_topic_is_answered_with_the_nearest(topic, meant):
    with pytest.raises(UserError, match=rf"Did you mean --help={meant}\?"):
        help_page(topic)


@pytest.mark.parametrize(
    ("argv", "topic"),
    [
        (["--help"], ""),
        (["-h"], ""),
        (["help"], ""),
        (["translate", "--help"], "translate"),
        (["--help", "translate"], "translate"),
        (["help", "translate"], "translate"),
        (["--mode=translate", "-h"], "translate"),
        (["translate", "--help=data"], "data"),
        (["--workdri=x", "--help"], ""),
        (["--mode=trian", "--help"], ""),
    ],
)
def test_help_is_asked_for_in_several_ways(argv, topic):
    assert requested_help(read_line(argv)) == help_page(topic)


@pytest.mark.parametrize("argv", [[], ["translate"], ["--workdir=help"]])
def test_other_command_lines_ask_for_no_help(argv):
    assert requested_help(read_line(argv)) is None


@pytest.mark.parametrize("columns", [60, 80, 100, 300])
def test_the_text_fits_the_terminal(monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    width = min(columns, 100)
    for line in help_page("all").splitlines():
        assert len(line) <= width or " " not in line.strip()


def test_the_overview_is_short():
    assert len(help_page("").splitlines()) <= 60


def test_the_parsed_options_of_a_mode_are_its_flags_and_no_others():
    common = {"config", "overrides", "config_given", "workdir", "processes"}
    common |= {"workdir_given"}
    for mode, cls in OPTIONS.items():
        names = {field.name.rstrip("_") for field in dataclasses.fields(cls)}
        assert set(flags_of(mode)) <= names
        # n_best is 1 in an evaluation.
        assert names - set(flags_of(mode)) <= common | {"n_best"}


@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_is_of_one_type_in_all_its_modes(name):
    kinds = {(flag.default, flag.type, flag.key) for flag in modes_of(name).values()}
    assert len(kinds) == 1


def test_a_flag_that_means_another_thing_in_each_mode_lists_them():
    text = help_page("to")
    assert text.count("  --to=") > 4
    assert "(required without --sliding)" in text
    for mode in modes_of("to"):
        assert re.search(rf"^ +Modes: .*\b{mode}\b", text, re.MULTILINE)


def test_help_without_docstrings_still_lists_the_keys(monkeypatch):
    monkeypatch.setattr("inspect.getdoc", lambda cls: None)
    key_docs.cache_clear()
    try:
        assert "--config.data.train=" in usage.help_page("data")
    finally:
        key_docs.cache_clear()


def test_the_version_is_printed(capsys):
    from t2t_jax.version import __version__

    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith(f"t2t-jax {__version__} (Python 3")
