import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from t2t_jax.errors import ConfigError
from t2t_jax.sharding.rules import path_of
from t2t_jax.training.config import OptimizerConfig
from t2t_jax.training.optimizer import learning_rate, make_optimizer
from t2t_jax.training.schedule_free import gradient_params
from tests.reference.optimizers import AdamW, Muon


def equation_3(step, d_model, warmup_steps):
    return d_model**-0.5 * min(step**-0.5, step * warmup_steps**-1.5)


def updates_of(config, *, d_model, gradients):
    """Feeds gradients to the optimizer; returns what it adds to a parameter."""
    optimizer = make_optimizer(config, d_model=d_model)
    state = optimizer.init(jnp.zeros(()))
    updates = []
    for gradient in gradients:
        update, state = optimizer.update(jnp.asarray(gradient), state)
        updates.append(float(update))
    return np.array(updates)


def test_the_nth_update_has_the_learning_rate_of_equation_3_at_n():
    # Under a constant gradient Adam moves by exactly the learning rate.
    config = OptimizerConfig(warmup_steps=5)
    updates = updates_of(config, d_model=13, gradients=[3.0] * 17)
    wanted = [-equation_3(n, 13, 5) for n in range(1, 18)]
    # rtol: 1 - beta2^n loses 6 bits of float32 at n = 1.
    np.testing.assert_allclose(updates, wanted, rtol=1e-4)
    assert np.argmin(updates) + 1 == 5


def test_the_learning_rate_that_is_reported_is_the_one_that_is_used():
    config = OptimizerConfig(warmup_steps=3)
    updates = updates_of(config, d_model=7, gradients=[1.0] * 7)
    rates = [float(learning_rate(n, config=config, d_model=7)) for n in range(7)]
    np.testing.assert_allclose(updates, -np.array(rates), rtol=1e-4)  # as above


def test_base_peaks_at_its_four_thousandth_update():
    rates = learning_rate(jnp.arange(8_000), config=OptimizerConfig(), d_model=512)
    assert int(jnp.argmax(rates)) + 1 == 4_000
    np.testing.assert_allclose(rates.max(), (512 * 4_000) ** -0.5, rtol=1e-6)  # float32


def test_a_peak_of_ones_own_is_reached_at_the_end_of_the_warm_up():
    config = OptimizerConfig(warmup_steps=5, peak_learning_rate=0.25)
    rates = learning_rate(jnp.arange(20), config=config, d_model=512)
    np.testing.assert_allclose(  # float32
        rates[jnp.array([0, 4, 19])], [0.05, 0.25, 0.125], rtol=1e-6
    )


def test_betas_and_epsilon_reach_adam():
    config = OptimizerConfig(
        warmup_steps=1, peak_learning_rate=0.5, beta1=0.7, beta2=0.6, epsilon=0.125
    )
    gradients = [2.0, -1.0]
    wanted, m, v = [], 0.0, 0.0
    for n, g in enumerate(gradients, start=1):
        m, v = 0.7 * m + 0.3 * g, 0.6 * v + 0.4 * g * g
        m_hat, v_hat = m / (1 - 0.7**n), v / (1 - 0.6**n)
        wanted.append(-0.5 * n**-0.5 * m_hat / (v_hat**0.5 + 0.125))
    updates = updates_of(config, d_model=512, gradients=gradients)
    np.testing.assert_allclose(updates, wanted, rtol=1e-6)  # a dozen float32 steps


def test_the_paper_s_numbers_are_the_defaults():
    config = OptimizerConfig()
    assert (config.beta1, config.beta2, config.epsilon) == (0.9, 0.98, 1e-9)
    assert (config.warmup_steps, config.peak_learning_rate) == (4_000, 0.0)


def test_large_gradients_are_not_clipped():
    config = OptimizerConfig(warmup_steps=1, beta1=0.0, beta2=0.5, epsilon=1e-9)
    small, large = (
        updates_of(config, d_model=4, gradients=[1.0, factor]) for factor in (2.0, 2e6)
    )
    # v = (1/4 + g^2/2) / (3/4): had g been clipped, both would be alike.
    expected = 0.5 * 2**-0.5 * 2.0 / ((0.25 + 2.0) / 0.75) ** 0.5
    np.testing.assert_allclose(small[1], -expected, rtol=1e-6)  # float32
    np.testing.assert_allclose(large[1], -0.5 * 2**-0.5 * 1.5**0.5, rtol=1e-6)


def test_moments_mirror_the_parameters():
    params = {"encoder": {"kernel": jnp.ones((3, 5))}, "bias": jnp.ones(2)}
    adam = make_optimizer(OptimizerConfig(), d_model=3).init(params)[0]
    for moment in (adam.mu, adam.nu):
        assert jax.tree.map(jnp.shape, moment) == jax.tree.map(jnp.shape, params)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("warmup_steps", 0),
        ("peak_learning_rate", -0.1),
        ("peak_learning_rate", float("nan")),
        ("beta1", 1.0),
        ("beta2", -0.1),
        ("epsilon", 0.0),
        ("name", "sgd"),
        ("weight_decay", -0.1),
        ("weight_decay", float("inf")),
        ("muon_beta", 1.0),
        ("ns_steps", 0),
        ("ns_steps", 101),
        ("consistent_rms", 0.0),
        ("adam_learning_rate", -1.0),
    ],
)
def test_a_value_out_of_range_is_refused_by_its_key(key, value):
    with pytest.raises(ValueError, match=rf"Change config\.optimizer\.{key}\."):
        OptimizerConfig(**{key: value})


PARAMS = {
    "encoder": {"layer_0": {"kernel": jnp.ones(2)}, "layer_1": {"kernel": jnp.ones(3)}},
    "embedding": {"table": jnp.ones(5)},
}


def frozen_by(patterns):
    """Returns the paths that two updates leave as they are."""
    optimizer = make_optimizer(OptimizerConfig(), d_model=13, frozen=patterns)
    params, state = PARAMS, optimizer.init(PARAMS)
    for _ in range(2):
        updates, state = optimizer.update(PARAMS, state, params)
        params = optax.apply_updates(params, updates)
    same = jax.tree.map(lambda a, b: bool((a == b).all()), params, PARAMS)
    moments = [leaf.size for leaf in jax.tree.leaves(state) if leaf.size > 1]
    leaves = jax.tree_util.tree_leaves_with_path(same)
    return {path_of(path) for path, is_same in leaves if is_same}, moments


def test_frozen_parameters_neither_change_nor_have_moments():
    zero, one, table = "encoder/layer_0/kernel", "encoder/layer_1/kernel", 5
    assert frozen_by("encoder") == ({zero, one}, [table] * 2)
    assert frozen_by("encoder/layer_0, embedding")[0] == {zero, "embedding/table"}
    assert frozen_by("*/kernel")[0] == {zero, one}


def test_parameters_that_are_not_frozen_move_as_if_they_were_alone():
    frozen = make_optimizer(OptimizerConfig(), d_model=13, frozen="encoder")
    plain = make_optimizer(OptimizerConfig(), d_model=13)
    updates, _ = frozen.update(PARAMS, frozen.init(PARAMS), PARAMS)
    alone = {"embedding": PARAMS["embedding"]}
    wanted, _ = plain.update(alone, plain.init(alone), alone)
    np.testing.assert_array_equal(
        updates["embedding"]["table"], wanted["embedding"]["table"]
    )


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        ("decoder", r"'decoder' matches no parameter, such as embedding/table or"),
        ("encoder,enc", r"'enc' matches no parameter"),
        ("*", r"freezes all parameters"),
    ],
)
def test_patterns_that_freeze_nothing_or_everything_are_errors(patterns, message):
    with pytest.raises(ConfigError, match=message):
        frozen_by(patterns)


@pytest.mark.parametrize(
    ("changes", "users"),
    [
        ({"weight_decay": 0.1}, "adamw, schedule_free, muon"),
        ({"name": "adamw", "muon_beta": 0.9}, "muon"),
        ({"name": "schedule_free", "ns_steps": 7}, "muon"),
        ({"consistent_rms": 0.1}, "muon"),
        ({"name": "adamw", "adam_learning_rate": 0.1}, "muon"),
    ],
)
def test_a_key_of_another_optimizer_is_refused(changes, users):
    with pytest.raises(ConfigError, match=f"no effect with .*only with {users}"):
        OptimizerConfig(**changes)


def test_an_unknown_name_is_one_error_and_lists_the_known_ones():
    with pytest.raises(ConfigError) as raised:
        OptimizerConfig(name="adan", weight_decay=0.1)
    assert len(raised.value.problems) == 1
    assert "adam, adamw, schedule_free, muon" in str(raised.value)


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


def drawn(seed):
    random = np.random.default_rng(seed)
    return jax.tree.map(
        lambda shape: random.normal(size=shape),
        SHAPES,
        is_leaf=lambda x: isinstance(x, tuple),
    )


def float32(tree):
    return jax.tree.map(lambda x: jnp.asarray(x, jnp.float32), tree)


def require_equal_steps(config, definition_of, *, rates, atol):
    """Compares five steps with a definition for each parameter; the third has zeros.

    Args:
      definition_of: maps path and array to (definition, as a matrix, rates).
    """
    optimizer = make_optimizer(config, d_model=7)
    params = drawn(0)
    ours = float32(params)
    state = optimizer.init(ours)
    leaves, tree = jax.tree_util.tree_flatten_with_path(params)
    paths = [path_of(path) for path, _ in leaves]
    definitions = [definition_of(path) for path in paths]
    theirs = [leaf for _, leaf in leaves]
    for number in range(5):
        gradient = drawn(number + 1)
        if number == 2:
            gradient = jax.tree.map(np.zeros_like, gradient)
        updates, state = optimizer.update(float32(gradient), state, ours)
        ours = optax.apply_updates(ours, updates)
        for index, (own, g) in enumerate(
            zip(definitions, jax.tree.leaves(gradient), strict=True)
        ):
            shape = AS_MATRIX.get(g.shape, g.shape)
            stepped = own.step(
                theirs[index].reshape(shape),
                g.reshape(shape),
                rates(paths[index], number),
            )
            theirs[index] = stepped.reshape(g.shape)
        jax.tree.map(
            lambda a, b: np.testing.assert_allclose(a, b, atol=atol),
            ours,
            jax.tree.unflatten(tree, theirs),
        )


def test_adamw_decays_kernels_and_tables_but_neither_biases_nor_norms():
    config = OptimizerConfig(
        name="adamw", warmup_steps=2, peak_learning_rate=0.125, weight_decay=0.25
    )

    def definition_of(path):
        decay = 0.0 if path.endswith(("bias", "scale")) else 0.25
        return AdamW(0.9, 0.98, 1e-9, decay)

    rates = [0.0625, 0.125, *(0.125 * (n / 2) ** -0.5 for n in (3, 4, 5))]
    require_equal_steps(
        config,
        definition_of,
        rates=lambda _, number: rates[number],
        atol=2e-6,  # float32 sums of about 1
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
    jax.tree.map(np.testing.assert_array_equal, *updates)


def test_muon_moves_each_kernel_as_one_matrix_and_adam_the_rest():
    config = OptimizerConfig(
        name="muon",
        warmup_steps=1,
        peak_learning_rate=0.125,
        adam_learning_rate=0.0625,
        weight_decay=0.25,
        ns_steps=4,
        muon_beta=0.8,
        consistent_rms=0.5,
    )

    def definition_of(path):
        if path.endswith("kernel"):
            return Muon(0.8, 1e-9, 4, 0.5, decay=0.25)
        return AdamW(0.9, 0.98, 1e-9, 0.25 if path.endswith("table") else 0.0)

    def rates(path, number):
        peak = 0.125 if path.endswith("kernel") else 0.0625
        return peak * (number + 1) ** -0.5

    # atol: five products of float32 matrices, whose small singular values grow
    require_equal_steps(config, definition_of, rates=rates, atol=2e-5)


def test_muon_s_updates_are_as_large_as_adam_s_by_default():
    config = OptimizerConfig(name="muon", warmup_steps=1, peak_learning_rate=1.0)
    random = np.random.default_rng(3)
    params = {"query": {"kernel": jnp.asarray(random.normal(size=(64, 4, 16)))}}
    optimizer = make_optimizer(config, d_model=64)
    updates, _ = optimizer.update(params, optimizer.init(params), params)
    root_mean_square = float(jnp.sqrt(jnp.mean(updates["query"]["kernel"] ** 2)))
    # Five iterations leave singular values between 0.7 and 1.2.
    assert root_mean_square == pytest.approx(0.2, rel=0.2)


@pytest.mark.parametrize("name", ["adamw", "schedule_free", "muon"])
def test_frozen_parameters_stay_with_each_optimizer(name):
    config = OptimizerConfig(
        name=name, warmup_steps=1, peak_learning_rate=0.1, weight_decay=0.5
    )
    optimizer = make_optimizer(config, d_model=7, frozen="feed_forward,*/query")
    alone = make_optimizer(config, d_model=7)
    params = float32(drawn(0))
    kept = {name: params[name] for name in ("embedding", "norm")}
    states = [optimizer.init(params), alone.init(kept)]
    for number in range(3):
        gradient = float32(drawn(number + 1))
        at, at_kept = (
            gradient_params(*both) for both in zip((params, kept), states, strict=True)
        )
        for part in ("embedding", "norm"):
            jax.tree.map(np.testing.assert_array_equal, at[part], at_kept[part])
        updates, states[0] = optimizer.update(gradient, states[0], params)
        params = optax.apply_updates(params, updates)
        own = {name: gradient[name] for name in kept}
        updates, states[1] = alone.update(own, states[1], kept)
        kept = optax.apply_updates(kept, updates)
    first = float32(drawn(0))
    frozen = ("feed_forward", first["feed_forward"], params["feed_forward"])
    jax.tree.map(np.testing.assert_array_equal, *frozen[1:])
    jax.tree.map(
        np.testing.assert_array_equal,
        at["feed_forward"],
        first["feed_forward"],
    )
    query = (first["self_attention"]["query"], params["self_attention"]["query"])
    jax.tree.map(np.testing.assert_array_equal, *query)
    changed = params["self_attention"]["output"]["kernel"]
    assert (changed != first["self_attention"]["output"]["kernel"]).all()
    for part in kept:
        jax.tree.map(np.testing.assert_array_equal, params[part], kept[part])


def test_the_rate_of_schedule_free_rises_and_stays():
    config = OptimizerConfig(name="schedule_free", warmup_steps=4)
    rates = learning_rate(jnp.arange(9), config=config, d_model=25)
    np.testing.assert_allclose(  # float32
        rates, [0.025, 0.05, 0.075, *[0.1] * 6], rtol=1e-6
    )
