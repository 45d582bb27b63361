import dataclasses
import functools

import jax
import pytest

import t2t_jax
from t2t_jax.config import Config, parse
from t2t_jax.data.config import DataConfig
from t2t_jax.devices.sharding.config import MeshConfig
from t2t_jax.devices.sharding.mesh import make_mesh
from t2t_jax.model.config import RNNConfig, TransformerConfig
from t2t_jax.model.counting import count_parameters, training_flops
from t2t_jax.run.description import costs
from t2t_jax.run.description.costs import (
    compile_costs,
    num_bytes,
    optimizer_flops,
    parameter_table,
    per_device_state,
    state_shapes,
    step_flops,
)
from t2t_jax.training import compiled_step
from t2t_jax.training.config import OptimizerConfig, TrainingConfig
from tests.integration import tiny
from tests.model.tiny import TINY

# Large enough that products of matrices are nearly all there is.
SMALL = dataclasses.replace(
    Config(),
    data=DataConfig(tokens_per_batch=14 * 61, row_length=61, max_length=61),
    model=TransformerConfig(
        vocab_size=2003, num_layers=1, d_model=254, d_ff=1021, num_heads=4
    ),
)


def mesh(devices, **config):
    return make_mesh(jax.devices()[:devices], **config)


def table_of(network):
    name = "rnn" if isinstance(network, RNNConfig) else "model"
    architecture = {"rnn": "rnn", "model": "transformer"}[name]
    config = dataclasses.replace(Config(), architecture=architecture, **{name: network})
    return parameter_table(state_shapes(config).params)


@pytest.mark.parametrize(
    "network",
    [
        TransformerConfig(),
        dataclasses.replace(
            TINY, positions="learned", max_positions=1103, tying="none"
        ),
        dataclasses.replace(TINY, tying="decoder", source_vocab_size=23),
        RNNConfig(vocab_size=29, d_model=13, d_hidden=22, d_attention=7),
    ],
    ids=["base", "untied", "two vocabularies", "rnn"],
)
def test_parts_and_kinds_add_up_to_the_formula(network):
    counted = {part: sum(kinds.values()) for part, kinds in table_of(network).items()}
    assert counted == count_parameters(network)._asdict()


def test_kinds_of_base_by_hand():
    table = table_of(TransformerConfig())
    attention, norm = 4 * 512 * 512, 2 * 512
    feed_forward = 2 * 512 * 2048 + 2048 + 512
    assert list(table) == ["embedding", "encoder", "decoder"]
    assert table["embedding"] == {"embedding": 37_000 * 512}
    for side, attentions, norms in (("encoder", 1, 2), ("decoder", 2, 3)):
        layer = {"attention": attentions * attention, "feed_forward": feed_forward}
        layer["norms"] = norms * norm
        assert table[side] == {kind: 6 * count for kind, count in layer.items()}


def test_flops_of_a_step_are_those_of_its_rows():
    row = training_flops(SMALL.model, source_length=61, target_length=61)
    flops = step_flops(SMALL, rows=14)
    assert sum(flops.values()) == pytest.approx(14 * sum(row.values()))
    assert list(flops) == ["feed_forward", "projections", "scores", "logits"]


def test_two_passes_take_twice_the_operations_and_more_memory():
    config = dataclasses.replace(SMALL, training=TrainingConfig(simcut=3.0))
    once, twice = step_flops(SMALL, rows=14), step_flops(config, rows=14)
    assert twice == {part: 2 * flops for part, flops in once.items()}
    found = compile_costs(config, state=state_shapes(config), mesh=mesh(1))
    updates = 25 * count_parameters(SMALL.model).total
    # Terms of the divergence, for each word and target, beside the products.
    assert 1 < found.flops / sum(twice.values()) < 1.04 + updates / sum(twice.values())
    assert found.memory.temporaries > 1.5 * costs_on(1).memory.temporaries


@functools.cache
def costs_on(devices):
    return compile_costs(SMALL, state=state_shapes(SMALL), mesh=mesh(devices))


@pytest.mark.parametrize("devices", [1, 7])
def test_the_compiler_counts_operations_and_memory_as_the_formulas_do(devices):
    costs, parameters = costs_on(devices), count_parameters(SMALL.model).total
    ours = sum(step_flops(SMALL, rows=14).values())
    # Every device updates all parameters, some 25 operations for each: Adam, the norm
    # of the gradient, and the choice between the new state and the old.
    assert ours < costs.flops < 1.02 * ours + 25 * devices * parameters
    memory, rows = costs.memory, 14 // devices
    state, batch = 3 * 4 * parameters, rows * 7 * 61 * 4
    assert memory.arguments == pytest.approx(state + batch, rel=0.01)
    # The new state replaces the old.
    assert memory.aliased == pytest.approx(memory.outputs, rel=0.01)
    total = memory.arguments + memory.temporaries
    assert memory.total == pytest.approx(total, rel=0.01)
    # The logits alone, and their gradient, are that large.
    assert memory.temporaries > 2 * 4 * rows * 61 * 2003
    assert costs.platform == "cpu"


def of_mesh(**config):
    return dataclasses.replace(SMALL, mesh=MeshConfig(**config))


def test_a_device_holds_its_part_of_parameters_and_moments():
    state = state_shapes(SMALL)
    whole = per_device_state(SMALL, state=state, mesh=mesh(2))
    assert num_bytes(whole) == num_bytes(state)
    share = per_device_state(of_mesh(fsdp=2), state=state, mesh=mesh(2, fsdp=2))
    # Biases and norms are not split; of the table, whose 2,003 rows do not divide, the
    # columns are.
    vectors = 1021 * 2 + 254 * 2 + 5 * 2 * 254
    parameters = count_parameters(SMALL.model).total
    expected = vectors + (parameters - vectors) // 2
    assert num_bytes(share.params) == 4 * expected
    moments = per_device_state(of_mesh(shard_optimizer=True), state=state, mesh=mesh(2))
    assert num_bytes(moments.params) == num_bytes(state.params)
    assert num_bytes(moments.optimizer) < 0.8 * num_bytes(state.optimizer)


def test_the_products_of_muon_are_counted_for_each_matrix_that_is_trained():
    def flops(frozen=""):
        config = dataclasses.replace(
            SMALL,
            optimizer=OptimizerConfig(name="muon", ns_steps=3),
            training=TrainingConfig(frozen=frozen),
        )
        return optimizer_flops(config, state_shapes(config).optimizer)["optimizer"]

    # 254 x 4 heads of 64; 254 x 1021.
    attention = 3 * (4 * 254**2 * 256 + 2 * 254**3)
    feed_forward = 3 * (4 * 254**2 * 1021 + 2 * 254**3)
    assert flops() == 12 * attention + 4 * feed_forward
    assert flops("encoder") == 8 * attention + 2 * feed_forward
    assert optimizer_flops(SMALL, state_shapes(SMALL).optimizer) == {}


def test_the_states_of_the_optimizers_are_counted():
    def states(**sections):
        return state_shapes(dataclasses.replace(SMALL, **sections))

    adam = states()
    one = 4 * count_parameters(SMALL.model).total
    assert num_bytes(adam.params) == one
    assert num_bytes(adam) == 3 * one + 3 * 4  # three counters
    schedule_free = states(optimizer=OptimizerConfig(name="schedule_free"))
    assert num_bytes(schedule_free.optimizer) == 2 * one + 8  # a counter, and b1
    assert adam.ema is None
    assert num_bytes(states(training=TrainingConfig(ema_decay=0.5)).ema) == one


def test_the_described_step_is_the_trainer_s(tmp_path, monkeypatch):
    lowered, enough = [], RuntimeError("enough")

    def recording(*step, **shape):
        lowered.append(original(*step, **shape).as_text())
        raise enough

    original = compiled_step.lower_step
    for user in (compiled_step, costs):
        monkeypatch.setattr(user, "lower_step", recording)
    values = t2t_jax.load_config("phrasebook")
    values.update_from_flattened_dict(
        {**tiny.TINY, "steps": 1, "evaluation.every_steps": 0}
        | {"data.cache_dir": str(tmp_path), "training.ema_decay": 0.9}
        | {"mesh.fsdp": 2}
    )
    with pytest.raises(RuntimeError, match="enough"):
        t2t_jax.train(values, tmp_path / "run", quiet=True)
    config = parse(values.to_dict())
    with pytest.raises(RuntimeError, match="enough"):
        compile_costs(config, state=state_shapes(config), mesh=mesh(8, fsdp=2))
    trained, described = lowered
    assert trained == described
