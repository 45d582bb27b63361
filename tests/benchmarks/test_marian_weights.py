"""Marian is refused what it has no place for, before PyTorch builds anything.

Seen to fail: without the check of the norms' place, of tying, of positions, or of
either depth and of other toolkits' keys in `_require_marian`.
"""

import importlib.util

import pytest

from t2t_jax.model.config import TransformerConfig

if not all(map(importlib.util.find_spec, ("torch", "transformers"))):
    pytest.skip("its packages are in the extra `bench`", allow_module_level=True)

from marian_weights import marian_with


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"norm_position": "pre"}, "norm_position='post', and it is 'pre'"),
        ({"positions": "learned"}, "positions='sinusoidal', and it is 'learned'"),
        ({"tying": "none"}, "tying='all', and it is 'none'"),
        ({"d_k": 16}, "d_k=64.0, and it is 16"),
        ({"d_v": 32}, "d_v=64.0, and it is 32"),
        ({"start": "zero"}, "start='bos', and it is 'zero'"),
        ({"activation": "swish"}, "activation='relu', and it is 'swish'"),
        ({"output_bias": True}, "output_bias=False, and it is True"),
        (
            {"position_rates": "tensor2tensor"},
            "position_rates='paper', and it is 'tensor2tensor'",
        ),
    ],
)
def test_a_model_that_marian_is_not_is_refused(change, told):
    with pytest.raises(ValueError, match=f"Marian needs model.{told}"):
        marian_with(TransformerConfig(**change), {})
