import pytest

from t2t_jax.devices import fault_injection
from t2t_jax.devices.fault_injection import parse
from t2t_jax.errors import UserError


@pytest.mark.parametrize(
    "value", ["kill", "kil@3", "kill@x", "kill_sleeping@3", "kill@3-5", "nan@3:1"]
)
def test_a_misspelt_fault_is_refused(value):
    with pytest.raises(UserError, match=r"T2T_JAX_FAULT=.* must be kind@step"):
        parse({fault_injection.VARIABLE: value})
