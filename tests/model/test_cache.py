import dataclasses

import jax
import jax.numpy as jnp
import pytest

from t2t_jax.model.cache import empty_cache
from tests.model.tiny import TINY


def test_every_beam_of_every_layer_has_room():
    past = empty_cache(TINY, 2, num_beams=11, length=13)
    assert len(past) == 2
    assert all(layer.keys.shape == (2, 3, 11, 13, 5) for layer in past)
    assert all(layer.values.shape == (2, 3, 11, 13, 7) for layer in past)
    assert all((leaf == 0).all() for leaf in jax.tree.leaves(past))


def test_it_is_kept_in_the_compute_dtype():
    config = dataclasses.replace(TINY, compute_dtype="bfloat16")
    past = empty_cache(config, 2, num_beams=1, length=3)
    assert all(leaf.dtype == jnp.bfloat16 for leaf in jax.tree.leaves(past))


def test_it_cannot_be_longer_than_the_table_of_positions():
    config = dataclasses.replace(TINY, positions="learned", max_positions=3)
    with pytest.raises(ValueError, match="length=4 must be at most max_positions=3"):
        empty_cache(config, 2, num_beams=1, length=4)
