import json
import os

import pytest

from t2t_jax.errors import DataError
from t2t_jax.run import dev_outputs
from t2t_jax.run.dev_outputs import DevOutputs, steps_in

SOURCES, REFERENCES = ["a\u2028b", "", "c\r"], ["A", "B", "C"]


@pytest.fixture
def outputs(tmp_path):
    found = DevOutputs(tmp_path)
    found.write(8, ["x", "", "z"], sources=SOURCES, references=REFERENCES)
    return found


def test_what_was_written_is_read_line_by_line(outputs):
    assert steps_in(outputs.folder) == [8]
    assert outputs.read(8) == (8, SOURCES, REFERENCES, ["x", "", "z"])
    assert (outputs.folder / "8.txt").read_bytes() == b"x\n\nz\n"


def test_a_set_that_has_grown_is_written_again(outputs):
    outputs.write(16, ["x"] * 2, sources=["a", "b"], references=["A", "B"])
    assert outputs.read(16).sources == ["a", "b"]
    assert outputs.read(8) is None  # of another set


def test_a_pipe_is_refused(outputs):
    os.mkfifo(outputs.folder / "9.txt")
    with pytest.raises(DataError, match="pipe"):
        outputs.read(9)


def test_the_oldest_are_removed_but_for_the_best(outputs, tmp_path, monkeypatch):
    monkeypatch.setattr(dev_outputs, "MAX_FOLDER_BYTES", 15)  # three of 5 bytes
    records = [{"step": n, "kind": "eval", "bleu": 50 - n} for n in (8, 16, 24)]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    (tmp_path / "metrics.jsonl").write_text(lines)
    for step in (16, 24, 32, 40):
        outputs.write(step, ["x", "", "z"], sources=SOURCES, references=REFERENCES)
    assert steps_in(outputs.folder) == [8, 32, 40]
    assert outputs.read(8).hypotheses == ["x", "", "z"]
