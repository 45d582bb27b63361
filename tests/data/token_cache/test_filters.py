import numpy as np
import pytest

from t2t_jax.data.config import DataConfig
from t2t_jax.data.token_cache.filters import (
    KEPT,
    REASONS,
    DuplicateFilter,
    drop_reasons,
    mark_duplicates,
    pair_hashes,
    text_hashes,
)


def reasons(*pairs, copies=(), **keys):
    """Judges pairs of lengths, and names the reasons; None where a pair is kept."""
    source, target = np.array(pairs).T
    same = np.isin(np.arange(len(pairs)), copies)
    config = DataConfig(**{"max_length": 13, **keys})
    found = drop_reasons(source, target, copies=same, config=config)
    return [None if reason == KEPT else REASONS[reason] for reason in found]


def test_only_empty_and_too_long_pairs_are_dropped_unasked():
    judged = reasons((1, 5), (5, 1), (14, 2), (2, 14), (13, 2), (3, 3), copies=[5])
    assert judged == ["empty", "empty", "too_long", "too_long", None, None]


def test_a_ratio_is_of_subwords_without_eos():
    # 6 to 2 is three times as long, 7 to 2 more than that.
    assert reasons((7, 3), (3, 8), (8, 3), max_length_ratio=3.0) == [
        None,
        "ratio",
        "ratio",
    ]


def test_blanks_around_a_line_do_not_change_its_hash_and_those_inside_do():
    one, two, three = text_hashes(["a cat", "\ta cat \u2003", "a  cat"])
    assert one == two
    assert one != three


def test_pair_hashes_tell_pairs_apart_that_share_a_side():
    source = text_hashes(["a", "a", "b", "x"])
    target = text_hashes(["x", "y", "x", "a"])
    assert len(set(pair_hashes(source, target).tolist())) == 4


def test_what_was_seen_equals_a_set():
    chance = np.random.default_rng(5)
    seen, known = DuplicateFilter(), set()
    for size in chance.integers(0, 97, 41):
        hashes = chance.integers(0, 997, size).astype(np.uint64)
        expected = []
        for value in hashes.tolist():
            expected.append(value not in known)
            known.add(value)
        assert seen.is_new(hashes).tolist() == expected
    assert len(known) > 500


def test_hashes_take_eight_bytes_each_and_lie_in_few_runs():
    seen = DuplicateFilter()
    for start in range(0, 50_000, 7):
        seen.is_new(np.arange(start, start + 7, dtype=np.uint64))
    runs = seen._runs
    assert sum(run.nbytes for run in runs) == 8 * (start + 7)
    assert len(runs) <= np.log2(start)


@pytest.mark.parametrize("at_once", [True, False])
def test_the_first_of_like_pairs_is_kept(at_once):
    seen = DuplicateFilter()
    found = np.array([KEPT, 1, KEPT, KEPT], np.int8)
    hashes = np.array([3, 5, 3], np.uint64)
    if at_once:
        marked = mark_duplicates(found, hashes, seen)
        assert marked.tolist() == [KEPT, 1, KEPT, REASONS.index("duplicates")]
    else:
        mark_duplicates(found, hashes, seen)
        again = mark_duplicates(found, hashes, seen).tolist()
        assert again == [4, 1, 4, 4]
