"""How a beam is divided among banks, beside the definition by counting."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_jax.decoding.search.continuations import divide_among_banks, order

SCORES = st.one_of(st.just(-np.inf), st.integers(-9, -1).map(float))
CANDIDATES = st.lists(st.tuples(SCORES, st.integers(0, 4)), min_size=1, max_size=23)


def counted(totals, banks, count):
    """The best of each bank by counting the better ones of the same bank."""

    def key(index):
        before = [
            other
            for other, bank in enumerate(banks)
            if bank == banks[index]
            and (-totals[other], other) < (-totals[index], index)
        ]
        is_none = totals[index] == -np.inf
        return (len(totals) if is_none else len(before), -banks[index], index)

    return sorted(range(len(totals)), key=key)[:count]


@given(CANDIDATES, st.integers(1, 23))
def test_each_bank_in_turn_as_counted(candidates, count):
    totals, banks = map(list, zip(*candidates, strict=True))
    found = divide_among_banks(jnp.array([totals]), jnp.array([banks]), count=count)
    assert found[0].tolist() == counted(totals, banks, count)


@pytest.mark.parametrize("size", [64, 128])
def test_memory_grows_as_the_candidates(size):
    shapes = [
        jax.ShapeDtypeStruct((1, size), kind) for kind in (jnp.float32, jnp.int32)
    ]
    program = jax.make_jaxpr(lambda *x: divide_among_banks(*x, count=4))(*shapes)
    largest = max(
        int(np.prod(var.aval.shape)) for eqn in program.eqns for var in eqn.outvars
    )
    assert largest == size


def test_an_order_is_by_bank_then_score_and_what_is_none_comes_last():
    scores = jnp.array([[-1.0, -jnp.inf, -3.0, -2.0, -4.0]])
    assert order(scores, jnp.array([[0, 9, 1, 1, 3]])).tolist() == [[4, 3, 2, 0, 1]]
