"""Parameters are declared with their shapes; what exists is not initialized again.

Seen to fail: with `module.param` alone; without the comparison of shapes.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import linen as nn

from t2t_jax.model.initializers import declare, glorot_uniform, normal

_CALLS = []


def _counted(key, shape, dtype):
    _CALLS.append(shape)
    return jax.random.normal(key, shape, dtype)


class _Owner(nn.Module):
    shape: tuple[int, ...]

    def setup(self):
        self.kernel = declare(self, "kernel", _counted, self.shape)

    def __call__(self, x):
        return x @ self.kernel


def test_a_parameter_that_exists_is_not_initialized_again():
    _CALLS.clear()
    x = jnp.ones((2, 3))
    variables = _Owner((3, 5)).init(jax.random.key(7), x)
    kernel = variables["params"]["kernel"]
    assert kernel.dtype == jnp.float32
    assert _CALLS == [(3, 5)]
    y = jax.jit(_Owner((3, 5)).apply)(variables, x)
    np.testing.assert_allclose(y, x @ kernel, rtol=1e-6)  # float32 sum over 3 terms
    assert _CALLS == [(3, 5)]


def test_a_value_of_another_shape_is_refused():
    variables = {"params": {"kernel": np.ones((3, 7), np.float32)}}
    with pytest.raises(
        ValueError, match=r"params/kernel must .*\(3, 5\), and has \(3, 7\)"
    ):
        _Owner((3, 5)).apply(variables, jnp.ones((2, 3)))


@pytest.mark.parametrize("initializer", [glorot_uniform(), normal(0.5)])
def test_initial_values_are_those_of_flax(initializer):
    class Declared(nn.Module):
        def setup(self):
            self.kernel = declare(self, "kernel", initializer, (3, 5))

        def __call__(self):
            return self.kernel

    class Param(Declared):
        def setup(self):
            self.kernel = self.param("kernel", initializer, (3, 5), jnp.float32)

    key = jax.random.key(7)
    ours, flax = Declared().init(key), Param().init(key)
    jax.tree.map(np.testing.assert_array_equal, ours, flax)
