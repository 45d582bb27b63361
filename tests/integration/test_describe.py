"""What a configuration costs, as a user asks for it."""

import json

import pytest

from tests.integration import tiny


def unrun(workdir, **changed):
    """Returns the keys of the tiny experiment, without a run."""
    return tiny.arguments(workdir, **changed)[1:]


def described(*argv, cwd, **kwargs):
    """Describes in a directory that has no runs."""
    return tiny.succeed("--mode=describe", *argv, cwd=cwd, **kwargs).stdout.decode()


def test_one_json_object_for_devices_that_are_not_there(tmp_path):
    flags = ("--format=json", "--devices=3", "--peak_tflops=0.001", "--mfu=0.5")
    argv = (*unrun(tmp_path / "none"), *flags)
    told = json.loads(described(*argv, fresh=True, cwd=tmp_path))
    assert told["batch"]["devices"] == 3
    assert told["data"]["train"]["pairs"] == 300
    hours = 12 * told["flops_per_step"] / (3 * 1e9 * 0.5) / 3600
    assert told["estimate"]["hours"] == pytest.approx(hours)
    assert not (tmp_path / "none").exists()  # nothing is left behind


def test_a_table_for_people_on_this_machine_s_devices(tmp_path):
    text = described(*unrun(tmp_path / "none"), devices=2, cwd=tmp_path)
    assert "devices              2, rows of each: 2" in text
    assert "Exactly the paper's\n─────────" in text
    assert "Not the paper's by default\n─────────" in text
    assert max(map(len, text.splitlines())) <= 80


def test_a_mesh_for_other_devices_is_described_all_the_same(tmp_path):
    argv = unrun(tmp_path / "none", mesh__data=2, mesh__fsdp=2, mesh__tensor=2)
    done = tiny.succeed("--mode=describe", *argv, "--format=json", cwd=tmp_path)
    batch = json.loads(done.stdout)["batch"]
    assert batch["devices"] == 8
    assert batch["mesh"] == {"data": 2, "fsdp": 2, "tensor": 2}
    said = done.stderr.decode().splitlines()
    assert "described for 8 simulated ones" in said[0]
    assert len(said) == 2
