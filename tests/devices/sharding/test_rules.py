import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import PartitionSpec as P

from t2t_jax.config import parse
from t2t_jax.devices.sharding.config import MeshConfig
from t2t_jax.devices.sharding.mesh import make_mesh
from t2t_jax.devices.sharding.rules import (
    PARAMETERS,
    make_global_batch,
    path_of,
    shardings_for,
)
from t2t_jax.errors import ConfigError
from t2t_jax.model.architectures import make_module
from t2t_jax.training.config import OptimizerConfig
from t2t_jax.training.optimizer import make_optimizer
from t2t_jax.training.state import TrainState
from t2t_jax.types import Batch

PARAMS = {
    "embedding": {"table": jnp.zeros((12, 3))},
    "encoder": {"layer_0": {"query": {"kernel": jnp.zeros((4, 6, 5))}}},
}
RULES = (
    ("embedding/table", ("vocabulary", "")),
    (r"kernel", ("d_model", "heads")),
    (".*", ()),
)
BIASES = {"model": {"attention_biases": True, "output_bias": True}}
LEARNED = {
    "model": {"positions": "learned", "tying": "none", "norm_position": "pre"},
    "decoding": {"max_source_length": 256},
}


def mesh_of(**sizes):
    config = MeshConfig(**sizes)
    devices = max(1, config.data) * config.fsdp * config.tensor
    return make_mesh(jax.devices()[:devices], **config.axes)


def specs_of(tree, mesh, **options):
    """Draws the table that results: path -> PartitionSpec."""
    leaves = jax.tree_util.tree_leaves_with_path(shardings_for(tree, mesh, **options))
    return {path_of(keys): sharding.spec for keys, sharding in leaves}


def params_of(values):
    """The shapes of the parameters of a configuration."""
    module = make_module(parse(values).network)
    token = jnp.ones((1, 1), jnp.int32)
    return jax.eval_shape(module.init, jax.random.key(0), token, token)["params"]


def test_on_a_data_mesh_all_parameters_are_replicated():
    assert set(specs_of(PARAMS, mesh_of(data=7), rules=RULES).values()) == {P()}
    whole = specs_of(PARAMS, mesh_of(fsdp=2), rules=((".*", ()),))
    assert set(whole.values()) == {P()}


def test_an_axis_is_split_over_the_mesh_axes_that_are_its_own():
    assert specs_of(PARAMS, mesh_of(fsdp=2, tensor=3), rules=RULES) == {
        "embedding/table": P(("fsdp", "tensor")),
        "encoder/layer_0/query/kernel": P("fsdp", "tensor"),
    }


def test_moments_lie_beside_their_parameters_and_counters_everywhere():
    optimizer = optax.adam(lambda count: 0.1)
    state = TrainState(jnp.zeros((), jnp.int32), PARAMS, optimizer.init(PARAMS))
    found = specs_of(state, mesh_of(fsdp=2), rules=RULES)
    paths = ("embedding/table", "encoder/layer_0/query/kernel")
    parts = ("params", "optimizer/0/mu", "optimizer/0/nu")
    beside = {f"{part}/{path}": P("fsdp") for part in parts for path in paths}
    counters = ("step", "optimizer/0/count", "optimizer/1/count")
    assert found == beside | dict.fromkeys(counters, P())


def test_over_data_splits_the_first_axis_that_divides_further():
    tree = {"a": jnp.zeros((4, 6)), "b": jnp.zeros((5, 6)), "c": jnp.zeros(5)}
    rules = (("a|b", ("", "heads")), ("c", ()))
    mesh = mesh_of(data=2, tensor=3)
    assert specs_of(tree, mesh, rules=rules, over_data=True) == {
        "a": P("data", "tensor"),
        "b": P(None, ("tensor", "data")),
        "c": P(),
    }


def test_an_alternation_in_a_rule_is_matched_at_the_end():
    """The first rule that matches decides."""
    tree = {"query": {"bias": jnp.zeros(6)}, "key": {"query": jnp.zeros(6)}}
    rules = (("query|key", ("heads",)), ("query", ("",)), (".*", ()))
    assert specs_of(tree, mesh_of(tensor=3), rules=rules) == {
        "query/bias": P(),
        "key/query": P("tensor"),
    }


def test_a_leaf_without_a_rule_is_refused_by_its_path():
    with pytest.raises(ValueError, match=r"none matches encoder/layer_0/query/kernel"):
        shardings_for(PARAMS, mesh_of(fsdp=2), rules=RULES[:1])


def test_an_axis_that_does_not_divide_is_refused_by_both_keys():
    message = r"query/kernel has an axis of 6, from config.model.num_heads, .*tensor=4"
    with pytest.raises(ConfigError, match=message):
        shardings_for(PARAMS, mesh_of(tensor=4), rules=RULES)


@pytest.mark.parametrize(
    ("shape", "sizes", "wanted"),
    [
        ((12, 10), {"fsdp": 2, "tensor": 2}, P(("fsdp", "tensor"))),
        ((6, 10), {"fsdp": 2, "tensor": 2}, P("fsdp")),
        ((9, 10), {"fsdp": 2, "tensor": 3}, P("tensor", "fsdp")),
        ((9, 10), {"fsdp": 5}, P(None, "fsdp")),
        ((9, 11), {"fsdp": 5}, P()),
        ((12, 10), {"tensor": 5}, P()),
    ],
)
def test_a_table_is_split_by_as_many_as_divide_it(shape, sizes, wanted):
    tree = {"embedding": {"table": jnp.zeros(shape)}}
    assert specs_of(tree, mesh_of(**sizes)) == {"embedding/table": wanted}


@pytest.mark.parametrize(
    "values",
    [
        {},
        LEARNED,
        BIASES,
        {"vocabulary": {"source_size": 4_000}, "model": {"tying": "decoder"}},
        {"architecture": "rnn"},
        {"architecture": "rnn", "rnn": {"tying": "none"}},
    ],
)
def test_every_parameter_of_every_model_has_a_rule(values):
    params, mesh = params_of(values), mesh_of(data=2, fsdp=2, tensor=2)
    leaves = map(jax.tree.leaves, (params, shardings_for(params, mesh)))
    places = zip(*leaves, strict=True)
    sizes = [(x.size, np.prod(place.shard_shape(x.shape))) for x, place in places]
    whole, here = np.sum(sizes, axis=0)
    # Of the Transformer nearly all is split four ways, of the RNN twice at least.
    assert here < 1.01 * whole / (2 if values.get("architecture") == "rnn" else 4)


def test_no_rule_is_without_a_parameter_or_a_part_of_an_optimizer():
    paths = [
        path_of(keys)
        for values in (LEARNED, BIASES, {"architecture": "rnn"})
        for keys, _ in jax.tree_util.tree_leaves_with_path(params_of(values))
    ]
    for name in ("muon", "adafactor"):
        optimizer = make_optimizer(OptimizerConfig(name=name), d_model=6)
        state = jax.eval_shape(optimizer.init, params_of({}))
        leaves = jax.tree_util.tree_leaves_with_path(state)
        paths += [path_of(keys) for keys, _ in leaves]
    for pattern, _ in PARAMETERS:
        assert any(re.search(f"(?:{pattern})$", path) for path in paths), pattern


def batch_of(rows, length=3):
    """Numbers all the elements of a batch, so that none can be mistaken."""
    sides = np.arange(7 * rows * length, dtype=np.int32).reshape(7, rows, length)
    return Batch(*sides, rows=np.arange(rows, dtype=np.int32))


def test_each_device_holds_its_own_rows_of_every_array():
    batch = batch_of(10)
    placed = make_global_batch(batch, make_mesh(jax.devices()[:5]))
    for name, on_host, on_devices in zip(Batch._fields, batch, placed, strict=True):
        assert len(on_devices.addressable_shards) == 5
        for i, shard in enumerate(on_devices.addressable_shards):
            np.testing.assert_array_equal(
                shard.data, on_host[2 * i : 2 * i + 2], err_msg=name
            )
        np.testing.assert_array_equal(on_devices, on_host)
        assert on_devices.dtype == np.int32
