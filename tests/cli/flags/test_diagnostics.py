"""What a wrong command line is answered with: what was meant, once, and never Python.

Seen to fail: with the parser of before, which named the first mistake with the text of
a Python exception, took `--mode=…` for the value of `--workdir`, and dropped what
`--undefok` names.
"""

import re

import pytest

from t2t_jax.cli.flags.modes import MODES
from t2t_jax.cli.flags.parser import parse_argv
from t2t_jax.errors import ConfigError, UserError
from t2t_jax.main import main
from tests.refusals import problems_of

pytestmark = pytest.mark.usefixtures("empty_directory")


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("--workdri=x", "There is no flag --workdri. Did you mean --workdir?"),
        ("-wrkdir=x", "There is no flag -wrkdir. Did you mean --workdir?"),
        ("--Workdir=x", "There is no flag --Workdir. Did you mean --workdir?"),
        ("--beam-size=3", "There is no flag --beam-size. Did you mean --beam_size?"),
        ("--xyzzy", "There is no flag --xyzzy."),
        ("--flagfile=x", "There is no flag --flagfile."),
        ("--undefok=x", "There is no flag --undefok."),
        ("--steps=3", "Pass --config.steps."),
        ("--model.d_ff=3", "Pass --config.model.d_ff."),
        ("--seed=3", "Pass --config.seed."),
        ("--dropout=3", "Did you mean --config.model.dropout?"),
    ],
)
def test_an_unknown_flag_is_answered_with_the_one_that_was_meant(argument, said):
    problem = problems_of(argument)
    assert problem.endswith(said)
    assert "\n" not in problem


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        (
            "--config.model.d_modle=3",
            "no key config.model.d_modle. Did you mean --config.model.d_model?",
        ),
        ("--config.stepz=3", "no key config.stepz. Did you mean --config.steps?"),
        ("--config.num_layers=3", "Did you mean --config.model.num_layers?"),
        ("--config.rnn.layers=3", "Did you mean --config.model.num_layers?"),
        ("--config.model.vocab_size=3", "It always equals config.vocabulary.size."),
        ("--config.xyzzy=3", "There is no key config.xyzzy."),
        ("--config.steps=many", "--config.steps=many must be an integer."),
        ("--config.steps=1.5", "--config.steps=1.5 must be an integer."),
        ("--config.steps=" + "9" * 5000, "must be an integer."),
        ("--config.model.dropout=x", "must be a number."),
        ("--config.model.remat=maybe", "must be true or false."),
        ("--config.model=3", "is a section of keys."),
        ("--config.steps", "--config.steps needs a value."),
    ],
)
def test_a_wrong_key_or_value_is_named_in_a_line(argument, said):
    problem = problems_of(argument, error=ConfigError)
    assert said in problem
    assert "\n" not in problem


@pytest.mark.parametrize(
    ("mode", "name", "meant"),
    [
        ("train", "--batch_size", "--config.data.tokens_per_batch"),
        ("translate", "--batch_size", "--config.decoding.tokens_per_batch"),
        ("train", "-b", "--config.data.tokens_per_batch"),
        ("translate", "-b", "--beam_size"),
        ("translate", "--num_beams", "--beam_size"),
        ("train", "--lr", "--config.optimizer.peak_learning_rate"),
        ("train", "--learning_rate", "--config.optimizer.peak_learning_rate"),
        ("train", "--epochs", "--config.steps"),
        ("train", "--num_train_steps", "--config.steps"),
        ("train", "--max_steps", "--config.steps"),
        ("train", "--hidden_size", "--config.model.d_model"),
        ("train", "--output_dir", "--workdir"),
        ("train", "-w", "--workdir"),
        ("translate", "--model", "--workdir"),
        ("translate", "-w", "--workdir"),
        ("translate", "-i", "--input"),
        ("translate", "-o", "--output"),
        ("evaluate", "--src", "--source"),
        ("evaluate", "--tgt", "--reference"),
        ("train", "-c", "--config"),
    ],
)
def test_names_of_other_toolkits_are_answered_with_ours(mode, name, meant):
    problems = problems_of(mode, f"{name}=3")
    assert re.search(rf"There is no flag {name}\. Did you mean {meant}[? ]", problems)


@pytest.mark.parametrize("name", ["-w", "--model", "--output_dir"])
def test_a_run_without_a_mode_is_not_answered_with_a_command_that_trains(name):
    problem = problems_of(name, "runs/phrasebook")
    assert "Did you mean t2t-jax MODE --workdir? Without a MODE it trains." in problem


def test_quotes_without_a_mode_are_not_a_command_that_trains():
    problem = problems_of("--workdir=runs/phrasebook", "please")
    assert "t2t-jax MODE --workdir='runs/phrasebook please'" in problem


def test_a_long_or_unprintable_value_is_shortened():
    problem = problems_of("--config.steps=" + "9" * 5000, "--config.seed=a\nb")
    assert len(problem) < 600
    assert len(problem.splitlines()) == 2


def test_a_value_after_a_short_flag_is_not_another_mistake():
    assert "'4'" not in problems_of("-b", "4")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--translate"], "Did you mean t2t-jax translate (--mode=translate)?"),
        (["translte", "--workdir=w"], "Did you mean t2t-jax translate?"),
        (["runs/phrasebook"], "t2t-jax translate --workdir=runs/phrasebook."),
        (["--config.seed=3", "translate"], "The mode comes first: t2t-jax translate …"),
        (["train", "translate"], "the mode is train. Pass one mode."),
        (["translate", "in.txt"], "Pass --input=in.txt."),
        (["own.py"], "Use t2t-jax describe --config=own.py."),
        (["workdir=w"], "Pass --workdir=w after a mode."),
        (["xyzzy"], "'xyzzy' is neither a mode nor a flag."),
        (["--"], "'--' is neither a mode nor a flag."),
        (["-1"], "'-1' is neither a mode nor a flag."),
        (["version"], "Pass --version."),
        (["translate", "--mode=train"], "different modes. Pass one of them."),
        (
            ["attention", "--text=a", "dog", "barks"],
            "Use quotes if it belongs to the value before it: --text='a dog barks'.",
        ),
    ],
)
def test_a_stray_word_is_answered_with_its_place(argv, said):
    assert said in problems_of(*argv)


COMMAND = re.compile(r"t2t-jax (\w+)|--mode=(\w+)")


@pytest.mark.parametrize(
    "argv",
    [
        *([mode] for mode in MODES if mode != "train"),
        *(["--config.seed=3", mode] for mode in MODES if mode != "train"),
        *([f"--{mode}"] for mode in MODES if mode != "train"),
        ["runs/phrasebook"],
        ["tests"],
        ["in.txt"],
        ["workdir=w"],
        ["translte"],
        ["--translate", "runs/x"],
        ["-w", "runs/x"],
        ["translate", "runs/x"],
    ],
    ids=" ".join,
)
def test_no_advice_about_words_is_a_command_that_trains(argv, tmp_path, monkeypatch):
    (tmp_path / "tests").mkdir()
    (tmp_path / "in.txt").touch()
    monkeypatch.setattr(
        "t2t_jax.cli.modes.train.run", lambda options: pytest.fail("trains")
    )
    if argv in (["describe"], ["doctor"], ["prepare"]):  # they are complete commands
        assert parse_argv(argv).mode == argv[0]
        return
    assert main(argv) == 64
    advice = problems_of(*argv)
    assert {mode or flag for mode, flag in COMMAND.findall(advice)} <= {
        *MODES,
        "MODE",
    } - {"train"}
    assert "Remove" not in advice


def test_a_leading_word_is_the_mode():
    argv = ["--workdir=w", "--beam_size=3"]
    options = parse_argv(["translate", *argv])
    assert vars(options) == vars(parse_argv(["--mode=translate", *argv]))
    assert options.mode == "translate"
    assert parse_argv(["train"]).mode == "train"
    assert parse_argv(["describe", "--mode=describe"]).mode == "describe"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--workdir", "--mode=describe"], "--workdir needs a value."),
        (["--workdir="], "--workdir= is empty."),
        (["--config"], "--config needs a value."),
        (["--config="], "--config= is empty."),
        (["--mode"], "--mode needs a value."),
        (["--mode="], "--mode= is empty."),
        (["translate", "--workdir=w", "--sample=maybe"], "must be true or false."),
    ],
)
def test_a_missing_or_wrong_value_is_named(argv, said):
    assert said in problems_of(*argv)


def test_the_value_of_a_flag_may_be_a_minus_or_a_negative_number():
    options = parse_argv(["translate", "--workdir=w", "--output", "-"])
    assert options.output == "-"
    argv = ["--config.decoding.attention_layer", "-1"]
    assert parse_argv(argv).config.decoding.attention_layer == -1


def test_a_switch_of_the_configuration_is_turned_on_and_off_by_its_name():
    assert parse_argv(["--config.data.drop_copies"]).config.data.drop_copies
    assert not parse_argv(["--noconfig.data.drop_copies"]).config.data.drop_copies


KEYS = ["num_layers", "d_model", "d_ff", "num_heads", "d_k", "d_v", "dropout"]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ([f"--config.modle.{key}=2" for key in KEYS], "4 more are not keys. Did you"),
        ([f"--model.{key}=2" for key in KEYS], "4 more need the prefix"),
        ([f"--config.model.{key}=x" for key in KEYS[:-1]], "3 more must each be an in"),
        ([f"--xyzzy{n}" for n in range(20)], "17 more are not flags."),
        (["--xyzzy"] * 20, "There is no flag --xyzzy."),
        (["--sample", "--beam_size=2", "--top_k=3"], "--beam_size, --sample and --top"),
        (
            ["--config.rnn.d_model=2", "--config.rnn.d_hidden=2"],
            "config.rnn.d_model and config.rnn.d_hidden have no effect",
        ),
        (["one", "two", "three"], "is neither a mode nor a flag"),
    ],
)
def test_equal_mistakes_are_one_message(argv, said):
    problem = problems_of(*argv)
    assert said in problem
    assert len(problem.splitlines()) <= 2


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
