"""One run from end to end, as on the command line: the quick tier's only whole program.

Seen to fail: with two steps both times.
"""

import json

from tests.integration import tiny


def test_a_run_trains_resumes_and_translates(tmp_path):
    workdir = tmp_path / "run"
    for steps in (2, 3):
        changed = {"steps": steps, "evaluation__every_steps": 0}
        done = tiny.succeed(*tiny.arguments(workdir, **changed), fresh=True)
    lines = (workdir / "metrics.jsonl").read_text("utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    assert [one["step"] for one in records if one["kind"] == "train"][-1] == 3
    assert b"from step 2" in done.stderr

    lines = b"The old teacher reads a book.\n\nTwo men.\n"
    argv = ("--mode=translate", f"--workdir={workdir}")
    done = tiny.succeed(*argv, stdin=lines, fresh=True)
    assert done.stdout.count(b"\n") == 3
    assert done.stdout.splitlines()[1] == b""
