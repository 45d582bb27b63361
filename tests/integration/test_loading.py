"""Models loaded from Python, as README.md shows."""

import pytest

import t2t_jax
from t2t_jax.errors import DataError, InputMissingError
from t2t_jax.loading import choose
from tests.integration import tiny


@pytest.fixture(scope="module")
def workdir(tmp_path_factory):
    path = tmp_path_factory.mktemp("loading") / "run"
    done = tiny.run(*tiny.arguments(path, steps=6))
    assert done.returncode == 0, done.stderr.decode()
    return path


def test_a_loaded_model_translates_line_by_line(workdir):
    model = t2t_jax.load(workdir)
    lines = model.translate(["The old teacher reads a book.", "", "Two men."])
    assert len(lines) == 3
    assert lines[1] == ""
    assert t2t_jax.translate(workdir, ["", "a"])[0] == ""


def test_its_module_and_params_are_ordinary_linen(workdir):
    import jax.numpy as jnp

    model = t2t_jax.load(workdir, checkpoint=5)
    assert model.step == 5
    tokens = jnp.ones((2, 3), jnp.int32)
    logits = model.module.apply({"params": model.params}, tokens, tokens)
    assert logits.shape == (2, 3, model.vocabularies.target.size)


@pytest.mark.parametrize("checkpoint", ["best", "last", "5", 5])
def test_what_is_chosen_is_what_is_loaded(workdir, checkpoint):
    step = choose(workdir, checkpoint=checkpoint)
    assert step == t2t_jax.load(workdir, checkpoint=checkpoint).step
    assert step == (5 if str(checkpoint) == "5" else 6)


@pytest.mark.parametrize("find", [t2t_jax.load, choose])
@pytest.mark.parametrize("checkpoint", [7, "7", "newest"])
def test_an_unknown_checkpoint_names_those_that_are_there(workdir, checkpoint, find):
    with pytest.raises(DataError, match=r"best, last, or one of .*: 5, 6"):
        find(workdir, checkpoint=checkpoint)


def test_what_is_no_model_is_named(tmp_path):
    with pytest.raises(InputMissingError, match="no run and no model"):
        t2t_jax.load(tmp_path)


def test_a_second_trainer_is_refused(workdir):
    import fcntl

    with (workdir / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = tiny.run(f"--workdir={workdir}", "--config.steps=9")
    assert done.returncode == 73
    assert b"another process" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_run_that_goes_on_after_its_end_has_one_end(workdir):
    done = tiny.run(f"--workdir={workdir}", "--config.steps=8")
    assert done.returncode == 0, done.stderr.decode()
    lines = (workdir / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    ends = [line for line in lines if '"final"' in line]
    assert len(ends) == 1
    assert '"step": 8' in ends[0]
