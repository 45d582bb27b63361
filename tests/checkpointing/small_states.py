"""Small states for tests of checkpoints."""

import jax
import jax.numpy as jnp
import numpy as np
import optax

from t2t_jax.devices.sharding.rules import shardings_for
from t2t_jax.training.config import OptimizerConfig
from t2t_jax.training.optimizer import make_optimizer


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


def like(tree, mesh, *, rules=((".*", ()),)):
    """Describes `tree` as it shall lie on `mesh`."""
    return jax.tree.map(
        lambda x, place: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=place),
        tree,
        shardings_for(tree, mesh, rules=rules),
    )


def save(checkpoints, step, *kinds, bleu=None):
    meta = {"kinds": list(kinds)} | ({} if bleu is None else {"bleu": bleu})
    checkpoints.save(step, params=params_of(step), meta=meta)
    checkpoints.wait()
