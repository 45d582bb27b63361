import pytest

from t2t_jax.cli.flags import parse_argv
from t2t_jax.cli.mistakes import unknown
from t2t_jax.errors import ConfigError, InputMissingError, UserError


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def problems_of(*argv, error=UserError):
    with pytest.raises(error) as info:
        parse_argv(argv)
    return "\n".join(info.value.problems)


@pytest.mark.parametrize(
    ("rest", "said"),
    [
        (["--workdri=x"], "There is no flag --workdri. Did you mean --workdir?"),
        (["-wrkdir"], "There is no flag --wrkdir. Did you mean --workdir?"),
        (["--xyzzy"], "There is no flag --xyzzy."),
        (["--steps=3"], "There is no flag --steps. Did you mean --config.steps?"),
        (["stray"], "'stray' is not. Remove it"),
        (["--"], "'--' is not. Remove it"),
    ],
)
def test_what_no_flag_took_is_named(rest, said):
    (problem,) = unknown(rest, known=["config", "workdir", "config.steps"])
    assert said in problem


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        (
            "--config.model.d_modle=3",
            "There is no key config.model.d_modle. Did you mean model.d_model?",
        ),
        ("--config.stepz=3", "There is no key config.stepz. Did you mean steps?"),
        ("--config.xyzzy=3", "There is no key config.xyzzy."),
        ("--config.steps=many", "--config.steps=many has the wrong type: "),
        ("--config.steps=1.5", "--config.steps=1.5 has the wrong type: "),
        ("--config.model=3", "--config.model=3 has the wrong type: "),
        ("--config.steps", "Missing value"),
    ],
)
def test_a_wrong_key_or_value_is_named_in_a_line(argument, said):
    problem = problems_of(argument, error=ConfigError)
    assert said in problem
    assert "\n" not in problem


@pytest.mark.parametrize("argv", [["--config=nothere.py"], ["--config"], ["--config="]])
def test_a_missing_config_file_is_named(argv):
    assert "must be a Python file" in problems_of(*argv, error=InputMissingError)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def get_config():\n    return 1 / 0\n", "line 2 cannot be loaded: ZeroDiv"),
        ("\nimport nothere\n", "line 2 cannot be loaded: ModuleNotFoundError"),
        ("x = 1\ndef get_config(:\n", "invalid syntax (mine.py, line 2)"),
        (
            "from t2t_jax.config import default\n"
            "def get_config():\n"
            "    config = default()\n"
            "    config.model.d_modle = 3\n"
            "    return config\n",
            'line 4 cannot be loaded: AttributeError: Key "d_modle" does not exist',
        ),
    ],
)
def test_a_broken_config_file_is_named_with_its_line(tmp_path, text, said):
    (tmp_path / "mine.py").write_text(text)
    problem = problems_of("--config=mine.py", error=ConfigError)
    assert problem.startswith("mine.py")
    assert said in problem
    assert len(problem.splitlines()) <= 3


def test_a_misspelt_key_in_a_config_file_comes_with_the_right_one(tmp_path):
    (tmp_path / "mine.py").write_text(
        "from t2t_jax.config import default\n"
        "def get_config():\n"
        "    config = default()\n"
        "    config.model.d_modle = 3\n"
        "    return config\n"
    )
    assert 'Did you mean "d_model"' in problems_of("--config=mine.py")


def test_a_row_that_a_config_file_does_not_take_is_named(tmp_path):
    (tmp_path / "mine.py").write_text("def get_config():\n    return {}\n")
    problem = problems_of("--config=mine.py:big", error=ConfigError)
    assert "mine.py has no rows. Leave :big out" in problem


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
