"""What `--mode=evaluate` refuses, before JAX is imported and anything is decoded."""

import subprocess
import sys

import pytest

from t2t_jax.config import Config
from t2t_jax.run.workdir import Workdir
from tests.integration import tiny

NUM_PAIRS = 23
EVALUATE = ("--mode=evaluate", "--source=en", "--reference=de")


@pytest.fixture
def workdir(tmp_path):
    """Holds a run's configuration, which is as much of it as is looked at."""
    run = Workdir(tmp_path / "run")
    run.create()
    run.write_config(Config())
    return run.path


@pytest.fixture
def texts(tmp_path):
    for name in ("en", "de"):
        _write(tmp_path / name, ["a"] * NUM_PAIRS)
    return tmp_path


def _write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _refused(workdir, *argv, without=()):
    """Returns exit code and stderr of a command that must fail before JAX is there."""
    argv = [*EVALUATE, f"--workdir={workdir}", *argv]
    program = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({list(without)!r}))\n"
        "from t2t_jax.main import main\n"
        f"code = main({argv!r})\n"
        "print(code, 'jax' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=workdir.parent,
        env=tiny.environment(),
        check=True,
    )
    code, jax_is_there = done.stdout.split()
    assert jax_is_there == "False"
    return int(code), done.stderr


@pytest.mark.parametrize(
    ("argv", "code", "messages"),
    [
        (
            ("--source=long", "--baseline=short"),
            65,
            ("long has 1,201, de has 23.", "short has 7, de has 23."),
        ),
        (
            ("--reference=empty",),
            65,
            ("--reference=empty must have lines", "en has 23"),
        ),
        (("--hypotheses=no/where",), 73, ("--hypotheses=no/where must be",)),
        (("--robustness", "--protocol=tokenized"), 64, ("mutually exclusive",)),
        (("--protocol=vaswani2017",), 64, ("pip install 't2t-jax[paper]'",)),
    ],
)
def test_mistakes_are_named_before_jax_is_imported(
    workdir, texts, argv, code, messages
):
    _write(texts / "long", ["a"] * 1201)
    _write(texts / "short", ["a"] * 7)
    (texts / "empty").touch()
    found, errors = _refused(workdir, *argv, without=["sacremoses"])
    assert found == code
    assert all(message in errors for message in messages)
    assert errors.count("error:") == len(messages)
