"""One run that goes on with other processes and devices, and is the same run.

That gradients are the same on 1, 2 and 8 devices is said in
tests/training/test_accumulation.py, and that whole runs are in
tests/integration/test_meshes.py.

Seen to fail: with the shares of the processes in another order; where processes do not
meet before the first step, those that compile while another finds its program cached.
"""

import pytest

from tests.faults import running

# 8 rows a batch, which 8 devices share.
CHANGED = {
    "data__tokens_per_batch": 512,
    "model__dropout": 0.3,
    "logging__every_steps": 1,
    "checkpoint__every_steps": 0,
    "evaluation__every_steps": 0,
}
PLACES = [
    {"processes": 2, "devices": 4, "fresh": True},
    {"processes": 1, "devices": 8},
    {"processes": 1, "devices": 1},
]
FOUR = {"processes": 4, "devices": 2}


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """Twenty steps on one device."""
    workdir = tmp_path_factory.mktemp("alone") / "run"
    running.finish(workdir, steps=20, **CHANGED)
    return workdir


def trained(workdir):
    return [one for one in running.metrics(workdir) if one["kind"] == "train"]


@pytest.mark.parametrize(
    "places",
    [PLACES, pytest.param([PLACES[1], FOUR], marks=pytest.mark.soak)],
    ids=["to one", "to four"],
)
def test_a_run_goes_on_with_other_processes_and_devices(alone, tmp_path, places):
    workdir = tmp_path / "run"
    how = {"steps": 100_000, "code": 75, "seconds": 240, **CHANGED}
    before = 0
    for k, place in enumerate(places):
        wanted = 5 * (k + 1)
        said = running.finish(workdir, fault=f"term@{wanted}", **place, **how)
        assert (f"Resuming from step {before} " in said) == (before > 0), said
        before = running.saved(workdir)[-1]
        # Several processes agree on a step that none of them has made yet.
        assert wanted <= before < wanted + 5, said
    # Of several processes one writes, and the others have a log.
    logs = {path.name for path in (workdir / "logs").iterdir()}
    most = max(place["processes"] for place in places)
    assert logs == {f"rank-{rank}.log" for rank in range(1, most)}
    assert "Saved step" in (workdir / "logs" / "rank-1.log").read_text("utf-8")
    ours, theirs = trained(workdir), trained(alone)
    assert [one["step"] for one in ours] == [*range(1, before + 1)]
    for one, two in zip(ours, theirs[:before], strict=True):
        assert one["target_tokens"] == two["target_tokens"]
        assert (one["epoch"], one["batch"]) == (two["epoch"], two["batch"])
        # float32 sums in another order, carried by twenty steps of Adam
        assert one["loss"] == pytest.approx(two["loss"], rel=1e-4)
