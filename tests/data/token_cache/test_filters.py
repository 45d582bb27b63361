import numpy as np

from t2t_jax.data.token_cache.filters import (
    DuplicateFilter,
    pair_hashes,
    text_hashes,
)


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
