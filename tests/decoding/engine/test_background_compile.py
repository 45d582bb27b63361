import threading
import time
from contextlib import closing

import numpy as np

from t2t_jax.decoding.engine.batching import SourceBatch
from t2t_jax.decoding.engine.run_batches import BackgroundCompiler


def compiler(compile_shape, shapes, *, cache_key):
    return closing(BackgroundCompiler(compile_shape, shapes, cache_key=cache_key))


def batch(*shape):
    return SourceBatch(np.zeros(shape, np.int32), ())


def wait_until(holds):
    deadline = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.001)


SHAPES = [(4, 64), (9, 32), (4, 64), (9, 32), (19, 16)]


def test_every_later_shape_is_compiled_once_and_the_first_is_left_alone():
    made = []
    with compiler(made.append, SHAPES, cache_key="once") as ahead:
        ahead.wait((4, 64))
        wait_until(lambda: len(made) == 2)
        ahead.wait((9, 32))
        ahead.wait((19, 16))
    assert made == [(9, 32), (19, 16)]
    with compiler(made.append, SHAPES, cache_key="once"):
        pass
    assert len(made) == 2
    with compiler(made.append, SHAPES[1:2], cache_key="another model") as ahead:
        ahead.wait((9, 32))
    assert len(made) == 2


def test_it_is_known_which_shapes_have_their_programs():
    made, unknown = [], []
    with compiler(made.append, SHAPES[:2], cache_key="known") as ahead:
        assert not ahead.is_compiled(batch(4, 64))
        ahead.wait((4, 64))  # It is for the caller to make.
        assert not ahead.is_compiled(batch(4, 64))
        ahead.run(lambda one: unknown.append(not ahead.is_compiled(one)), batch(4, 64))
        assert unknown == [True]
        assert ahead.is_compiled(batch(4, 64))
        wait_until(lambda: ahead.is_compiled(batch(9, 32)))
    assert made == [(9, 32)]
    with compiler(lambda _: None, [], cache_key="known, but another") as ahead:
        assert not ahead.is_compiled(batch(4, 64))


def test_who_needs_a_shape_waits_while_it_is_made_and_not_for_one_not_begun():
    began, may_end, made = threading.Event(), threading.Event(), []

    def make(shape):
        began.set()
        may_end.wait(10)
        made.append(shape)

    with compiler(make, SHAPES, cache_key="waiting") as ahead:
        assert began.wait(10)
        ahead.wait((19, 16))  # behind (9, 32): taken back at once
        assert made == []
        threading.Timer(0.1, may_end.set).start()
        ahead.wait((9, 32))
        assert made == [(9, 32)]


def test_what_goes_wrong_ahead_is_left_to_who_needs_it():
    tried = []

    def fail(shape):
        tried.append(shape)
        raise MemoryError

    for times in (1, 2):  # It is not taken for compiled.
        with compiler(fail, SHAPES[:2], cache_key="failing") as ahead:
            wait_until(lambda times=times: len(tried) == times)
            ahead.wait((9, 32))
    assert tried == [(9, 32)] * 2
