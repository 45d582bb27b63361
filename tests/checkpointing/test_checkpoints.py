import gc
import shutil

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import PartitionSpec as P

from t2t_jax.checkpointing.checkpoints import Checkpoints
from t2t_jax.errors import DataError
from t2t_jax.parallelism.config import MeshConfig
from t2t_jax.parallelism.mesh import make_mesh
from t2t_jax.parallelism.sharding import REPLICATED, shardings_for
from t2t_jax.training.config import OptimizerConfig
from t2t_jax.training.optimizer import make_optimizer

# Reading a damaged checkpoint leaves coroutines of Orbax that nobody awaits.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)

RULES = (("kernel", ("d_model", "")), (".*", ()))


def params_of(seed):
    random = np.random.default_rng(seed)
    draw = lambda *shape: random.normal(size=shape).astype(np.float32)  # noqa: E731
    return {"encoder": {"layer_0": {"kernel": draw(14, 3)}}, "bias": draw(5)}


def trained(seed):
    """Returns parameters and an Optax state with three updates behind it."""
    params = jax.tree.map(jnp.asarray, params_of(seed))
    optimizer = make_optimizer(OptimizerConfig(), d_model=7)
    state = optimizer.init(params)
    for n in range(3):
        gradient = jax.tree.map(lambda x, n=n: x + n, params)
        updates, state = optimizer.update(gradient, state)
        params = optax.apply_updates(params, updates)
    return params, state


def like(tree, mesh, *, rules=REPLICATED):
    """Describes `tree` as it shall lie on `mesh`."""
    return jax.tree.map(
        lambda x, place: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place),
        tree,
        shardings_for(tree, mesh, rules=rules),
    )


def save(checkpoints, step, *kinds, bleu=None):
    meta = {"kinds": list(kinds)} | ({} if bleu is None else {"bleu": bleu})
    checkpoints.save(step, params=params_of(step), optimizer=None, meta=meta)
    checkpoints.wait()


@pytest.fixture
def checkpoints(tmp_path):
    opened = Checkpoints(tmp_path / "checkpoints", keep=2)
    yield opened
    opened.close()


@pytest.fixture(scope="module", autouse=True)
def _nothing_left_behind():
    yield
    gc.collect()


@pytest.fixture
def one():
    return make_mesh(jax.devices()[:1])


def test_a_run_comes_back_bitwise_on_other_devices(checkpoints, one):
    params, state = trained(0)
    seven = make_mesh(jax.devices()[:7], config=MeshConfig(fsdp=7))
    scattered = jax.device_put(
        (params, state), shardings_for((params, state), seven, rules=RULES)
    )
    checkpoints.save(
        3, params=scattered[0], optimizer=scattered[1], meta={"kinds": ["final"]}
    )
    checkpoints.wait()
    restored = checkpoints.training(
        3, params=like(params, one), optimizer=like(state, one)
    )
    assert jax.tree.structure(restored) == jax.tree.structure((params, state))
    jax.tree.map(np.testing.assert_array_equal, restored, (params, state))
    for leaf in jax.tree.leaves(restored):
        assert leaf.sharding.device_set == {jax.devices()[0]}
    scattered_again, _ = checkpoints.training(
        3, params=like(params, seven, rules=RULES), optimizer=like(state, seven)
    )
    assert scattered_again["encoder"]["layer_0"]["kernel"].sharding.spec == P("fsdp")
    jax.tree.map(np.testing.assert_array_equal, scattered_again, params)


def test_what_is_saved_is_what_it_was_though_the_buffers_are_donated(checkpoints, one):
    params = jax.tree.map(jnp.asarray, params_of(0))
    checkpoints.save(1, params=params, optimizer=None, meta={"kinds": []})
    jax.jit(lambda tree: jax.tree.map(lambda x: x + 1, tree), donate_argnums=0)(params)
    checkpoints.wait()
    restored = checkpoints.params(1, like=like(params_of(0), one))
    jax.tree.map(np.testing.assert_array_equal, restored, params_of(0))


def test_a_checkpoint_may_hold_parameters_only(checkpoints, one):
    save(checkpoints, 5, "average")
    restored = checkpoints.params(5, like=like(params_of(5), one))
    jax.tree.map(np.testing.assert_array_equal, restored, params_of(5))
    names = {path.name for path in (checkpoints.directory / "5").iterdir()}
    assert "optimizer" not in names
    assert {"params", "meta"} <= names


def test_meta_comes_back_as_it_was(checkpoints):
    meta = {"kinds": ["best"], "bleu": 31.5, "progress": {"position": [1, 2], "é": "ß"}}
    checkpoints.save(2, params=params_of(2), optimizer=None, meta=meta)
    checkpoints.wait()
    assert checkpoints.meta(2) == meta


def test_an_existing_step_is_left_as_it_is(checkpoints, one):
    save(checkpoints, 5, "periodic")
    checkpoints.save(5, params=params_of(6), optimizer=None, meta={"kinds": ["best"]})
    checkpoints.wait()
    restored = checkpoints.params(5, like=like(params_of(5), one))
    jax.tree.map(np.testing.assert_array_equal, restored, params_of(5))
    assert checkpoints.meta(5)["kinds"] == ["periodic"]


def test_the_newest_periodic_ones_the_best_and_the_newest_survive(checkpoints):
    # keep=2. Each row: what is saved, and the steps that are left then.
    timeline = [
        (1, ("periodic",), None, [1]),
        (2, ("periodic", "best"), 20.0, [1, 2]),
        (3, ("periodic",), None, [2, 3]),
        (4, ("best",), 30.0, [2, 3, 4]),
        (5, ("periodic",), 25.0, [3, 4, 5]),
        (6, ("stopped",), None, [3, 4, 5, 6]),
        (7, ("periodic",), None, [4, 5, 7]),
        (8, ("best",), 40.0, [5, 7, 8]),
        (9, ("final",), None, [5, 7, 8, 9]),
    ]
    for step, kinds, bleu, left in timeline:
        save(checkpoints, step, *kinds, bleu=bleu)
        assert checkpoints.steps() == left, f"after step {step}"


def test_retention_is_remembered_by_another_process(tmp_path):
    for step, kinds, bleu in [(1, "best", 9.0), (2, "periodic", None)]:
        opened = Checkpoints(tmp_path, keep=1)
        save(opened, step, kinds, bleu=bleu)
        opened.close()
    opened = Checkpoints(tmp_path, keep=1)
    save(opened, 3, "periodic")
    assert opened.steps() == [1, 3]
    opened.close()


@pytest.fixture
def chosen(checkpoints):
    """Opens, for reading, checkpoints of which an early one is the best."""
    save(checkpoints, 2, "periodic", bleu=30.0)
    save(checkpoints, 3, "periodic", bleu=12.0)
    save(checkpoints, 7, "final")
    return Checkpoints(checkpoints.directory)


@pytest.mark.parametrize(("which", "step"), [("best", 2), ("last", 7), ("3", 3)])
def test_a_checkpoint_is_chosen_by_name_or_number(chosen, which, step):
    assert chosen.choose(which) == step


def test_without_a_score_the_best_is_the_last(checkpoints):
    save(checkpoints, 2, "periodic")
    save(checkpoints, 3, "periodic")
    assert checkpoints.choose("best") == 3


@pytest.mark.parametrize("which", ["5", "-1", "bset", "²", ""])
def test_an_unknown_checkpoint_is_refused_with_the_steps_there_are(chosen, which):
    with pytest.raises(DataError, match=r"best, last, or .*: 2, 3, 7\."):
        chosen.choose(which)


def test_a_directory_without_checkpoints_says_so_and_is_not_made(tmp_path):
    empty = Checkpoints(tmp_path / "checkpoints")
    assert empty.steps() == []
    with pytest.raises(DataError, match="holds no checkpoint"):
        empty.choose("best")
    assert not (tmp_path / "checkpoints").exists()


def test_parameters_of_another_shape_are_refused(checkpoints, one):
    save(checkpoints, 5, "final")
    other = params_of(5) | {"bias": np.zeros(6, np.float32)}
    with pytest.raises(DataError, match=r"5 cannot be read.*\n.*another model"):
        checkpoints.params(5, like=like(other, one))


def test_parameters_of_other_names_are_refused(checkpoints, one):
    save(checkpoints, 5, "final")
    other = params_of(5)
    other["decoder"] = other.pop("encoder")
    with pytest.raises(DataError, match="5 cannot be read"):
        checkpoints.params(5, like=like(other, one))


@pytest.mark.parametrize("item", ["params", "meta"])
def test_a_checkpoint_with_a_missing_part_is_named(checkpoints, one, item):
    save(checkpoints, 5, "final")
    shutil.rmtree(checkpoints.directory / "5" / item)
    reader = Checkpoints(checkpoints.directory)
    with pytest.raises(DataError, match="checkpoints/5 cannot be read") as info:
        reader.meta(5) if item == "meta" else reader.params(
            5, like=like(params_of(5), one)
        )
    assert info.value.exit_code == 65


def test_a_truncated_checkpoint_is_named(checkpoints, one):
    save(checkpoints, 5, "final")
    for path in (checkpoints.directory / "5" / "params").rglob("*"):
        if path.is_file():
            path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(DataError, match="checkpoints/5 cannot be read"):
        checkpoints.params(5, like=like(params_of(5), one))


def test_what_a_killed_save_left_is_not_a_checkpoint_and_is_swept(checkpoints):
    save(checkpoints, 5, "final")
    left = checkpoints.directory / "7.orbax-checkpoint-tmp-1700000000"
    shutil.copytree(checkpoints.directory / "5", left)
    assert Checkpoints(checkpoints.directory).choose("last") == 5
    assert left.exists()  # a reader sweeps nothing
    resumed = Checkpoints(checkpoints.directory, keep=2)
    save(resumed, 7, "final")
    resumed.close()
    assert not left.exists()
