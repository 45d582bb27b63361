from types import SimpleNamespace

import jax
import jax.numpy as jnp

from t2t_jax.sharding.mesh import make_mesh
from t2t_jax.training.compiled_step import bytes_needed, device_memory_limit


def mesh_of(*statistics):
    devices = [SimpleNamespace(memory_stats=lambda s=s: s) for s in statistics]
    return SimpleNamespace(local_devices=devices)


def test_what_is_needed_at_once_counts_a_donated_argument_once():
    x = jax.ShapeDtypeStruct((1_000,), jnp.float32)

    def double(x):
        return 2 * x

    plain = jax.jit(double).lower(x).compile()
    donated = jax.jit(double, donate_argnums=0).lower(x).compile()
    assert bytes_needed(plain) >= 8_000
    assert 4_000 <= bytes_needed(donated) < 8_000


def test_the_smallest_device_decides_and_some_of_it_is_kept_free():
    mesh = mesh_of({"bytes_limit": 2_000}, {"bytes_limit": 1_000})
    assert 900 <= device_memory_limit(mesh) < 1_000


def test_a_device_that_does_not_tell_has_no_limit_that_is_known():
    assert device_memory_limit(mesh_of(None, {"bytes_limit": 5})) == 0
    assert device_memory_limit(make_mesh()) == 0  # CPUs
