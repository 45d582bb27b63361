"""The order of an epoch: which pairs it holds, and what comes after what."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from t2t_jax.data.packing import Integers


def epoch_order(
    part_pairs: Sequence[int], weights: Sequence[float], *, chance: np.random.Generator
) -> Integers:
    """Draws and shuffles the pairs of one epoch.

    A part of weight w stands in the epoch floor(w) times as a whole, and a share of
    w - floor(w) of its pairs, drawn anew in each epoch, stands there once more. So the
    share of no pair is lost: over many epochs each is seen w times an epoch.

    Args:
      part_pairs: number of pairs in each part of the corpus, one after the other.
      weights: how often each pair of a part is seen in an epoch, on average; at least
        0. Weights of 1 take no chance: the epoch is a permutation of the corpus.
      chance: the epoch's own.

    Returns:
      Numbers of pairs in the corpus, int32.

    Raises:
      ValueError: there are not as many weights as parts.

    Example:
      >>> order = epoch_order((3, 1), (1, 2.0), chance=np.random.default_rng(0))
      >>> sorted(order.tolist())
      [0, 1, 2, 3, 3]
    """
    if len(part_pairs) != len(weights):
        raise ValueError(
            f"weights={tuple(weights)} must be one for each of {len(part_pairs)} "
            "parts. Give as many weights as part_pairs."
        )
    drawn = [np.zeros(0, np.int32)]
    first = 0
    for count, weight in zip(part_pairs, weights, strict=True):
        pairs = np.arange(first, first + count, dtype=np.int32)
        times = int(weight)
        drawn += [pairs] * times
        if weight > times:
            # Rounded by chance: rounding to nearest would never show a pair of a part
            # whose share is less than half a pair.
            number = int((weight - times) * count + chance.random())
            drawn.append(chance.permutation(pairs)[:number])
        first += count
    order = np.concatenate(drawn)
    chance.shuffle(order)  # in place: of 36 million each copy is noticed
    return order
