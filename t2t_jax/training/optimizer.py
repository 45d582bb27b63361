"""Makes the optimizer of a configuration: by default Adam with equation 3."""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jax.tree_util import tree_leaves_with_path, tree_map_with_path
from optax.contrib import MuonDimensionNumbers, scale_by_muon

from t2t_jax.devices.sharding.rules import path_of
from t2t_jax.errors import ConfigError
from t2t_jax.functional.schedule import inverse_square_root, linear_warmup
from t2t_jax.model.architectures import qualified_name
from t2t_jax.training.config import OptimizerConfig
from t2t_jax.training.schedule_free import schedule_free_adamw
from t2t_jax.types import Params, PyTree

Schedule = Callable[[jax.Array | int], jax.Array]
"""Maps the number of updates so far to the learning rate of the next."""

_Scheduled = Callable[[OptimizerConfig], Schedule]


def make_schedule(config: OptimizerConfig, *, d_model: int) -> Schedule:
    """Makes the schedule of `config.schedule`, by Optax's update count.

    The number of an update is its count + 1: the first one has a learning rate above 0,
    that of number `warmup_steps` the peak, and from `decay_steps` on it is
    `end_fraction` of it. Beside Optax's schedules it is one update earlier:
    `optax.warmup_cosine_decay_schedule(0, peak, …)(count + 1)`.

    Args:
      d_model: width of the model, which sets the paper's peak learning rate.

    Returns:
      A function of the updates so far, from 0, to the learning rate of the next one,
      float32.

    Raises:
      ConfigError: the schedule falls, and `decay_steps` is 0.

    Paper: §5.3, equation 3.

    Departs: All but "inverse_sqrt"; with "schedule_free" the rate stays at its peak.

    Example:
      >>> config = OptimizerConfig(schedule="linear", warmup_steps=2, decay_steps=4)
      >>> schedule = make_schedule(config, d_model=8)
      >>> [float(schedule(count)) for count in range(4)]
      [0.125, 0.25, 0.125, 0.0]
    """
    warmup, end = config.warmup_steps, config.end_fraction
    peak = config.peak_learning_rate or (d_model * warmup) ** -0.5
    rise = partial(linear_warmup, warmup_steps=warmup, peak=peak)
    if config.name == "schedule_free" or config.schedule == "constant":
        return lambda count: rise(count + 1)
    if config.schedule == "inverse_sqrt":
        return lambda count: inverse_square_root(
            count + 1, d_model, warmup_steps=warmup, peak=peak
        )
    if not config.decay_steps:
        raise ConfigError(
            f"optimizer.schedule={config.schedule} ends, and optimizer.decay_steps=0 "
            "does not say where. Set it, such as to config.steps."
        )
    begin, span = config.decay_begin, config.decay_steps - config.decay_begin
    fall = optax.schedules.linear_schedule(1.0, end, span)
    if config.schedule == "cosine":
        fall = optax.schedules.cosine_decay_schedule(1.0, span, alpha=end)
    return lambda count: rise(count + 1) * fall(jnp.maximum(count + 1 - begin, 0))


def make_optimizer(
    config: OptimizerConfig,
    *,
    d_model: int,
    frozen: str = "",
    own: optax.GradientTransformation | Schedule | None = None,
) -> optax.GradientTransformation:
    """Builds the optimizer; its state's moments mirror the parameters' tree.

    The gradient must be that at `schedule_free.gradient_params`.

    Args:
      d_model: width of the model, which sets the paper's peak learning rate.
      frozen: patterns of `TrainingConfig.frozen`; these parameters have no moments.
      own: takes the place of the configured optimizer, or of its schedule.

    Paper: §5.3. No gradient clipping, and no weight decay by default.

    Departs: `frozen` parameters are not trained; optimizers other than "adam".
    """
    if isinstance(own, optax.GradientTransformation):
        optimizer = own
    else:
        build = {"muon": _muon, "adafactor": _adafactor}.get(config.name, _adam)
        optimizer = build(
            config, lambda config: own or make_schedule(config, d_model=d_model)
        )
    if not frozen:
        return optimizer
    # Added to -0.0, the zeros of optax.set_to_zero would change its sign. The compiler
    # leaves out gradients that nothing reads.
    keep = optax.stateless(
        lambda updates, _: jax.tree.map(lambda g: jnp.full_like(g, -0.0), updates)
    )
    parts = {"trained": optimizer, "frozen": keep}
    return optax.partition(parts, lambda params: _labels(params, frozen))


def optimizer_name(own: object, params: Params) -> str:
    """Names what the state of an optimizer consists of, or a schedule.

    Args:
      own: a `GradientTransformation`, or a schedule.
      params: their shapes.

    Raises:
      TypeError: it is neither.

    Example:
      >>> params = {"table": jax.ShapeDtypeStruct((3, 2), jnp.float32)}
      >>> optimizer_name(optax.adam(optax.constant_schedule(0.1)), params)
      'ScaleByAdamState, ScaleByScheduleState'
      >>> optimizer_name(optax.constant_schedule(0.1), params)
      'optax.schedules._schedule.constant_schedule'
    """
    if isinstance(own, optax.GradientTransformation):
        structure = str(jax.tree.structure(jax.eval_shape(own.init, params)))
        names = dict.fromkeys(re.findall(r"namedtuple\[(\w+)\]", structure))
        return ", ".join(names) or "no state"
    if not callable(own) or isinstance(own, type):
        raise TypeError(
            "optimizer must be a GradientTransformation of Optax, such as "
            "optax.adamw(1e-4), or a schedule, such as optax.constant_schedule(1e-4), "
            f"not {own!r:.60}. What has a name goes into config.optimizer.name."
        )
    float(own(0))  # Of another kind of callable this fails.
    return qualified_name(own).partition(".<locals>")[0]


def trained_part(gradient: Params, frozen: str) -> list[jax.Array]:
    """Returns the gradients of the parameters that are trained.

    Args:
      frozen: patterns of `TrainingConfig.frozen`.
    """
    labels = jax.tree.leaves(_labels(gradient, frozen))
    leaves = jax.tree.leaves(gradient)
    return [g for g, label in zip(leaves, labels, strict=True) if label == "trained"]


def _adam(
    config: OptimizerConfig, scheduled: _Scheduled
) -> optax.GradientTransformation:
    """Builds Adam, with decoupled weight decay or an average of the parameters."""
    schedule = scheduled(config)
    keys: Any = {"b1": config.beta1, "b2": config.beta2, "eps": config.epsilon}
    if config.name == "adam":
        return optax.adam(schedule, **keys)
    keys |= {"weight_decay": config.weight_decay, "mask": _is_decayed}
    if config.name == "schedule_free":
        return schedule_free_adamw(schedule, warmup_steps=config.warmup_steps, **keys)
    return optax.adamw(schedule, **keys)


def _muon(
    config: OptimizerConfig, scheduled: _Scheduled
) -> optax.GradientTransformation:
    """Builds Muon for the kernels, and Adam for all other parameters.

    `optax.contrib.muon` would have Adam with Nesterov's momentum for the others.
    """
    peak = config.adam_learning_rate or config.peak_learning_rate
    scale = partial(_scaled, rms=config.consistent_rms)
    matrices = optax.chain(
        scale_by_muon(
            ns_steps=config.ns_steps,
            beta=config.muon_beta,
            eps=config.epsilon,
            weight_dimension_numbers=partial(_map_paths, _matrix_axes),
        ),
        optax.stateless(lambda updates, _: _map_paths(scale, updates)),
        optax.add_decayed_weights(config.weight_decay, mask=_is_decayed),
        optax.scale_by_learning_rate(scheduled(config)),
    )
    others = _adam(dataclasses.replace(config, peak_learning_rate=peak), scheduled)
    return optax.partition(
        {"muon": matrices, "adam": others},
        partial(_map_paths, lambda path, _: "muon" if is_matrix(path) else "adam"),
    )


def _adafactor(
    config: OptimizerConfig, scheduled: _Scheduled
) -> optax.GradientTransformation:
    """Builds Adafactor, with the learning rate of Adam and without momentum.

    `optax.adafactor` would factor no kernel of heads of less than 128, and its weight
    decay is not times the learning rate.
    """
    factored = optax.scale_by_factored_rms()

    def as_matrices(tree: Params) -> PyTree:
        return _map_paths(
            lambda path, x: x.reshape(matrix_shape(path, x)) if is_matrix(path) else x,
            tree,
        )

    def update(
        gradient: Params, state: PyTree, params: Params | None = None
    ) -> tuple[Params, PyTree]:
        matrices, like = as_matrices(gradient), as_matrices(params)
        scaled, state = factored.update(matrices, state, like)
        return jax.tree.map(lambda u, g: u.reshape(g.shape), scaled, gradient), state

    return optax.chain(
        optax.GradientTransformation(
            lambda params: factored.init(as_matrices(params)), update
        ),
        optax.clip_by_block_rms(1.0),
        optax.add_decayed_weights(config.weight_decay, mask=_is_decayed),
        optax.scale_by_learning_rate(scheduled(config)),
    )


def is_matrix(path: str) -> bool:
    """Returns whether a parameter is a kernel: a matrix that multiplies activations.

    Embedding tables, of which a step uses some rows, biases and norms are not.
    """
    return path.endswith("/kernel")


def _is_decayed(params: Params) -> PyTree:
    """Returns for each parameter whether weight decay applies to it."""
    return _map_paths(lambda path, _: path.endswith(("/kernel", "/table")), params)


def _matrix_axes(path: str, kernel: jax.Array) -> MuonDimensionNumbers:
    """Returns which axes of a kernel are the input of its product, and the output.

    W^Q, W^K and W^V are stored as [D, H, Dk], and W^O as [H, Dv, D]: each is one matrix
    for all heads.
    """
    inputs = kernel.ndim - 1 if path.endswith("output/kernel") else 1
    axes = tuple(range(kernel.ndim))
    return MuonDimensionNumbers(axes[:inputs], axes[inputs:])


def matrix_shape(path: str, kernel: jax.Array) -> tuple[int, int]:
    """Returns inputs and outputs of a kernel as a matrix.

    Example:
      >>> kernel = jax.ShapeDtypeStruct((8, 2, 3), "float32")
      >>> matrix_shape("encoder/layer_0/self_attention/query/kernel", kernel)
      (8, 6)
    """
    inputs = len(_matrix_axes(path, kernel).reduction_axis)
    return math.prod(kernel.shape[:inputs]), math.prod(kernel.shape[inputs:])


def _scaled(path: str, update: jax.Array, *, rms: float) -> jax.Array:
    """Scales an orthogonal matrix so that its root mean square is `rms`.

    Liu et al., "Muon is Scalable for LLM Training" (2025), for updates like Adam's.
    """
    return update * (rms * math.sqrt(max(matrix_shape(path, update))))


def _map_paths(function: Callable[[str, jax.Array], object], tree: PyTree) -> PyTree:
    """Maps each leaf, with its path, to another one."""
    return tree_map_with_path(lambda path, x: function(path_of(path), x), tree)


def _labels(params: Params, frozen: str) -> PyTree:
    """Labels each parameter as "frozen" or "trained".

    Raises:
      ConfigError: a pattern matches no parameter, or all are frozen.
    """
    patterns = list(filter(None, map(str.strip, frozen.split(","))))
    paths = [path_of(path) for path, _ in tree_leaves_with_path(params)]
    matched = {one: {p for p in paths if _matches(p, one)} for one in patterns}
    for pattern, some in matched.items():
        if not some:
            raise ConfigError(
                f"training.frozen: {pattern!r} matches no parameter. Set "
                f"config.training.frozen to some of {', '.join(params)}, or to paths "
                f"below them, such as {paths[0]} or {paths[-1]}."
            )
    kept = set().union(*matched.values())
    labels = ["frozen" if path in kept else "trained" for path in paths]
    if "trained" not in labels:
        raise ConfigError(
            f"training.frozen={frozen!r} freezes all parameters. Change "
            "config.training.frozen."
        )
    return jax.tree.unflatten(jax.tree.structure(params), labels)


def _matches(path: str, pattern: str) -> bool:
    return fnmatchcase(path, pattern) or fnmatchcase(path, f"{pattern}/*")
