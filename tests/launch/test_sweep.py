"""A sweep with a stand-in for the program, and for Slurm."""

import signal
import subprocess

import pytest

from tests.launch.programs import LAUNCH, command, environment
from tests.waiting import wait_for

# Notes its arguments; a row ends as `ROW=CODE` in $CODES has it, or waits for a signal.
_PYTHON = """\
shift 2
echo "$@" >> "$NOTES"
row=$(expr "$*" : '.*--config=c.py:\\([a-z]*\\)') || true
code=$(expr " $CODES " : ".* $row=\\([a-z0-9]*\\) ") || true
if [ "$code" = wait ]; then
  trap 'echo saved >> "$NOTES"; exit 75' TERM
  touch "$NOTES.waits"
  while true; do sleep 0.05; done
fi
case "$*" in
  *--mode=train*)
    workdir=$(expr "$*" : '.*--workdir=\\([^ ]*\\)')
    mkdir -p "$workdir"
    touch "$workdir/config.json"
    ;;
esac
exit "${code:-0}"
"""


class Sweep:
    """A sweep in a folder of its own."""

    def __init__(self, folder):
        self.folder, self.notes = folder, folder / "notes"
        tools = folder / "bin"
        command(tools, "python", _PYTHON)
        command(tools, "sbatch", f'echo "$@" >> {folder}/sbatch; echo "7;cluster"')
        self.env = environment(
            path=tools, PYTHON=tools / "python", NOTES=self.notes, CODES=""
        )

    def start(self, *argv, codes=""):
        return subprocess.Popen(
            ["bash", LAUNCH / "sweep.sh", *argv],
            cwd=self.folder,
            env={**self.env, "CODES": codes},
            stderr=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, *argv, codes=""):
        sweep = self.start(*argv, codes=codes)
        _, self.said = sweep.communicate(timeout=240)
        return sweep.returncode

    def ran(self):
        text = self.notes.read_text(encoding="utf-8") if self.notes.exists() else ""
        return text.splitlines()


@pytest.fixture
def sweep(tmp_path):
    return Sweep(tmp_path)


def train(row, *more):
    return " ".join(
        ["--mode=train", f"--config=c.py:{row}", f"--workdir=runs/c_{row}", *more]
    )


def test_rows_are_trained_in_order_and_compared_even_if_one_fails(sweep):
    rest = ("--", "--config.steps=3")
    assert sweep.run("c.py", "a", "b", "c", *rest, codes="b=76") == 76
    assert "row b ended with code 76" in sweep.said
    # The stand-in has made the directory of row b, too.
    assert sweep.ran() == [
        *(train(row, "--config.steps=3") for row in "abc"),
        "--mode=compare --workdirs=runs/c_a,runs/c_b,runs/c_c --to=runs/c.html",
    ]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_goes_on_to_the_row_which_saves(sweep, number):
    started = sweep.start("c.py", "a", "b", codes="a=wait")
    wait_for(sweep.notes.with_suffix(".waits").exists)
    started.send_signal(number)
    _, said = started.communicate(timeout=240)
    assert started.returncode == 75
    assert sweep.ran() == [train("a"), "saved"]
    assert "stopped in row a" in said


def test_on_slurm_rows_are_an_array_and_the_comparison_comes_after(sweep):
    assert sweep.run("--slurm", "c.py", "a", "b", "--", "--config.steps=3") == 0
    array, after = (sweep.folder / "sbatch").read_text(encoding="utf-8").splitlines()
    assert "--array=0-1 launch/slurm/sweep.sbatch c.py runs a b -- --config" in array
    assert after.startswith("--dependency=afterany:7 --job-name=c-compare")
    assert "--mode=compare" in after
    assert sweep.ran() == []
