"""One experiment on any devices: the same batches, the same masks, the same curve.

Twenty steps with dropout, in float32, through the command line. Of every step the
tokens must be the same and the loss equal but for the order of floating-point sums.
All of it is in the long suite: of every day is tests/faults/test_elastic.py, in which
one run goes on with other processes and devices, test_decoding_together.py, in which
two evaluate as one, and test_resume.py, in which a run goes on with fsdp and tensor.
"""

import pytest

from tests.faults import running

pytestmark = pytest.mark.soak
CHANGED = {
    "steps": 20,
    "logging__every_steps": 1,
    "evaluation__every_steps": 100_000,  # the last step alone
    "evaluation__bleu_sentences": 5,
    "checkpoint__every_steps": 10,
    "data__tokens_per_batch": 16 * 64,
    "model__dropout": 0.3,
}


def train(workdir, **how):
    return running.finish(workdir, seconds=240, **CHANGED | how)


def records_of(workdir, kind):
    return [record for record in running.metrics(workdir) if record["kind"] == kind]


def require_same_curve(workdir, other):
    ours, theirs = records_of(workdir, "train"), records_of(other, "train")
    assert [r["step"] for r in ours] == [r["step"] for r in theirs]
    assert len(ours) == 20
    for one, two in zip(ours, theirs, strict=True):
        assert one["target_tokens"] == two["target_tokens"]
        # float32 sums in another order, carried by 20 steps of Adam
        assert two["loss"] == pytest.approx(one["loss"], rel=1e-4)
    (one,), (two,) = records_of(workdir, "eval"), records_of(other, "eval")
    assert two["loss"] == pytest.approx(one["loss"], rel=1e-4)
    assert two["sentences"] == one["sentences"] == 5


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The run on one device, with which all others are compared."""
    workdir = tmp_path_factory.mktemp("alone") / "run"
    train(workdir, devices=1)
    return workdir


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, "8 devices x 1 micro-batch x 128 = 1,024 tokens a side"),
        ({"mesh__fsdp": 4, "training__micro_batches": 2}, "8 parts x 2 micro-batches"),
        (
            {"mesh__fsdp": 2, "mesh__tensor": 2},
            "8 devices (data 2, fsdp 2, tensor 2): 4 parts x 1 micro-batch x 256",
        ),
    ],
    ids=["data", "data-fsdp-micro", "data-fsdp-tensor"],
)
def test_eight_devices_in_any_mesh_take_one_s_steps(alone, tmp_path, changed, said):
    stderr = train(tmp_path / "run", devices=8, **changed)
    assert said in stderr
    require_same_curve(alone, tmp_path / "run")


def test_two_processes_of_four_devices_take_equal_steps_and_write_once(alone, tmp_path):
    workdir = tmp_path / "run"
    train(workdir, processes=2, devices=4)
    require_same_curve(workdir, alone)
    assert not (workdir / "logs" / "rank-0.log").exists()
    assert "Saved step 20" in (workdir / "logs" / "rank-1.log").read_text("utf-8")
    assert len(list((workdir / "samples").iterdir())) == 1
