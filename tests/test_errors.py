import pytest

from t2t_jax import errors
from t2t_jax.errors import ConfigError, DataError, ErrorCollector, UserError, short_repr


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


def test_problems_are_collected_in_order_and_raised_together():
    problems = ErrorCollector()
    problems.check(True, "not this one")
    problems.raise_if_any()
    problems.check(False, "first")
    problems.check(False, "second")
    with pytest.raises(ConfigError) as info:
        problems.raise_if_any()
    assert info.value.problems == ("first", "second")
    assert str(info.value) == "first\nsecond"
    with pytest.raises(DataError, match="first"):
        problems.raise_if_any(DataError)


def test_failed_calls_are_collected_and_raised_as_the_first_error():
    errors = ErrorCollector()

    def fail(message):
        raise DataError([message, "common"], unlisted=3)

    assert errors.try_call(fail, "first") is None
    assert errors.try_call(fail, None) is None  # skipped
    assert errors.try_call(str, 7) == "7"
    assert errors.has_errors
    errors.try_call(fail, "second")
    with pytest.raises(DataError) as info:
        errors.raise_if_any()
    assert info.value.problems == ("first", "common", "second")
    assert info.value.unlisted == 6


def test_a_value_of_a_file_is_short_in_a_message():
    for value in (1 << 40_000, [[1 << 40_000]], [[]] * 1_000_000):
        assert 0 < len(short_repr(value)) <= 100
