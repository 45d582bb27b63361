from t2t_jax.errors import short_repr


def test_a_value_of_a_file_is_short_in_a_message():
    for value in (1 << 40_000, [[1 << 40_000]], [[]] * 1_000_000):
        assert 0 < len(short_repr(value)) <= 100
