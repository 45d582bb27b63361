import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from t2t_jax.cli.translation import job as windows_module
from t2t_jax.cli.translation.job import windows
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.engine.batching import max_batch_rows, source_batches
from t2t_jax.errors import DataError


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(windows_module, "_MAX_LINES", 3)
    monkeypatch.setattr(windows_module, "_MAX_CHARACTERS", 11)


@given(st.lists(st.text(max_size=13), max_size=13), st.integers(0, 5))
def test_windows_hold_all_lines_in_order_and_none_is_too_large(lines, first):
    prefixes = [f"p{line}" for line in lines]
    found = list(windows({"input": lines, "prefixes": prefixes}, first=first))
    assert [line for window in found for line in window.lines] == lines
    assert [one for window in found for one in window.prefixes] == prefixes
    number = first
    for window in found:
        assert window.first == number
        number += len(window.lines)
        assert 1 <= len(window.lines) <= 3
        assert len(window.lines) == 1 or sum(map(len, window.lines)) <= 11


def test_windows_grow_from_a_small_one(monkeypatch):
    monkeypatch.setattr(windows_module, "_MAX_LINES", 40)
    monkeypatch.setattr(windows_module, "_MAX_CHARACTERS", 1_000)
    found = list(windows({"input": ["a"] * 100}, smallest=2))
    assert [len(window.lines) for window in found] == [2, 8, 32, 40, 18]
    assert [window.first for window in found] == [0, 2, 10, 42, 82]


def test_small_windows_need_no_more_shapes_than_one_large_one(monkeypatch):
    monkeypatch.setattr(windows_module, "_MAX_LINES", 10_000)
    monkeypatch.setattr(windows_module, "_MAX_CHARACTERS", 4_000_000)
    config = DecodingConfig()
    lengths = np.random.default_rng(3).integers(1, 120, 20_000)
    sources = [[5] * length for length in lengths]

    def shapes(parts, **how):
        found = (source_batches(part, config, **how) for part in parts)
        return [batch.source_BxS.shape for batches in found for batch in batches]

    for devices in (1, 8):
        whole = shapes([sources], devices=devices, row_growth=2)
        found = windows({"input": sources}, smallest=max_batch_rows(config))
        parts = [window.lines for window in found]
        small = shapes(parts, devices=devices, row_growth=1 << 30)
        assert set(small) <= set(whole)
        slots = [np.prod(some, axis=1).sum() for some in (whole, small)]
        assert slots[1] < 1.1 * slots[0]


def test_no_more_is_read_than_a_window():
    endless = itertools.count()
    assert next(windows({"input": map(str, endless)})).lines == ["0", "1", "2"]
    assert next(endless) == 3


@pytest.mark.parametrize(("lines", "prefixes"), [(2, 1), (7, 6), (6, 7), (0, 1)])
def test_there_must_be_a_prefix_for_each_line(lines, prefixes):
    with pytest.raises(DataError, match="--prefixes must have as many lines as"):
        list(windows({"input": ["a"] * lines, "prefixes": ["b"] * prefixes}))
