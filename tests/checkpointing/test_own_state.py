"""`t2t_jax.Checkpoints`: states of a user's own.

Seen to fail: without `quarantine`, without the lock, and without the score in `meta`;
in two processes (which then wait for ever) without `failing_together` in `save`, `wait`
and `Checkpoints`.
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from t2t_jax.checkpointing.checkpoints import Checkpoints
from t2t_jax.devices.sharding.mesh import make_mesh
from t2t_jax.devices.sharding.rules import batch_sharding
from t2t_jax.errors import DataError, OutputError
from tests.checkpointing import two_processes
from tests.devices.distributed.pair import run_two


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Own:
    weights: Any
    key: jax.Array
    nothing: Any = None


class Moments(NamedTuple):
    mu: Any
    nu: Any


def state(seed, devices=1):
    weights = {"a": [jnp.arange(12.0) + seed, jnp.full(3, seed, np.int32)]}
    where = batch_sharding(make_mesh(jax.devices()[:devices]))
    weights["a"][0] = jax.device_put(weights["a"][0], where)
    pair = Moments(jnp.bfloat16(seed), (jnp.ones(2) * seed,))
    return Own({"b": pair, **weights}, jax.random.key(seed))


def test_any_state_comes_back_on_other_devices(tmp_path):
    with Checkpoints(tmp_path / "new") as checkpoints:
        assert checkpoints.restore(state(0)) is None
        checkpoints.save(7, state(5, devices=4), meta={"position": (0, 3)})
    with Checkpoints(tmp_path / "new") as checkpoints:
        step, found, meta = checkpoints.restore(state(0, devices=6))
        assert (step, meta) == (7, {"position": [0, 3]})
        assert found.key == jax.random.key(5)
        wanted = state(5)
        jax.tree.map(np.testing.assert_array_equal, found.weights, wanted.weights)
        assert len(found.weights["a"][0].sharding.device_set) == 6
        with pytest.raises(
            DataError, match=r"another model: 4 missing .*; 5 not expected \(key"
        ):
            checkpoints.restore(wanted.weights)
        shapes = jax.eval_shape(lambda: state(0))
        assert checkpoints.restore(shapes).state.key == jax.random.key(5)


def test_damage_is_set_aside_and_the_newest_and_the_best_are_kept(tmp_path):
    said = []
    with Checkpoints(tmp_path, keep=2, log=said.append) as checkpoints:
        for step, score in ((1, -9.1), (2, -2.0), (3, None), (4, -2.5), (5, -5.0)):
            checkpoints.save(step, jnp.arange(3) + step, score=score)
        checkpoints.wait()
        assert checkpoints.steps() == [2, 4, 5]
        with pytest.raises(ValueError, match="step=3 is below 5, which is there"):
            checkpoints.save(3, jnp.arange(3))
        (tmp_path / "5" / "meta" / "metadata").write_text("{}")
        assert checkpoints.restore(jnp.arange(3)).step == 4
    assert (tmp_path / "corrupt-5").is_dir()
    assert "corrupt" in said[-1]


def test_a_directory_is_open_in_one_program_and_names_are_unique(tmp_path):
    with Checkpoints(tmp_path) as checkpoints:
        with pytest.raises(OutputError, match="in use elsewhere"):
            Checkpoints(tmp_path)
        with pytest.raises(ValueError, match="a name of its own"):
            checkpoints.save(1, {"a.b": jnp.ones(1), "a": {"b": jnp.ones(1)}})
        with pytest.raises(ValueError, match="1, 2 or 4 bytes"):
            checkpoints.save(1, jnp.ones(2, jnp.complex64))
        for wrong in (np.ones(2), 0.5):
            with pytest.raises(TypeError, match=r"b\.0 must be a jax\.Array, .* meta="):
                checkpoints.save(1, {"a": jnp.ones(1), "b": [wrong]})
            with pytest.raises(TypeError, match=r"must be a jax\.Array"):
                checkpoints.restore(wrong)
    Checkpoints(tmp_path).close()


@pytest.mark.parametrize(
    ("step", "kept", "how", "rule"),
    [
        (1, jnp.ones(2), {"score": np.nan}, "neither NaN nor infinity"),
        (1, jnp.ones(2), {"meta": {"loss": np.inf}}, "neither NaN nor infinity"),
        (-1, jnp.ones(2), {}, "step=-1 must be at least 0"),
        (1, {}, {}, "the state have arrays, and it has 0"),
        (1, {"a": jnp.ones((0, 3))}, {}, r"a must have elements .*\(0, 3\)"),
    ],
)
def test_what_could_not_be_restored_is_not_saved(tmp_path, step, kept, how, rule):
    with Checkpoints(tmp_path) as checkpoints:
        with pytest.raises(ValueError, match=rule):
            checkpoints.save(step, kept, **how)
        assert checkpoints.steps() == []
    with pytest.raises(ValueError, match="keep=0 must be at least 1"):
        Checkpoints(tmp_path, keep=0)


def test_of_two_processes_none_waits_for_one_that_has_failed(tmp_path):
    run_two(two_processes.__name__, tmp_path)
