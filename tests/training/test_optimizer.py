import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from t2t_jax.devices.sharding.rules import path_of
from t2t_jax.errors import ConfigError
from t2t_jax.functional.moving_average import moving_average
from t2t_jax.training.config import OPTIMIZERS, SCHEDULES, OptimizerConfig
from t2t_jax.training.optimizer import make_optimizer, make_schedule
from t2t_jax.training.schedule_free import gradient_params
from tests.reference.optimizers import AdamW, Muon
from tests.training.copy_task import require_same


def equation_3(step, d_model, warmup_steps):
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


def test_the_nth_update_has_the_learning_rate_of_equation_3_at_n():
    config = OptimizerConfig(warmup_steps=5)
    optimizer = make_optimizer(config, d_model=13)
    state = optimizer.init(jnp.zeros(()))
    for n in range(1, 18):
        # Under a constant gradient Adam moves by exactly the learning rate.
        update, state = optimizer.update(jnp.asarray(3.0), state)
        rate = make_schedule(config, d_model=13)(n - 1)
        # rtol: 1 - beta2^n loses 6 bits of float32 at n = 1.
        np.testing.assert_allclose(update, -equation_3(n, 13, 5), rtol=1e-4)
        np.testing.assert_allclose(rate, equation_3(n, 13, 5), rtol=1e-6)


WARMUP, END, PEAK = 7, 40, 0.375
FALL = {"decay_steps": END, "end_fraction": 0.25}


def linear(n, begin):
    return PEAK * (1 - 0.75 * min(1, (n - begin) / (END - begin)))


def cosine(n):
    angle = math.pi * min(1, (n - WARMUP) / (END - WARMUP))
    return PEAK * (0.25 + 0.75 * (1 + math.cos(angle)) / 2)


def optax_wsd(begin):
    parts = [
        optax.schedules.warmup_constant_schedule(0, PEAK, WARMUP),
        optax.schedules.linear_schedule(PEAK, PEAK / 4, END - begin),
    ]
    return optax.schedules.join_schedules(parts, [begin])


# name: keys, the rate of update n after the warm-up, Optax's
BY_NAME = {
    "inverse_sqrt": ({}, lambda n: PEAK * (WARMUP / n) ** 0.5, None),
    "constant": (
        {},
        lambda n: PEAK,
        optax.schedules.warmup_constant_schedule(0, PEAK, WARMUP),
    ),
    "linear": (FALL, lambda n: linear(n, WARMUP), optax_wsd(WARMUP)),
    "cosine": (
        FALL,
        cosine,
        optax.schedules.warmup_cosine_decay_schedule(0, PEAK, WARMUP, END, PEAK / 4),
    ),
    "warmup_stable_decay": (
        {**FALL, "decay_fraction": 0.2},  # of 40: the last 8
        lambda n: linear(n, 32) if n > 32 else PEAK,
        optax_wsd(32),
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedule_by_name_is_its_closed_form_and_optax_s_one_update_earlier(name):
    keys, after, theirs = BY_NAME[name]
    how = {"schedule": name, "warmup_steps": WARMUP}
    config = OptimizerConfig(peak_learning_rate=PEAK, **how, **keys)
    numbers = range(1, END + 5)
    expected = [PEAK * n / WARMUP if n <= WARMUP else after(n) for n in numbers]
    rates = make_schedule(config, d_model=13)(jnp.arange(len(numbers)))
    # float32; the cosine's at its end is a difference of numbers of about 1
    np.testing.assert_allclose(rates, expected, rtol=2e-6)
    if theirs:
        np.testing.assert_allclose(rates, [theirs(n) for n in numbers], rtol=2e-6)
    # Without a peak, that of equation 3; without an end, 0 at the last step.
    config = OptimizerConfig(decay_steps=keys.get("decay_steps", 0), **how)
    rates = make_schedule(config, d_model=13)(jnp.arange(END))
    np.testing.assert_allclose(rates[WARMUP - 1], (13 * WARMUP) ** -0.5, rtol=1e-6)
    assert rates[-2] > 0
    assert (rates[-1] == 0) == config.decays


@pytest.mark.parametrize(
    ("key", "values"),
    [
        *(("warmup_steps", [0]), ("peak_learning_rate", [-0.1, math.nan])),
        *(("beta1", [1.0]), ("beta2", [-0.1]), ("epsilon", [0.0]), ("name", ["sgd"])),
        *(("weight_decay", [-0.1, math.inf]), ("muon_beta", [1.0])),
        *(("ns_steps", [0, 101]), ("consistent_rms", [0.0])),
        *(("adam_learning_rate", [-1.0]), ("schedule", ["wsd"]), ("decay_steps", [-1])),
        *(("decay_fraction", [0.0, 1.5]), ("end_fraction", [-0.5, 1.5, math.nan])),
    ],
)
def test_a_value_out_of_range_is_refused_by_its_key(key, values):
    for value in values:
        with pytest.raises(ConfigError, match=rf"Change config\.optimizer\.{key}\."):
            OptimizerConfig(**{key: value})


@pytest.mark.parametrize(
    ("changes", "users"),
    [
        ({"weight_decay": 0.1}, "adamw, schedule_free, muon, adafactor"),
        ({"name": "adafactor", "beta2": 0.9}, "adam, adamw, schedule_free, muon."),
        ({"name": "adamw", "muon_beta": 0.9}, "muon"),
        ({"name": "schedule_free", "schedule": "constant"}, "adam, adamw, muon"),
        ({"decay_steps": 9}, "cosine, linear, warmup_stable_decay"),
        ({"schedule": "cosine", "decay_fraction": 0.2}, "warmup_stable_decay"),
    ],
)
def test_a_key_of_another_optimizer_is_refused(changes, users):
    with pytest.raises(ConfigError, match=f"no effect with .*only with {users}"):
        OptimizerConfig(**changes)


@pytest.mark.parametrize(("steps", "fraction"), [(5, 0.4), (9, 0.01)])
def test_a_schedule_that_falls_in_the_warmup_or_at_once_is_refused(steps, fraction):
    how = {"schedule": "warmup_stable_decay", "warmup_steps": 4}
    with pytest.raises(ConfigError, match=r"must fall after optimizer\.warmup_steps=4"):
        OptimizerConfig(decay_steps=steps, decay_fraction=fraction, **how)


def test_a_schedule_without_its_end_is_refused():
    with pytest.raises(ConfigError, match="decay_steps=0 does not say where"):
        make_optimizer(OptimizerConfig(schedule="cosine"), d_model=7)


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        ("decoder", r"'decoder' matches no parameter. .* some of encoder, embedding,"),
        ("*", r"freezes all parameters"),
    ],
)
def test_patterns_that_freeze_nothing_or_everything_are_errors(patterns, message):
    params = {name: {"kernel": jnp.ones(2)} for name in ("encoder", "embedding")}
    with pytest.raises(ConfigError, match=message):
        make_optimizer(OptimizerConfig(), d_model=13, frozen=patterns).init(params)


# W^Q and W^O of 3 heads of depth 2 at width 7, both matrices of a network, a table.
SHAPES = {
    "self_attention": {
        "query": {"kernel": (7, 3, 2)},
        "output": {"kernel": (3, 2, 7), "bias": (7,)},
    },
    "feed_forward": {"inner": {"kernel": (7, 11)}, "outer": {"kernel": (11, 7)}},
    "embedding": {"table": (13, 7)},
    "norm": {"scale": (7,)},
}
AS_MATRIX = {(7, 3, 2): (7, 6), (3, 2, 7): (6, 7)}


def drawn(seed, shapes=SHAPES):
    random = np.random.default_rng(seed)
    return jax.tree.map(
        lambda shape: random.normal(size=shape),
        shapes,
        is_leaf=lambda x: isinstance(x, tuple),
    )


def float32(tree):
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), tree)


PEAK_AT_2 = {"warmup_steps": 2, "peak_learning_rate": 0.125}
BETAS = {"beta1": 0.7, "beta2": 0.6, "epsilon": 0.125}
MUON = {"ns_steps": 4, "muon_beta": 0.8, "consistent_rms": 0.5, "warmup_steps": 1}
MUON |= {"peak_learning_rate": 0.125, "adam_learning_rate": 0.0625}


def after_warmup_of(peak, steps):
    return [peak * min(n / steps, (n / steps) ** -0.5) for n in range(1, 6)]


@pytest.mark.parametrize(
    ("config", "kernels", "tables", "others", "atol"),
    [
        # atol: float32 sums of about 1
        (
            OptimizerConfig(**PEAK_AT_2, **BETAS),
            *[(partial(AdamW, 0.7, 0.6, 0.125), after_warmup_of(0.125, 2))] * 3,
            2e-6,
        ),
        (
            OptimizerConfig(name="adamw", weight_decay=0.25, **PEAK_AT_2),
            *[(partial(AdamW, 0.9, 0.98, 1e-9, 0.25), after_warmup_of(0.125, 2))] * 2,
            (partial(AdamW, 0.9, 0.98, 1e-9), after_warmup_of(0.125, 2)),
            2e-6,
        ),
        # atol: five products of float32 matrices, whose small singular values grow
        (
            OptimizerConfig(name="muon", weight_decay=0.25, **MUON),
            (partial(Muon, 0.8, 1e-9, 4, 0.5, decay=0.25), after_warmup_of(0.125, 1)),
            (partial(AdamW, 0.9, 0.98, 1e-9, 0.25), after_warmup_of(0.0625, 1)),
            (partial(AdamW, 0.9, 0.98, 1e-9), after_warmup_of(0.0625, 1)),
            2e-5,
        ),
    ],
    ids=["adam", "adamw", "muon"],
)
def test_five_steps_equal_the_definition(config, kernels, tables, others, atol):
    """Kernels are one matrix each, and biases and norms not decayed."""

    def definition_of(path):
        kinds = {"kernel": kernels, "table": tables}
        make, rates = kinds.get(path.rpartition("/")[2], others)
        return make(), rates

    optimizer, params = make_optimizer(config, d_model=7), drawn(0)
    ours = float32(params)
    state = optimizer.init(ours)
    leaves, tree = jax.tree_util.tree_flatten_with_path(params)
    definitions = [definition_of(path_of(path)) for path, _ in leaves]
    theirs = [leaf for _, leaf in leaves]
    for number in range(5):
        gradient = drawn(number + 1)
        if number == 2:
            gradient = jax.tree.map(np.zeros_like, gradient)
        updates, state = optimizer.update(float32(gradient), state, ours)
        ours = optax.apply_updates(ours, updates)
        for index, g in enumerate(jax.tree.leaves(gradient)):
            definition, rates = definitions[index]
            shape = AS_MATRIX.get(g.shape, g.shape)
            matrices = theirs[index].reshape(shape), g.reshape(shape)
            theirs[index] = definition.step(*matrices, rates[number]).reshape(g.shape)
        close = partial(np.testing.assert_allclose, atol=atol)
        jax.tree.map(close, ours, jax.tree.unflatten(tree, theirs))


@pytest.mark.parametrize("decay", [0.0, 0.25])
def test_adafactor_is_that_of_optax_for_kernels_as_matrices(decay):
    config = OptimizerConfig(name="adafactor", warmup_steps=2, weight_decay=decay)
    ours = make_optimizer(config, d_model=7)
    schedule = make_schedule(config, d_model=7)
    theirs = optax.adafactor(schedule, multiply_by_parameter_scale=False)
    shapes = {
        "query": {"kernel": (131, 2, 65), "bias": (2, 65)},
        "output": {"kernel": (2, 65, 131)},
        "inner": {"kernel": (131, 130)},
        "embedding": {"table": (137, 131)},
    }
    matrices = {(131, 2, 65): (131, 130), (2, 65, 131): (130, 131)}
    as_matrices = partial(
        jax.tree.map, lambda x: x.reshape(matrices.get(x.shape, x.shape))
    )
    params, *gradients = (float32(drawn(seed, shapes)) for seed in range(4))
    states = [ours.init(params), theirs.init(as_matrices(params))]
    # Rows and columns of four matrices, the bias, zeros in place of others, counters.
    assert sum(x.size for x in jax.tree.leaves(states[0])) < 4 * 2 * 137 + 130 + 20
    for number, gradient in enumerate(gradients):
        one, states[0] = ours.update(gradient, states[0], params)
        two, states[1] = theirs.update(
            as_matrices(gradient), states[1], as_matrices(params)
        )
        share = schedule(number) * decay
        lost = optax.tree.scale(share, params)
        lost["query"]["bias"] *= 0
        two = jax.tree.map(jnp.subtract, two, as_matrices(lost))
        jax.tree.map(  # float32 products in another order
            partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-7),
            as_matrices(one),
            two,
        )


def test_adamw_without_decay_is_adam_bit_by_bit():
    plain, decoupled = (
        make_optimizer(OptimizerConfig(name=name), d_model=7)
        for name in ("adam", "adamw")
    )
    params, gradient = float32(drawn(0)), float32(drawn(1))
    updates = [
        one.update(gradient, one.init(params), params)[0] for one in (plain, decoupled)
    ]
    require_same(*updates)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_frozen_parameters_stay_and_others_move_as_if_they_were_alone(name):
    decay = {} if name == "adam" else {"weight_decay": 0.5}
    config = OptimizerConfig(name=name, warmup_steps=1, peak_learning_rate=0.1, **decay)
    optimizer = make_optimizer(config, d_model=7, frozen="feed_forward,*/query")
    alone = make_optimizer(config, d_model=7)
    first = params = float32(drawn(0))
    minus_zero = first["feed_forward"]["inner"]["kernel"] = jnp.full((7, 11), -0.0)
    kept = {part: params[part] for part in ("embedding", "norm")}
    states = [optimizer.init(params), alone.init(kept)]
    for number in range(3):
        gradient = float32(drawn(number + 1))
        at = gradient_params(params, states[0])
        at_kept = gradient_params(kept, states[1])
        require_same({part: at[part] for part in kept}, at_kept)
        updates, states[0] = optimizer.update(gradient, states[0], params)
        params = optax.apply_updates(params, updates)
        own = {part: gradient[part] for part in kept}
        updates, states[1] = alone.update(own, states[1], kept)
        kept = optax.apply_updates(kept, updates)
    assert (7, 11) not in {leaf.shape for leaf in jax.tree.leaves(states[0])}
    average = moving_average(first, params, decay=0.5, count=3)
    for tree in (params, at, average):
        require_same(tree["feed_forward"], first["feed_forward"])
        still = tree["feed_forward"]["inner"]["kernel"]
        require_same(jnp.signbit(still), jnp.signbit(minus_zero))
        require_same(tree["self_attention"]["query"], first["self_attention"]["query"])
    changed = params["self_attention"]["output"]["kernel"]
    assert (changed != first["self_attention"]["output"]["kernel"]).all()
    require_same({part: params[part] for part in kept}, kept)


def test_the_rate_of_schedule_free_rises_and_stays():
    config = OptimizerConfig(name="schedule_free", warmup_steps=4)
    rates = make_schedule(config, d_model=25)(jnp.arange(9))
    np.testing.assert_allclose(  # float32
        rates, [0.025, 0.05, 0.075, *[0.1] * 6], rtol=1e-6
    )
