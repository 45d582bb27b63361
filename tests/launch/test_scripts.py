import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from t2t_jax.cli.flags.modes import FLAGS
from t2t_jax.config import defaults
from tests.docs.commands import run
from tests.integration.tiny import ROOT
from tests.launch.programs import LAUNCH, command, environment, launch
from tests.launch.test_kubernetes import CONTAINER

SCRIPTS = sorted([*LAUNCH.rglob("*.sh"), *LAUNCH.rglob("*.sbatch"), ROOT / ".ci/run"])
# Each script that runs the program or a tool, with --print and arguments in place.
PRINTED = {
    "local/processes.sh": ["2", "--devices=4", "--print", "--", "--workdir=a b"],
    "local/eight_devices.sh": ["--print", "--workdir=a b"],
    "slurm/train.sbatch": ["--print", "--workdir=a b"],
    "slurm/sweep.sbatch": ["--print", "c.py", "runs", "row", "--", "--workdir=a b"],
    "slurm/translate.sbatch": ["--workdir=a b", "--print"],
    "slurm/task.sh": ["--print", "code", "9", "python", "-m", "t2t_jax.main"],
    "sweep.sh": ["--print", "c.py", "row", "other", "--", "--workdir=a b"],
    "tpu/create.sh": ["--print", "--zone=z", "--nfs=10.0.0.2:/share"],
    "tpu/run.sh": ["--print", "--zone=z", "--", "--workdir=a b"],
    "tpu/delete.sh": ["--print", "--zone=z"],
}
_TOOLS = "gcloud srun sbatch scontrol kubectl docker tar ssh nvidia-smi pkill".split()


def shellcheck():
    beside = Path(sys.executable).with_name("shellcheck")
    return str(beside) if beside.exists() else shutil.which("shellcheck")


def printed(name):
    done = launch(name, *PRINTED[name], environ=environment(PYTHON="python"))
    return [shlex.split(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_valid_bash_and_stops_at_the_first_error(path):
    subprocess.run(["bash", "-n", path], check=True)
    assert "set -euo pipefail" in path.read_text(encoding="utf-8")


@pytest.mark.skipif(not shellcheck(), reason="there is no shellcheck here")
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_shellcheck_has_nothing_to_say(path):
    options = ["--shell=bash", "--external-sources", "--source-path=SCRIPTDIR"]
    assert run([shellcheck(), *options, path], ROOT).stdout == ""


@pytest.mark.parametrize("name", PRINTED)
def test_print_shows_and_runs_nothing(name, tmp_path):
    tools = tmp_path / "bin"
    for tool in [*_TOOLS, "python"]:
        command(tools, tool, f"echo {tool} >> {tmp_path}/ran")
    (tmp_path / "here").mkdir()
    (tmp_path / "here/launch").symlink_to(LAUNCH)
    env = environment(path=tools, PYTHON="python", TMPDIR=tmp_path / "here")
    done = launch(name, *PRINTED[name], environ=env, cwd=tmp_path / "here")
    assert done.stdout.strip()
    assert not (tmp_path / "ran").exists()
    assert [path.name for path in (tmp_path / "here").iterdir()] == ["launch"]


def program_flags():
    """Yields each flag that a launcher gives to the program."""
    for name in PRINTED:
        for line in printed(name):
            _, _, words = " ".join(line).partition("t2t_jax.main")
            yield from re.findall(r"(?<= )--\S*", words)
    yield from CONTAINER["args"]
    for path in filter(Path.is_file, LAUNCH.rglob("*")):
        text = path.read_text(encoding="utf-8")
        yield from re.findall(r"--(?:config|workdir|mode|input|output)\S*", text)


def test_every_flag_that_a_launcher_passes_exists():
    known = {"config", *FLAGS, *(f"config.{key}" for key in defaults())}
    names = {re.match(r"--([\w.]*\w)", flag).group(1) for flag in program_flags()}
    assert {"coordinator_address", "num_processes", "process_id", "mode"} <= names
    assert names <= known, names - known
