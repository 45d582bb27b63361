"""Several processes on this machine, started as a user would start them."""

import signal
import time

from tests.faults import running
from tests.faults.running import end, end_codes, free_address
from tests.integration import tiny

# For what is over before a step is compiled.
SECONDS = 240


def start(*argv: str) -> running.Process:
    """Starts two processes of one run."""
    return running.launch([*argv], processes=2)


def test_a_failure_in_preparing_is_everybody_s(tmp_path):
    run = start(*tiny.arguments(tmp_path / "run", data__dev="text:no.en,no.de"))
    code, said = end(run)
    assert code == 66, said
    assert end_codes(said) == {0: 66, 1: 66}
    assert "[rank 0] error: no.en: no such file." in said
    assert "[rank 1] error: process 0 has failed (exit code 66): " in said
    assert "Traceback" not in said


def test_other_text_of_another_process_is_refused(tmp_path):
    """Each process finds the files under its own home: those of the second differ."""
    argv = tiny.arguments(tmp_path / "run", data__train="text:~/a,~/a")
    argv += [f"--coordinator_address={free_address()}", "--num_processes=2"]
    homes = [tmp_path / last for last in ("cat", "dog")]
    for home in homes:
        home.mkdir()
        (home / "a").write_text("".join(f"the {n} {home.name}\n" for n in range(300)))
    ended = tiny.run_together(
        lambda k: tiny.run(*argv, f"--process_id={k}", HOME=str(homes[k]))
    )
    assert [one.returncode for one in ended] == [65, 65]
    said = ended[1].stderr.decode()
    assert "[rank 1] error: Process 1 has other content than process 0 in: tr" in said


def test_a_signal_while_text_is_prepared_stops_all_at_once(tmp_path):
    argv = tiny.arguments(tmp_path / "run", data__train="phrasebook:train:120000")
    started = start(*argv)
    said = b""
    while b"Training a vocabulary" not in said:
        line = started.stderr.readline()
        assert line, said
        said += line
    began = time.monotonic()
    started.send_signal(signal.SIGTERM)
    code, _ = end(started)
    assert code == 75
    assert time.monotonic() - began < 60


SLURM = {
    "SLURM_JOB_ID": "4099",
    "SLURM_STEP_NODELIST": "localhost",
    "SLURM_STEP_NUM_TASKS": "3",
    "SLURM_STEP_TASKS_PER_NODE": "3",
    "SLURM_NTASKS": "3",
    "SLURM_PROCID": "2",
    "SLURM_LOCALID": "2",
}


def test_a_process_whose_peers_never_come_ends_with_69(tmp_path):
    began, wait = time.monotonic(), {"T2T_JAX_INITIALIZATION_TIMEOUT": "2"}
    argv = tiny.arguments(tmp_path / "run")
    code, said = end(running.launch(argv, environment=SLURM | wait))
    assert code == 69, said
    assert "SLURM_STEP_NUM_TASKS=3 requires 3 processes. Process 2 has" in said
    assert "at localhost:61443:" in said  # 61,440 + 4,099 mod 4,096
    assert not (tmp_path / "run").exists()
    assert time.monotonic() - began < 120
