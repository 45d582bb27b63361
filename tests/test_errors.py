import pytest

from t2t_jax import errors
from t2t_jax.errors import UserError, short_repr


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("UserError", 64),
        ("DataError", 65),
        ("InputMissingError", 66),
        ("OutputError", 73),
        ("StoppedError", 75),
        ("DivergedError", 76),
        ("ConfigError", 78),
    ],
)
def test_each_kind_of_mistake_has_its_exit_code(name, code):
    error = getattr(errors, name)("what to change")
    assert error.exit_code == code
    assert isinstance(error, UserError)
    assert isinstance(error, ValueError)


def test_a_value_of_a_file_is_short_in_a_message():
    for value in (1 << 40_000, [[1 << 40_000]], [[]] * 1_000_000):
        assert 0 < len(short_repr(value)) <= 100
