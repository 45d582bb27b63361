"""What a wrong command line is answered with: what was meant, once, and never Python.

Seen to fail: with the parser of before, which named the first mistake with the text of
a Python exception, took `--mode=…` for the value of `--workdir`, and dropped what
`--undefok` names.
"""

import re

import pytest

from t2t_jax.cli.flags.parser import parse_argv
from t2t_jax.errors import ConfigError, UserError
from tests.refusals import problems_of

pytestmark = pytest.mark.usefixtures("empty_directory")


@pytest.mark.parametrize(
    ("argv", "named", "meant"),
    [
        # What is near is named, hyphens and capitals included.
        (["--workdri=x"], "--workdri", "--workdir"),
        (["-wrkdir=x"], "-wrkdir", "--workdir"),
        (["--Workdir=x"], "--Workdir", "--workdir"),
        (["translate", "--beam-size=3"], "--beam-size", "--beam_size"),
        (["--steps=3"], "--steps", "--config.steps"),
        (["--model.d_ff=3"], "--model.d_ff", "--config.model.d_ff"),
        (["--dropout=3"], "--dropout", "--config.model.dropout"),
        (["--translate"], "--translate", "t2t-jax translate"),
        (["--config.model.d_modle=3"], "model.d_modle", "--config.model.d_model"),
        (["--config.stepz=3"], "config.stepz", "--config.steps"),
        (["--config.num_layers=3"], "num_layers", "--config.model.num_layers"),
        (["--config.rnn.layers=3"], "rnn.layers", "num_layers"),
        (["--config.model.vocab_size=3"], "vocab_size", "config.vocabulary.size"),
        (["--config.model=3"], "--config.model", "--help=model"),
        # Nothing is.
        (["--xyzzy"], "--xyzzy", ""),
        (["--flagfile=x"], "--flagfile", ""),
        (["--undefok=x"], "--undefok", ""),
        (["--config.xyzzy=3"], "config.xyzzy", ""),
        # Of another mode or toolkit.
        (["evaluate", "--max_lines=3"], "--max_lines", ""),
        (["evaluate", "--lins=3"], "--lins", ""),
        (["translate", "--num_beams=3"], "--num_beams", ""),
        # Values.
        (["--config.steps=many"], "--config.steps=many", "integer"),
        (["--config.steps=1.5"], "--config.steps=1.5", "integer"),
        (["--config.model.dropout=x"], "--config.model.dropout=x", "number"),
        (["--config.model.remat=maybe"], "remat=maybe", "true or false"),
        (["--config.steps"], "--config.steps", "--config.steps=VALUE"),
        (["--workdir", "--mode=describe"], "--workdir", "--workdir=VALUE"),
        (["--workdir="], "--workdir=", ""),
        (["--config="], "--config=", ""),
        (["--mode="], "--mode=", ""),
        (["translate", "--workdir=w", "--sample=maybe"], "--sample", "true or false"),
        # Words.
        (["translte", "--workdir=w"], "'translte'", "t2t-jax translate"),
        (["--config.seed=3", "translate"], "'translate'", "t2t-jax translate …"),
        (["train", "translate"], "'translate'", "one mode"),
        (["translate", "in.txt"], "'in.txt'", "--name=value"),
        (["xyzzy"], "'xyzzy'", "Modes: train"),
        (["--"], "'--'", "Modes: train"),
        (["-1"], "'-1'", "Modes: train"),
        (["translate", "--mode=train"], "--mode=train", "one of them"),
        (["--text=a", "dog", "barks"], "'dog barks'", "--text='a dog barks'"),
    ],
)
def test_a_mistake_is_named_with_what_was_meant(argv, named, meant):
    (problem,) = (p for p in problems_of(*argv).splitlines() if named in p)
    if meant:
        assert meant in problem
    else:
        assert "Did you mean" not in problem


def test_a_wrong_value_of_a_key_is_an_error_of_the_configuration():
    problems_of("--config.steps=" + "9" * 5000, error=ConfigError)
    problems_of("--config.stepz=3", error=ConfigError)


def test_a_long_or_unprintable_value_is_shortened():
    problem = problems_of("--config.steps=" + "9" * 5000, "--config.seed=a\nb")
    assert len(problem) < 600
    assert len(problem.splitlines()) == 2


COMMAND = re.compile(r"t2t-jax (\w+)|--mode=(\w+)")


@pytest.mark.parametrize(
    "argv",
    [
        *(["--config.seed=3", mode] for mode in ("translate", "describe")),
        ["--translate"],
        ["runs/phrasebook"],
        ["workdir=w"],
        ["translte"],
        ["--workdir=runs/phrasebook", "please"],
    ],
    ids=" ".join,
)
def test_no_advice_about_words_is_a_command_that_trains(argv):
    advice = problems_of(*argv)
    assert "train" not in {mode or flag for mode, flag in COMMAND.findall(advice)}


def test_a_leading_word_is_the_mode():
    argv = ["--workdir=w", "--beam_size=3"]
    options = parse_argv(["translate", *argv])
    assert vars(options) == vars(parse_argv(["--mode=translate", *argv]))
    assert options.mode == "translate"
    assert parse_argv(["train"]).mode == "train"
    assert parse_argv(["describe", "--mode=describe"]).mode == "describe"


def test_the_value_of_a_flag_may_be_a_minus_or_a_negative_number():
    options = parse_argv(["translate", "--workdir=w", "--output", "-"])
    assert options.output == "-"
    argv = ["--config.decoding.attention_layer", "-1"]
    assert parse_argv(argv).config.decoding.attention_layer == -1


def test_a_switch_of_the_configuration_is_turned_on_and_off_by_its_name():
    assert parse_argv(["--config.data.drop_copies"]).config.data.drop_copies
    assert not parse_argv(["--noconfig.data.drop_copies"]).config.data.drop_copies


def test_a_repeated_mistake_is_named_once():
    assert len(problems_of(*["--xyzzy"] * 20).splitlines()) == 1


def test_all_mistakes_of_a_command_line_are_named_at_once():
    problems = problems_of(
        "--mode=trian",
        "--config.stepz=3",
        "--config.model.d_modle=3",
        "--config.steps=many",
        "--foo=1",
        "stray",
    )
    for said in (
        "--mode=trian must be one of train",
        "config.stepz",
        "config.model.d_modle",
        "--config.steps=many",
        "--foo",
        "'stray'",
    ):
        assert said in problems
    assert len(problems.splitlines()) == 6


def test_no_text_of_a_python_exception_reaches_the_user(capsys):
    texts = ["", "x", "-1", "1e400", "nan", "²", "\0", "9" * 5000, "True", "[1]", "'"]
    names = ["--config.steps", "--config.model.dropout", "--config.model.remat"]
    names += ["--last", "--devices", "--mfu", "--process_id", "--average_steps"]
    names += ["--sample", "--top_p", "--shards", "--config", "--workdir", "--mode"]
    for name in names:
        for text in texts:
            with pytest.raises(UserError) as info:
                parse_argv([f"{name}={text}", "--xyzzy"])
            said = str(info.value)
            assert "There is no flag --xyzzy" in said
            for python in ("literal", "Error", "argument", "Exceeds", "<class", "\\x"):
                assert python not in said
