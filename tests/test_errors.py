from t2t_jax.errors import UserError, short_repr


def test_each_kind_of_mistake_has_its_exit_code():
    codes = {kind.__name__: kind.exit_code for kind in UserError.__subclasses__()}
    assert codes | {"UserError": UserError.exit_code} == {
        **{"UserError": 64, "DataError": 65, "InputMissingError": 66},
        **{"UnavailableError": 69, "OutputError": 73, "StorageError": 74},
        **{"StoppedError": 75, "DivergedError": 76, "ConfigError": 78},
    }


def test_a_value_of_a_file_is_short_in_a_message():
    for value in (1 << 40_000, [[1 << 40_000]], [[]] * 1_000_000):
        assert 0 < len(short_repr(value)) <= 100
