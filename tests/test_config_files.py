"""`--config`: shipped names, paths, and files that cannot be loaded."""

import pytest

from t2t_jax.cli.flags.parse_argv import parse_argv
from t2t_jax.config_files import load_config, resolve, shipped_directory, shipped_names
from t2t_jax.errors import ConfigError, InputMissingError, UserError
from tests.integration.tiny import ROOT
from tests.refusals import problems_of

pytestmark = pytest.mark.usefixtures("empty_directory")


def test_every_shipped_configuration_has_a_name():
    files = {path.stem for path in (ROOT / "configs").glob("*.py")} - {"__init__"}
    assert set(shipped_names()) == files
    for name in files:
        assert resolve(name) == str(shipped_directory() / f"{name}.py")


@pytest.mark.parametrize(
    ("given", "workdir"),
    [
        ("wmt_en_de", "runs/wmt_en_de"),
        ("table3:C_N2", "runs/table3_C_N2"),
        (str(ROOT / "configs" / "wmt_en_de.py"), "runs/wmt_en_de"),
    ],
)
def test_a_name_or_a_path_is_a_configuration(given, workdir):
    options = parse_argv([f"--config={given}"])
    assert str(options.workdir.path) == workdir
    assert options.config.data.train.startswith("tfds:wmt14_translate/de-en")


def test_a_file_here_does_not_hide_a_shipped_name(tmp_path):
    (tmp_path / "wmt_en_de").write_text("raise SystemExit")
    (tmp_path / "wmt_en_de.py").write_text("raise SystemExit")
    assert parse_argv(["--config=wmt_en_de"]).config.vocabulary.size == 37_000


def test_an_unknown_name_lists_the_shipped_ones():
    problem = problems_of("--config=wmt_en_d", error=InputMissingError)
    assert "Did you mean --config=wmt_en_de?" in problem
    for name in shipped_names():
        assert name in problem


SETS_A_WORD = """from t2t_jax.config import default
def get_config():
    config = default()
    config.logging.every_steps = 'x'
    return config
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def get_config():\n    return 1 / 0\n", "line 2 cannot be loaded: ZeroDiv"),
        ("x = 1\n", "mine.py must define get_config()"),
        ("x = 1\ndef get_config(:\n", "invalid syntax (mine.py, line 2)"),
        (SETS_A_WORD, "line 4: config.logging.every_steps must be an integer."),
        ("def get_config():\n    return {}\n", "which returns a configuration."),
    ],
)
def test_a_broken_config_file_is_named_with_its_line(tmp_path, text, said):
    (tmp_path / "mine.py").write_text(text)
    problem = problems_of("--config=mine.py", error=ConfigError)
    assert "mine.py" in problem
    assert said in problem
    assert len(problem.splitlines()) <= 3
    assert "<class" not in problem


@pytest.mark.parametrize("name", ["wmt_en_dee", "a/b.py", "phrasebook:x", ""])
def test_python_reads_of_names_and_not_of_flags(name):
    with pytest.raises(UserError) as info:
        load_config(name)
    assert "--config" not in str(info.value)
