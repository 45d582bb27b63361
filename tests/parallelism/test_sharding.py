import jax
import jax.numpy as jnp
import optax
import pytest
from jax.sharding import PartitionSpec as P

from t2t_jax.parallelism.mesh import make_mesh
from t2t_jax.parallelism.sharding import (
    batch_sharding,
    path_of,
    replicated,
    shardings_for,
)
from t2t_jax.training.state import TrainState

PARAMS = {
    "embedding": {"weights": jnp.zeros((14, 3))},
    "encoder": {"layer_0": {"query": {"kernel": jnp.zeros((3, 5))}}},
}
RULES = (("embedding/weights", P("data")), (r"kernel", P(None, None)), (".*", P()))


@pytest.fixture
def mesh():
    return make_mesh(jax.devices()[:7])


def specs_of(tree, mesh, **rules):
    """Draws the table that results: path -> PartitionSpec."""
    leaves = jax.tree_util.tree_leaves_with_path(shardings_for(tree, mesh, **rules))
    return {path_of(keys): sharding.spec for keys, sharding in leaves}


def test_without_rules_everything_is_on_every_device(mesh):
    assert set(specs_of(PARAMS, mesh).values()) == {P()}


def test_paths_are_spelled_as_the_paper_reads():
    paths = [path_of(keys) for keys, _ in jax.tree_util.tree_leaves_with_path(PARAMS)]
    assert paths == ["embedding/weights", "encoder/layer_0/query/kernel"]


def test_moments_lie_beside_their_parameters_and_counters_everywhere(mesh):
    optimizer = optax.adam(lambda count: 0.1)
    state = TrainState(jnp.zeros((), jnp.int32), PARAMS, optimizer.init(PARAMS))
    assert specs_of(state, mesh, rules=RULES) == {
        "step": P(),
        "params/embedding/weights": P("data"),
        "params/encoder/layer_0/query/kernel": P(None, None),
        "optimizer/0/count": P(),
        "optimizer/0/mu/embedding/weights": P("data"),
        "optimizer/0/mu/encoder/layer_0/query/kernel": P(None, None),
        "optimizer/0/nu/embedding/weights": P("data"),
        "optimizer/0/nu/encoder/layer_0/query/kernel": P(None, None),
        "optimizer/1/count": P(),
    }


def test_shapes_alone_are_enough(mesh):
    shapes = jax.eval_shape(lambda: PARAMS)
    assert specs_of(shapes, mesh, rules=RULES) == specs_of(PARAMS, mesh, rules=RULES)


def test_a_scalar_is_replicated_whatever_a_rule_says(mesh):
    tree = {"count": jnp.zeros(())}
    assert specs_of(tree, mesh, rules=((".*", P("data")),)) == {"count": P()}


def test_the_first_rule_that_matches_the_end_of_a_path_decides(mesh):
    tree = {"a": {"b": jnp.zeros(7)}, "b": {"a": jnp.zeros(7)}}
    rules = (("a", P("data")), ("b", P(None)), (".*", P()))
    assert specs_of(tree, mesh, rules=rules) == {"a/b": P(None), "b/a": P("data")}


def test_an_alternation_in_a_rule_is_matched_at_the_end_as_a_whole(mesh):
    tree = {"query": {"bias": jnp.zeros(7)}, "key": {"query": jnp.zeros(7)}}
    rules = (("query|key", P("data")), (".*", P()))
    assert specs_of(tree, mesh, rules=rules) == {
        "query/bias": P(),
        "key/query": P("data"),
    }


def test_a_leaf_without_a_rule_is_refused_by_its_path(mesh):
    with pytest.raises(ValueError, match=r"none matches encoder/layer_0/query/kernel"):
        shardings_for(PARAMS, mesh, rules=RULES[:1])


def test_a_batch_is_split_by_rows_and_a_replica_is_whole(mesh):
    rows = jax.device_put(jnp.arange(14.0)[:, None], batch_sharding(mesh))
    assert [s.data.ravel().tolist() for s in rows.addressable_shards] == [
        [2 * i, 2 * i + 1] for i in range(7)
    ]
    whole = jax.device_put(jnp.arange(5), replicated(mesh))
    assert [s.data.tolist() for s in whole.addressable_shards] == [[0, 1, 2, 3, 4]] * 7
