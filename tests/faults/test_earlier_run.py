"""A run and a model that an earlier version wrote are resumed and translate as before.

The archive has a run of 8 steps with a moving average and its averaged model, what the
model translated, and the end of the same run in 12 uninterrupted steps.
"""

import json
import re
import tarfile
from pathlib import Path

import jaxlib
import pytest

from t2t_jax.checkpointing.reader import CheckpointReader
from tests.integration import tiny

WRITTEN = Path(__file__).with_name("earlier_run.tar.xz")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    directory = tmp_path_factory.mktemp("earlier")
    with tarfile.open(WRITTEN) as archive:
        archive.extractall(directory, filter="data")
    return directory


def is_same_machine(written):
    """Returns whether sums come out to the bit as where the archive was made."""
    made_on = json.loads((written / "made_on.json").read_text())
    try:
        flags = re.findall("^flags.*", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        return False
    widths = sorted(set(re.findall(r"(?:avx|fma|amx)\w*", "".join(flags[:1]))))
    return made_on == {"jaxlib": jaxlib.__version__, "vectors": widths}


def test_a_run_is_resumed_as_if_it_had_never_stopped(written):
    done = tiny.succeed("--workdir=run", "--config.steps=12", cwd=written)
    assert b"from step 8" in done.stderr
    expected = json.loads((written / "final_meta.json").read_text())
    resumed = CheckpointReader(written / "run" / "checkpoints").read_verified_meta(12)
    names = ("step", "fingerprints", "files")
    assert [resumed[n] for n in names] == [expected[n] for n in names]
    assert resumed["checksums"].keys() == expected["checksums"].keys()
    assert losses(written / "run" / "metrics.jsonl") == pytest.approx(
        losses(written / "final_metrics.jsonl"),
        rel=1e-4,  # float32 over 12 steps, other vector units
    )
    if is_same_machine(written):
        assert resumed["checksums"] == expected["checksums"]


def losses(path):
    records = [json.loads(line) for line in path.read_text().splitlines()]
    return {(r["step"], r["kind"]): r["loss"] for r in records if "loss" in r}


def test_a_model_translates_as_it_did(written):
    flags = ("translate", "--workdir=model", "--input=in.txt")
    done = tiny.succeed(*flags, cwd=written)
    lines = done.stdout.decode().splitlines()
    assert len(lines) == 3
    if is_same_machine(written):
        assert lines == (written / "expected.txt").read_text().splitlines()
