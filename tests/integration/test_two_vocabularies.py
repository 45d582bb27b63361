"""A source with subwords of its own, through the whole program."""

import json

import pytest

import t2t_jax
from tests.integration import tiny

KEYS = {
    "vocabulary__size": 140,
    "vocabulary__source_size": 110,
    "model__tying": "decoder",
}


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
    path = tmp_path_factory.mktemp("two") / "run"
    done = tiny.run(*tiny.arguments(path, **KEYS))
    assert done.returncode == 0, done.stderr.decode()
    return path


def test_a_run_keeps_and_uses_both(workdir):
    told = json.loads((workdir / "data.json").read_text(encoding="utf-8"))
    assert told["source_vocabulary"]["size"] == 110
    assert told["target_vocabulary"]["size"] == 140
    model = t2t_jax.load(workdir)
    assert [v.size for v in model.vocabularies] == [110, 140]
    assert model.params["source_embedding"]["table"].shape == (110, 16)
    assert model.params["target_embedding"]["table"].shape == (140, 16)
    assert len(model.translate(["The old teacher reads a book.", ""])) == 2


def test_the_same_command_resumes_with_them(workdir):
    done = tiny.run(*tiny.arguments(workdir, **KEYS, steps=14))
    assert done.returncode == 0, done.stderr.decode()
    assert b"Resuming from step 12" in done.stderr


def test_an_average_takes_both_along(workdir, tmp_path):
    to = tmp_path / "mean"
    done = tiny.run("--mode=average", f"--workdir={workdir}", f"--to={to}", "--last=2")
    assert done.returncode == 0, done.stderr.decode()
    assert [v.size for v in t2t_jax.load(to).vocabularies] == [110, 140]


def test_tying_all_three_is_refused_before_anything_is_read(tmp_path):
    done = tiny.run(*tiny.arguments(tmp_path / "run", **KEYS | {"model__tying": "all"}))
    assert done.returncode == 78
    assert b"model.tying='all' needs one vocabulary" in done.stderr
    assert not (tmp_path / "run").exists()
