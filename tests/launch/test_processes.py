import json
import shutil
import signal
import subprocess
import sys

import pytest

from tests.launch.programs import LAUNCH, environment, fake_python, launch
from tests.waiting import is_alive, wait_for

SCRIPT = "local/processes.sh"

# Ends what nohup, or & in a shell without job control, began: bash cannot trap a signal
# that it was started without. Not preexec_fn, for JAX warns of every fork.
_HEAR_SIGNALS = [
    sys.executable,
    "-ISc",
    "import os, signal, sys\n"
    "for each in signal.SIGHUP, signal.SIGINT:\n"
    "    signal.signal(each, signal.SIG_DFL)\n"
    "os.execvp(sys.argv[1], sys.argv[1:])",
]


class Harness:
    """N fake processes, and what each of them saw."""

    def __init__(self, folder):
        self.folder = folder
        self.env = environment(PYTHON=fake_python(folder))

    def arguments(self, do, *options):
        number = len(do.split(","))
        program = [f"--do={do}", f"--notes={self.folder}"]
        return [str(number), *options, "--", *program]

    def run(self, do, *options, **more):
        return launch(SCRIPT, *self.arguments(do, *options), environ=self.env, **more)

    def start(self, do, *options):
        """Starts the script and returns it when all its processes run."""
        script = subprocess.Popen(
            [*_HEAR_SIGNALS, "bash", LAUNCH / SCRIPT, *self.arguments(do, *options)],
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        count = len(do.split(","))
        wait_for(lambda: all(self.note(f"seen-{i}").exists() for i in range(count)))
        return script

    def note(self, name):
        return self.folder / name

    def seen(self, index):
        return json.loads(self.note(f"seen-{index}").read_text(encoding="utf-8"))

    def wait_for_the_end(self, count):
        """Waits until no process is left: a kill takes its time."""
        pids = [pid for i in range(count) for pid in self.seen(i)["pids"]]
        wait_for(lambda: not any(map(is_alive, pids)))


@pytest.fixture
def harness(tmp_path):
    return Harness(tmp_path)


def test_each_process_gets_the_arguments_the_address_and_its_number(harness):
    spaces = "--config.data.train=text:a b,c 'd' $HOME"
    launch(SCRIPT, *harness.arguments("0,0,0"), spaces, "", environ=harness.env)
    lines = [harness.seen(i)["argv"] for i in range(3)]
    (address,) = {line[-3] for line in lines}
    assert address.startswith("--coordinator_address=127.0.0.1:")
    for i, line in enumerate(lines):
        assert line[:2] == ["-m", "t2t_jax.main"]
        assert line[4:6] == [spaces, ""]
        assert line[-2:] == ["--num_processes=3", f"--process_id={i}"]


def test_stdin_and_stdout_are_those_of_process_0_and_stderr_of_all(harness):
    done = harness.run("echo,echo,0", stdin="good\nmorning\n")
    assert done.stdout == "process 0 speaks\nGOOD\nMORNING\n"
    assert "process 1 complains" in done.stderr
    assert "process 2 complains" in done.stderr


CAUSES = {
    "0,75": 75,
    "abort,65": 65,
    "75,66": 66,
    "abort,69,78": 78,
    # Process 0 answers the SIGTERM that it gets for the sake of process 1 with 75.
    "sleep,abort": 134,
    "worker+0,0": 0,
    "sleep,65,deaf+sleep+worker": 65,
}


@pytest.mark.parametrize(("do", "code"), CAUSES.items())
def test_the_code_is_that_of_the_cause_and_nothing_outlives_it(harness, do, code):
    assert "Killed" not in harness.run(do, "--failure-grace=1", code=code).stderr
    harness.wait_for_the_end(do.count(",") + 1)


@pytest.mark.parametrize("sent", ["SIGTERM", "SIGINT", "SIGUSR1", "SIGHUP"])
def test_a_signal_reaches_every_process_and_ends_in_75(harness, sent):
    script = harness.start("sleep,sleep,sleep")
    script.send_signal(signal.Signals[sent])
    assert script.wait(timeout=240) == 75
    received = "SIGTERM" if sent == "SIGHUP" else sent  # a lost terminal
    assert {harness.note(f"signal-{i}").read_text() for i in range(3)} == {received}


def test_a_stop_is_not_hurried_by_the_first_process_that_ends(harness):
    script = harness.start("slow+sleep,sleep", "--failure-grace=1")
    script.send_signal(signal.SIGTERM)
    assert script.wait(timeout=240) == 75
    assert harness.note("saved-0").exists()


def test_what_does_not_stop_is_killed(harness):
    script = harness.start("deaf+sleep+worker,deaf+sleep", "--stop-grace=1")
    script.send_signal(signal.SIGTERM)
    assert script.wait(timeout=240) == 137
    harness.wait_for_the_end(2)


@pytest.mark.skipif(not shutil.which("setpriv"), reason="setpriv is of Linux")
def test_no_process_outlives_a_script_that_is_killed(harness):
    script = harness.start("deaf+sleep,deaf+sleep")
    script.kill()
    script.wait(timeout=240)
    harness.wait_for_the_end(2)


def test_devices_are_simulated_beside_the_flags_that_are_set(harness):
    harness.env["XLA_FLAGS"] = "--xla_dump_to=/tmp/a"
    harness.run("0,0", "--devices=4")
    count = "--xla_force_host_platform_device_count=4"
    for seen in (harness.seen(i)["env"] for i in range(2)):
        assert seen["JAX_PLATFORMS"] == "cpu"
        assert seen["XLA_FLAGS"] == f"--xla_dump_to=/tmp/a {count}"


@pytest.mark.parametrize("option", ["--gpus=4,5,6,7", "--gpus"])
def test_gpus_are_split_evenly(harness, option):
    if option == "--gpus":
        harness.env["CUDA_VISIBLE_DEVICES"] = "4,5,6,7"
    harness.run("0,0", option)
    seen = [harness.seen(i)["env"]["CUDA_VISIBLE_DEVICES"] for i in range(2)]
    assert seen == ["4,5", "6,7"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "N must be a whole number from 1, got ''"),
        (["0"], "got '0'"),
        (["2", "--device=4"], "unknown option '--device=4'"),
        (["2", "--config=x.py"], "what is for the program comes after --"),
        (["2", "--devices=4", "--gpus"], "give one of them"),
        (["3", "--gpus=0,1,2,3"], "4 GPUs cannot be split evenly over N=3"),
    ],
)
def test_a_wrong_option_is_refused_and_nothing_runs(harness, arguments, message):
    done = launch(SCRIPT, *arguments, code=64, environ=harness.env)
    assert message in done.stderr
    assert "usage:" in done.stderr
    assert not list(harness.folder.glob("seen-*"))
