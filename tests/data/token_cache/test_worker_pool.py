import multiprocessing
import os
import signal
import sys
from contextlib import closing
from itertools import count

import numpy as np
import pytest

from t2t_jax.data.config import DataConfig
from t2t_jax.data.token_cache.encoder import Chunk, PairEncoder
from t2t_jax.data.token_cache.worker_pool import encode_chunks
from t2t_jax.errors import UnavailableError
from tests.data.conftest import ENGLISH, GERMAN, sentences
from tests.docs.commands import run
from tests.waiting import wait_for


@pytest.fixture
def encoder(vocabulary):
    return PairEncoder((vocabulary.model,) * 2, DataConfig(max_length=61), "<u2")


def chunk(number):
    size = 1 + number % 5 * 20  # chunks of unlike size end out of order
    return Chunk(
        0,
        1 + 100 * number,
        sentences(ENGLISH, size, seed=number),
        sentences(GERMAN, size, seed=-number),
    )


def test_several_processes_do_in_order_what_one_does(encoder):
    chunks = [chunk(number) for number in range(31)]
    with closing(encode_chunks(iter(chunks), encoder, workers=2)) as found:
        results = list(found)
    assert [one.first for one, _ in results] == [one.first for one in chunks]
    for given, encoded in results:
        alone = encoder.encode(given)
        assert np.array_equal(encoded.reasons, alone.reasons)
        for side, other in zip(encoded[3:6], alone[3:6], strict=True):
            assert all(map(np.array_equal, side, other))
    assert multiprocessing.active_children() == []


def test_reading_keeps_only_a_little_ahead(encoder):
    read = 0

    def endless():
        nonlocal read
        for number in count():
            read += 1
            yield chunk(number)

    with closing(encode_chunks(endless(), encoder, workers=2)) as results:
        for number, _ in enumerate(results, start=1):
            assert read <= number + 10
            if number == 40:
                break


def test_a_process_that_dies_is_an_error_and_no_hang(encoder):
    def chunks():
        for number in count():
            if number == 20:
                os.kill(multiprocessing.active_children()[0].pid, signal.SIGKILL)
            yield chunk(number)

    died = pytest.raises(UnavailableError, match=r"died.*config\.data\.workers")
    with closing(encode_chunks(chunks(), encoder, workers=2)) as results, died:
        for _ in results:
            pass
    wait_for(lambda: not multiprocessing.active_children())


def test_a_script_without_a_main_guard_is_not_run_by_processes(vocabulary, tmp_path):
    (tmp_path / "vocab.model").write_bytes(vocabulary.model)
    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\n"
        "from t2t_jax.data.config import DataConfig\n"
        "from t2t_jax.data.token_cache.encoder import PairEncoder\n"
        "from t2t_jax.data.token_cache.encoder import Chunk\n"
        "from t2t_jax.data.token_cache.worker_pool import encode_chunks\n"
        "print('script runs', flush=True)\n"
        f"model = Path({str(tmp_path / 'vocab.model')!r}).read_bytes()\n"
        "encoder = PairEncoder((model, model), DataConfig(), '<u2')\n"
        "chunks = [Chunk(0, n, ['a'], ['b']) for n in range(1, 12)]\n"
        "found = list(encode_chunks(iter(chunks), encoder, workers=2))\n"
        "print(len(found), 'chunks')\n"
    )
    # Seconds: against waiting for processes that never begin.
    done = run([sys.executable, script], tmp_path, seconds=60)
    assert done.stdout == "script runs\n11 chunks\n"
