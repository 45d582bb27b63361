import numpy as np

from t2t_jax.data.token_cache.encoder import Encoded, EncodedSentences
from t2t_jax.data.token_cache.filters import KEPT, REASONS
from t2t_jax.data.token_cache.statistics import examples_of, first_examples
from t2t_jax.data.token_cache.worker_pool import Chunk

EMPTY = REASONS.index("empty")
SIDE = EncodedSentences(*(np.zeros(0, np.uint64),) * 3)


def examples(first, *sources, reasons=()):
    chunk = Chunk(0, first, list(sources), ["ziel"] * len(sources))
    reasons = np.array(reasons or [EMPTY] * len(sources), np.int8)
    return examples_of(chunk, Encoded(reasons, SIDE, SIDE))


def test_examples_have_their_lines():
    found = examples(11, "", "a", "b", "\t", reasons=[EMPTY, KEPT, KEPT, EMPTY])
    assert found.pop("empty") == [
        {"line": 11, "source": "", "target": "ziel"},
        {"line": 14, "source": "\t", "target": "ziel"},
    ]
    assert not any(found.values())


def test_the_first_three_stay_truncated():
    first, second = examples(1, "", ""), examples(3, "", " " * 200)
    found = first_examples([first, second])
    assert [pair["line"] for pair in found["empty"]] == [1, 2, 3]
    assert len(second["empty"][1]["source"]) == 80
