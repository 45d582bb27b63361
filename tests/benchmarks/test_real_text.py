"""What a peer is fed with holds each pair once, in as few slots as sorting allows.

Seen to fail: with `>=` for `>` in the rule of `sorted_batches`, with the length of the
pair before instead of that of the pair added, without the shuffling of the batches, and
with padding in front of a sentence.
"""

from itertools import pairwise

import numpy as np
import pytest
from real_text import padded, shifted_right, sorted_batches

from t2t_jax.data.token_cache.token_cache import TokenSide

TOKENS = 97


@pytest.fixture(params=[0, 1, 2])
def lengths(request):
    return np.random.default_rng(request.param).integers(1, 41, (2, 523))


def batches_of(lengths, seed=0, tokens=TOKENS):
    chance = np.random.default_rng(seed)
    return list(sorted_batches(*lengths, tokens=tokens, chance=chance))


def test_every_pair_is_in_exactly_one_batch(lengths):
    pairs = np.concatenate(batches_of(lengths))
    assert sorted(pairs.tolist()) == list(range(523))


def test_no_batch_has_more_slots_than_it_may(lengths):
    slots = [len(batch) * lengths[:, batch].max() for batch in batches_of(lengths)]
    assert max(slots) <= TOKENS


def test_the_next_pair_would_not_have_fitted(lengths):
    longest = lengths.max(axis=0)
    spans = [
        (longest[batch].min(), longest[batch].max(), -len(batch))
        for batch in batches_of(lengths)
    ]
    for (_, last, size), (first, _, _) in pairwise(sorted(spans)):
        assert last <= first
        assert (1 - size) * first > TOKENS


def test_a_batch_that_is_exactly_full_is_allowed():
    (batch,) = batches_of(np.full((2, 4), 6), tokens=24)
    assert len(batch) == 4


def test_batches_do_not_come_by_length_and_another_epoch_is_another_order(lengths):
    chance = np.random.default_rng(0)
    epochs = [
        [
            int(lengths[:, batch].max())
            for batch in sorted_batches(*lengths, tokens=TOKENS, chance=chance)
        ]
        for _ in range(2)
    ]
    assert epochs[0] != sorted(epochs[0])
    assert epochs[0] != epochs[1]


def test_rows_are_as_long_as_the_longest_sentence_and_end_in_padding():
    side = TokenSide(np.array([9, 2, 8, 7, 6, 2, 2], np.uint16), np.array([0, 2, 6, 7]))
    assert padded(side, np.array([1, 2, 0])).tolist() == [
        [8, 7, 6, 2],
        [2, 0, 0, 0],
        [9, 2, 0, 0],
    ]
    assert padded(side, np.array([2, 0])).tolist() == [[2, 0], [9, 2]]


def test_the_decoder_reads_bos_and_all_but_the_last():
    outputs = np.array([[8, 7, 2], [9, 2, 0]])
    assert shifted_right(outputs).tolist() == [[1, 8, 7], [1, 9, 2]]
    assert outputs.tolist() == [[8, 7, 2], [9, 2, 0]]
