"""What is read before the key costs no more than its size, and never a status 500."""

import asyncio
import gc
import sys
import tracemalloc
from contextlib import suppress

import pytest

from t2t_jax.serving.requests import RequestError, parse_body
from tests.serving import fuzz
from tests.serving.fake_server import fake_server

REFUSED = {0, 400, 401, 403, 404, 405, 408, 413, 415, 421}


def test_mutated_requests_are_refused():
    with fake_server("0", {"api_keys": ["secret"]}) as (process, port):
        statuses = asyncio.run(fuzz.fuzz(port, 400, seed=11))
        assert process.poll() is None
        assert asyncio.run(fuzz.answer(port, fuzz.HEALTH)) == 200
    assert set(statuses) <= REFUSED
    # Connections that end within a request, or are closed before all of it was sent.
    assert statuses[0] < 200


def parsed(number, size):
    """Returns the calls and the memory, in bytes, that it takes to parse a body."""
    kind, body = fuzz.hostile_body(number, size)
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    tracemalloc.start()
    gc.disable()  # what others do at a collection would be counted
    sys.setprofile(count)
    try:
        with suppress(RequestError):  # and nothing else
            parse_body(kind, body, b"")
    finally:
        sys.setprofile(None)
        gc.enable()
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return calls, memory


@pytest.mark.parametrize("number", range(fuzz.COUNT))
def test_parsing_grows_with_the_body_alone(number):
    calls, _ = parsed(number, 20_000)
    more_calls, memory = parsed(number, 200_000)
    assert more_calls <= 12 * calls + 100
    assert memory <= 60 * 200_000


@pytest.mark.parametrize("value", ["(" * 15_000, "a/b" + "; a=" * 4_000, '"' * 15_000])
def test_a_content_type_of_any_kind_is_refused(value):
    with pytest.raises(RequestError):
        parse_body(value, b"a", b"")
