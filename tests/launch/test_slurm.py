import re

import pytest

from tests.launch.programs import LAUNCH, command, environment, fake_python, launch

# srun, as far as it matters here: it starts the tasks and returns the highest code.
_SRUN = """\
shift
pids=() worst=0
for i in 0 1 2; do SLURM_PROCID=$i "$@" & pids+=($!); done
for pid in "${pids[@]}"; do
  code=0 && wait "$pid" || code=$?
  [ "$code" -le "$worst" ] || worst=$code
done
exit "$worst"
"""


class Cluster:
    """A stand-in for Slurm with one job of three tasks."""

    def __init__(self, folder):
        self.folder = folder
        tools = folder / "bin"
        command(tools, "srun", _SRUN)
        command(tools, "scontrol", f'echo "$@" >> {folder}/scontrol')
        # The grace of a task that failed.
        command(tools, "sleep", "exec /bin/sleep 0.2")
        (folder / "launch").symlink_to(LAUNCH)
        self.env = environment(
            path=tools,
            PYTHON=fake_python(folder),
            SLURM_JOB_ID="7",
            SLURM_JOB_NAME="name",
            SLURM_SUBMIT_DIR=folder,
        )

    def run(self, do, script="train.sbatch"):
        program = (f"--do={do}", f"--notes={self.folder}")
        return launch(f"slurm/{script}", *program, code=None, environ=self.env)

    def requeued(self):
        path = self.folder / "scontrol"
        text = path.read_text(encoding="utf-8") if path.exists() else ""
        path.unlink(missing_ok=True)
        return text

    def files(self):
        return sorted(path.name for path in self.folder.glob("name-7.*"))


@pytest.fixture
def cluster(tmp_path):
    return Cluster(tmp_path)


def test_a_stopped_run_is_queued_again_however_often(cluster):
    for _ in range(5):
        assert cluster.run("75,75,75").returncode == 75
        assert cluster.requeued() == "requeue 7\n"
    assert cluster.files() == []


@pytest.mark.parametrize(
    ("script", "do", "code"),
    [
        ("translate.sbatch", "75,75,75", 75),
        ("train.sbatch", "0,69,0", 69),
        ("train.sbatch", "0,abort,0", 134),
    ],
)
def test_a_new_start_that_may_help_is_made_a_few_times(cluster, script, do, code):
    requeued = []
    for _ in range(4):
        assert cluster.run(do, script).returncode == code
        requeued.append(bool(cluster.requeued()))
    assert requeued == [True, True, True, False]


def test_a_good_stop_forgives_the_failures_before_it(cluster):
    for _ in range(3):
        cluster.run("0,70,0")
    cluster.run("75,75,75")
    cluster.requeued()
    assert cluster.run("0,70,0").returncode == 70
    assert cluster.requeued() == "requeue 7\n"


@pytest.mark.parametrize("code", [1, 64, 76, 78])
def test_a_mistake_is_not_queued_again(cluster, code):
    assert cluster.run(f"0,{code},0").returncode == code
    assert (cluster.requeued(), cluster.files()) == ("", [])


def test_the_first_code_counts_and_not_the_highest(cluster):
    # srun returns the 75 of the slow task; the run failed with 65.
    assert cluster.run("65,slow75,slow75").returncode == 65
    assert cluster.requeued() == ""


@pytest.mark.parametrize("script", ["train.sbatch", "translate.sbatch"])
def test_the_tasks_are_told_before_the_time_is_up_and_have_a_gpu_each(script):
    text = (LAUNCH / "slurm" / script).read_text(encoding="utf-8")
    # sbatch reads the comments before the first command.
    header = re.match(r"(?:#.*\n|\n)*", text)[0]
    found = re.findall(r"^#SBATCH --(\S+)", header, re.MULTILINE)
    # With B: the shell would be told instead.
    assert {"signal=USR1@180", "requeue", "open-mode=append"} <= {*found}
    values = dict(line.split("=") for line in found if "=" in line)
    assert values["ntasks-per-node"] == values["gpus-per-node"]
