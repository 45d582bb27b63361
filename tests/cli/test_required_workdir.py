"""A mode that uses a run names it: no default is taken, and those there are listed.

Seen to fail: where every mode has the default workdir of training.
"""

import os
from pathlib import Path

import pytest

from t2t_jax.cli.flags.modes import MODES, OPTIONS
from t2t_jax.cli.flags.options import RunOptions
from t2t_jax.cli.flags.parser import parse_argv
from t2t_jax.config import parse
from t2t_jax.errors import InputMissingError, UserError
from t2t_jax.main import main
from t2t_jax.run.workdir import Workdir

pytestmark = pytest.mark.usefixtures("empty_directory")

READS_RUN = [mode for mode, cls in OPTIONS.items() if issubclass(cls, RunOptions)]
REQUIRED = {
    "evaluate": ["--source=a", "--reference=b"],
    "score": ["--source=a", "--reference=b"],
    "average": ["--to=x"],
    "export": ["--format=model_dir", "--to=x"],
    "attention": ["--to=x", "--text=a"],
    "show_batch": ["--step=1"],
}


def make_runs(number):
    for index in range(number):
        run = Workdir(Path(f"runs/run{index}"))
        run.create()
        run.write_config(parse({}))
        os.utime(run.path / "config.json", (index, index))
    Path("runs/no_run").mkdir(parents=True, exist_ok=True)


def test_most_modes_use_a_run():
    others = {"train", "prepare", "describe", "doctor", "figures", "import", "compare"}
    assert set(MODES) - set(READS_RUN) == others


@pytest.mark.parametrize("mode", READS_RUN)
def test_a_mode_that_uses_a_run_requires_its_workdir(mode):
    make_runs(1)
    with pytest.raises(UserError) as info:
        parse_argv([mode, *REQUIRED.get(mode, [])])
    (problem,) = info.value.problems
    assert problem == (
        f"--mode={mode} requires --workdir, the run to use. Pass "
        "--workdir=runs/run0 or another. Runs, newest first: runs/run0."
    )


def test_a_handful_of_runs_is_listed_newest_first():
    make_runs(7)
    with pytest.raises(UserError) as info:
        parse_argv(["translate"])
    assert str(info.value).endswith(
        "newest first: runs/run6, runs/run5, runs/run4, runs/run3, runs/run2 and 2 "
        "more."
    )


def test_without_any_run_the_advice_is_to_train():
    with pytest.raises(UserError, match="Train first, or pass the --workdir of a run"):
        parse_argv(["translate"])


def test_a_workdir_that_is_not_there_is_answered_with_those_that_are(capsys):
    make_runs(1)
    assert main(["translate", "--workdir=runs/rum0"]) == 66
    assert "Did you mean runs/run0?" in capsys.readouterr().err


@pytest.mark.parametrize(
    "mode",
    sorted(set(MODES) - set(READS_RUN) - {"compare", "figures", "import", "recover"}),
)
def test_other_modes_keep_their_default(mode):
    assert parse_argv([mode]).workdir.path == Path("runs/phrasebook")


def test_a_named_configuration_names_its_run():
    options = parse_argv(["translate", "--config=table3:C_N2"])
    assert options.workdir.path == Path("runs/table3_C_N2")


def test_a_run_to_describe_must_be_there():
    make_runs(1)
    with pytest.raises(
        InputMissingError, match=r"^--workdir=.* no such .* Did you mean runs/run0\?"
    ):
        parse_argv(["describe", "--workdir=runs/rum0"])
    assert parse_argv(["describe", "--workdir=runs/run0"]).workdir.has_config
    Path("runs/file").touch()
    with pytest.raises(InputMissingError, match="it is a file and not a directory"):
        parse_argv(["describe", "--workdir=runs/file", "--config=phrasebook"])
    # What a configuration would make there.
    parse_argv(["describe", "--workdir=runs/new", "--config=phrasebook"])
