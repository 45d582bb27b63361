"""`--config.profile.steps` of the real command line.

Seen to fail: without `profile` among what may change under a run; without the programs
in `Run.train`, and without `watching` there; without the folder of each process in
`RunCallbacks`; without the `except` of `Profiler`.
"""

import pytest

from tests.faults.running import finish, metrics


def traces(workdir):
    return sorted(
        str(file.parent.relative_to(workdir).parents[2])
        for file in workdir.rglob("*.xplane.pb")
    )


def test_a_run_writes_a_trace_and_has_the_figures_of_one_without(tiny_run, tmp_path):
    traced = tmp_path / "traced"
    said = finish(traced, profile__steps="3:5")
    assert "Traced steps 3 to 5" in said
    assert "matrix products" in said
    assert traces(traced) == ["profile/3-5"]
    assert traces(tiny_run) == []
    assert metrics(traced) == metrics(tiny_run)
    # A run that goes on traces nothing of what is past, and other steps if asked to.
    said = finish(traced, steps=13)
    assert "nothing is traced, since this run is at step 12" in said
    assert "Traced steps 14 to 15" in finish(traced, steps=15, profile__steps="14:19")
    assert traces(traced) == ["profile/14-19", "profile/3-5"]


def test_a_signal_in_the_middle_leaves_a_checkpoint_and_a_trace(tmp_path):
    workdir = tmp_path / "run"
    how = {"profile__steps": "3:9", "evaluation__every_steps": 0}
    said = finish(workdir, fault="term@4", code=75, **how)
    assert said.index("Saved step 4") < said.index("Traced steps 3 to 4")
    said = finish(workdir, **how)
    assert "Traced steps 5 to 9" in said
    assert traces(workdir) == ["profile/3-9", "profile/3-9"]


def test_a_trace_that_cannot_be_written_costs_nothing_else(tmp_path):
    workdir = tmp_path / "run"
    workdir.mkdir()
    (workdir / "profile").write_text("in the way")
    said = finish(workdir, profile__steps="3:5", evaluation__every_steps=0)
    assert "WARNING: Profiling failed (profile.steps=3:5): " in said
    assert metrics(workdir)[-1]["kind"] == "final"


@pytest.mark.soak
def test_each_of_several_processes_writes_its_own(tmp_path):
    workdir = tmp_path / "run"
    finish(workdir, processes=2, seconds=240, profile__steps="3:5")
    assert traces(workdir) == ["profile/3-5/rank-0", "profile/3-5/rank-1"]
    assert "Traced steps 3 to 5" in (workdir / "logs" / "rank-1.log").read_text()
