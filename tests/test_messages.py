"""Messages for programmers: the rule, and what came."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn

import t2t_jax
from t2t_jax.errors import ConfigError, UserError
from t2t_jax.functional.losses import label_smoothed_nll
from t2t_jax.model.architectures import make_module, step_model
from t2t_jax.model.config import RNNConfig, TransformerConfig
from t2t_jax.training.loss import forward_loss
from t2t_jax.types import Batch
from tests.decoding.models import Recurrent, recurrent

MODEL = recurrent(0, 11)  # width 5
SOURCE = jnp.array([[5, 6, 2], [7, 2, 0]])
GIVEN = "a cache of the tree, shapes and types that it was given"


def returning(method, change):
    """Returns a model one of whose methods returns something else."""

    def changed(self, *args):
        return change(getattr(super(kind, self), method)(*args))

    kind = type("Mine", (Recurrent,), {method: changed, "__annotations__": {}})
    return kind(*jax.tree.leaves(MODEL))


@pytest.mark.parametrize("caller", ["beam_search", "sample"])
@pytest.mark.parametrize(
    ("method", "change", "rule", "came"),
    [
        ("encode", lambda x: x[:1], "that start with axis B=2", "float32[1,5]"),
        ("encode", lambda x: {"a": x, "n": x[0, 0]}, "axis B=2", "float32[] n"),
        ("init_cache", lambda x: (x, x[0]), "axis B=2", "float32[3,4,5] 1"),
        ("step", lambda x: x[0], "a pair (logits, cache)", "a "),
        ("step", lambda x: (x[0][:, 0], x[1]), "[B=2, W=3, V > 2]", "float32[2,11]"),
        ("step", lambda x: (x[0][..., :2], x[1]), "V > 2]", "float32[2,3,2]"),
        ("step", lambda x: (x[0].astype(int), x[1]), "of floating point", "int32[2,3"),
        ("step", lambda x: (None, x[1]), "[B=2, W=3, V > 2]", "no array"),
        ("step", lambda x: (x[0], x[1][:, :, 1:]), GIVEN, "float32[2,3,3,5], not floa"),
        ("step", lambda x: (x[0], [x[1]]), GIVEN, "1 missing (the array); 1 n"),
        ("step", lambda x: (x[0], x[1].astype("bfloat16")), GIVEN, "bfloat16[2,3,4,5]"),
        ("grow", lambda x: x[:, :, None], GIVEN, "float32[2,3,1,4,5]"),
    ],
)
def test_a_method_with_another_result_is_named(caller, method, change, rule, came):
    def search(model):
        if caller == "beam_search":
            params = t2t_jax.BeamParams(beam_size=3)
            return t2t_jax.beam_search(model, SOURCE, params=params, max_length=4)
        how = {"sampling_params": t2t_jax.SamplingParams(num_samples=3)}
        return t2t_jax.sample(model, SOURCE, jax.random.key(0), **how, max_length=4)

    for run in (search, jax.jit(search)):
        with pytest.raises(TypeError) as error:
            run(returning(method, change))
        assert f"{caller}: Mine.{method} must return " in str(error.value)
        returned = str(error.value).partition("it returned ")
        assert rule in returned[0]
        assert came in returned[2]
        assert f"Change Mine.{method}" in returned[2]


@pytest.mark.parametrize(
    "change", [lambda x: jnp.concatenate([x, x], axis=2), lambda x: x[:, :1]]
)
def test_a_cache_that_reorder_changes_is_named_and_a_search_without_it_runs(change):
    model = returning("reorder", change)
    with pytest.raises(TypeError, match=r"Mine\.reorder must return a cache"):
        t2t_jax.beam_search(model, SOURCE, max_length=4)
    t2t_jax.sample(model, SOURCE, jax.random.key(0), max_length=4)


def test_what_belongs_to_the_papers_loss_is_refused_beside_another():
    config = t2t_jax.TrainingConfig(r_drop=5.0)
    with pytest.raises(ConfigError, match="belong to the loss"):
        t2t_jax.make_train_step(
            make_module(SMALL), optax.sgd(0.1), config=config, loss=lambda *args: 0.0
        )


@functools.cache
def untrained():
    module, mesh = make_module(SMALL), t2t_jax.make_mesh(jax.devices()[:1])
    return module, mesh, t2t_jax.init_state(module, optax.sgd(0.1), 0, mesh=mesh)


@pytest.mark.parametrize(
    ("change", "came"),
    [
        (lambda x: x, "float32[2,3,11]"),
        (lambda x: (x.sum(), {}), "('float32[]', {})"),
        (lambda x: x.sum().astype(int), "int32[]"),
        (lambda x: None, "None"),
    ],
)
def test_a_loss_that_is_not_a_scalar_is_named(change, came):
    def loss(module, params, batch, dropout_key):
        return change(t2t_jax.batch_logits(module, params, batch))

    module, mesh, state = untrained()
    step = t2t_jax.make_train_step(module, optax.sgd(0.1), mesh=mesh, loss=loss)
    with pytest.raises(TypeError, match=r"loss= must .* sum over the real") as error:
        step(state, BATCH, 0)
    assert f"returned {came}. Return jnp.sum" in str(error.value)


TINY = {"vocab_size": 11, "num_layers": 2}
SMALL = TransformerConfig(**TINY, d_model=4, d_ff=6, num_heads=2, d_k=2, d_v=2)
BATCH = Batch(*[np.ones((2, 3), np.int32)] * 7, rows=np.arange(2))


def params_of(config):
    made = jax.eval_shape(make_module(config).init, jax.random.key(0), SOURCE, SOURCE)
    return jax.tree.map(lambda leaf: np.zeros(leaf.shape, "f4"), made["params"])


def renamed(params):
    params = dict(params)
    return {"decoder": params.pop("decoder"), "other": params}


OTHERS = {
    "layers": ({"num_layers": 1}, r"missing \(decoder/layer_1/\S+, \S+, \S+, …\)"),
    "more layers": ({"num_layers": 3}, r"\d+ not expected \(decoder/layer_2/"),
    "vocabulary": (
        {"vocab_size": 13},
        r"table is float32\[13,4\], not float32\[11,4\]",
    ),
    "baseline": ({}, r"missing .* not"),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("function", ["step_model", "loss"])
def test_parameters_of_another_model_are_compared(function, other):
    # Seen to fail: without `check_params`, where there are more layers.
    module, (changed, message) = make_module(SMALL), OTHERS[other]
    config = dataclasses.replace(SMALL, **changed)
    if other == "baseline":
        config = RNNConfig(vocab_size=11, d_model=4, d_hidden=4)

    def call(params):
        if function == "step_model":
            return step_model(module, params)
        loss = functools.partial(forward_loss, module, label_smoothing=0.0)
        return jax.eval_shape(loss, params, BATCH)

    call(params_of(SMALL))
    with pytest.raises(UserError, match=f"not those of this Transformer: .*{message}"):
        call(params_of(config))


def test_parameters_of_the_same_number_are_compared_where_they_do_not_fit():
    other = dataclasses.replace(SMALL, num_heads=1, d_k=4, d_v=4)
    with pytest.raises(UserError, match=r"query/kernel is float32\[4,1,4"):
        forward_loss(make_module(SMALL), params_of(other), BATCH, label_smoothing=0.0)


class Bag(nn.Module):
    """A model that takes too few arguments."""

    @nn.compact
    def __call__(self, source, target_inputs, *, deterministic):
        return nn.Embed(11, 11)(target_inputs)


def test_a_module_that_takes_other_arguments_is_told_which():
    params = Bag().init(jax.random.key(0), SOURCE, SOURCE, deterministic=True)["params"]
    message = (
        r"Bag\.__call__ must take \(source, target_inputs, \*, source_segments, .*, "
        r"rows, deterministic\).* 'source_segments'\. Change"
    )
    with pytest.raises(TypeError, match=message):
        forward_loss(Bag(), params, BATCH, label_smoothing=0.0)


def test_forward_mode_is_refused_by_name():
    def loss(logits):
        return label_smoothed_nll(logits, jnp.array(2))[0]

    logits = jnp.zeros(7)
    for call in (jax.jacfwd(loss), lambda x: jax.jvp(loss, (x,), (x,))):
        with pytest.raises(TypeError, match=r"reverse mode only\. Use jax\.grad, jax"):
            call(logits)
    hessian = jax.eval_shape(jax.hessian(loss), logits)  # of reverse mode
    assert hessian.shape == (7, 7)
