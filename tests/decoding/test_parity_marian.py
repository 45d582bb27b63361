"""With the same weights Hugging Face's Marian says what we say; extra `bench`.

What differs in transformers 5.23, read in `generation/utils.py`, and what is made of it
here:

- Sines and cosines stand in halves, projections have biases, layer normalisation has
  another epsilon: `marian_weights` sees to it.
- A length penalty divides by n^alpha: alpha is 0.
- Among the best 2W continuations only the first W may end: an eos of rank W + 1 to 2W
  is dropped, where ours is finished. So our best output is never the worse one, and the
  n-th best is never worse than theirs.
- `early_stopping="never"` with alpha 0 stops when no living hypothesis is better than
  the worst of W finished ones, which is our rule for the W best.
- What is at its limit without an eos counts as finished: here all ends before.
- Forbidden tokens cost -inf after the softmax, as ours do: the others get no more.

Seen to fail: without the order of the coordinates in `marian_weights`, with the epsilon
of PyTorch, with keys for queries, and, in `beam_step`, without the normaliser or with
the wrong parents.
"""

import importlib.util

import jax
import numpy as np
import pytest

if not all(map(importlib.util.find_spec, ("torch", "transformers"))):
    pytest.skip("its packages are in the extra `bench`", allow_module_level=True)

import torch
from marian_weights import marian_with

from t2t_jax.model.architectures import step_model
from t2t_jax.types import BOS, PAD
from tests.decoding.taught import (
    ROWS,
    TIE,
    SOURCES_BxS,
    require_equal_or_better,
    searched,
)
from tests.reference.greedy import greedy_search
from tests.reference.taught_model import (
    CONFIG,
    MODULE,
    ROOM,
    Output,
    log_probabilities,
    outputs_of,
    taught_params,
    words_of,
)


@pytest.fixture(scope="module")
def both():
    """Both models with the same weights."""
    params = taught_params(0)
    return params, marian_with(CONFIG, params)


def asked():
    ids = torch.from_numpy(SOURCES_BxS.astype(np.int64))
    return {"input_ids": ids, "attention_mask": (ids != PAD).long()}


def generate(network, **keys):
    with torch.inference_mode():
        return network.generate(
            **asked(),
            max_new_tokens=ROOM,
            do_sample=False,
            suppress_tokens=[PAD, BOS],
            return_dict_in_generate=True,
            output_scores=True,
            **keys,
        )


def test_logits_are_equal(both):
    params, network = both
    target_BxT = np.random.default_rng(0).integers(4, CONFIG.vocab_size, (ROWS, 7))
    ours = MODULE.apply({"params": params}, SOURCES_BxS, target_BxT)
    with torch.inference_mode():
        inputs = {**asked(), "decoder_input_ids": torch.from_numpy(target_BxT)}
        theirs = network(**inputs).logits
    assert np.abs(ours).max() > 5
    # float32 through two stacks of 2 layers.
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=1e-5, atol=5e-5)


def test_greedy_outputs_are_equal(both):
    params, network = both
    model = step_model(MODULE, params)
    ours = jax.jit(greedy_search, static_argnames=("max_extra_tokens", "max_length"))(
        model, SOURCES_BxS, max_extra_tokens=ROOM, max_length=ROOM
    )
    theirs = generate(network, num_beams=1).sequences[:, 1:].numpy()
    said = [words_of(row) for row in np.asarray(ours.tokens_BxT)]
    assert said == [words_of(row) for row in theirs]
    # Not all of them are a single word.
    assert len({len(words) for words in said}) > 3


@pytest.fixture(scope="module", params=[2, 4])
def found(both, request):
    """Our result, the best outputs of the peer, and its log-probabilities [B, W]."""
    params, network = both
    beams = request.param
    result = searched(step_model(MODULE, params), beams, n_best=beams)
    several = {"num_beams": beams, "num_return_sequences": beams}
    told = generate(network, length_penalty=0.0, early_stopping="never", **several)
    rows = told.sequences[::beams, 1:].numpy()
    logs = told.sequences_scores.numpy().reshape(ROWS, beams)
    pairs = zip(rows, logs[:, 0], strict=True)
    return result, [Output(words_of(row), float(log)) for row, log in pairs], logs


def test_each_gives_the_outputs_of_the_other_the_same_log_probability(both, found):
    for outputs in (outputs_of(found[0]), found[1]):
        tokens, told = zip(*outputs, strict=True)
        again = log_probabilities(both[0], SOURCES_BxS, tokens)
        np.testing.assert_allclose(told, again, atol=TIE)


def test_the_best_outputs_are_equal_or_ours_is_better(found):
    result, theirs, _ = found
    require_equal_or_better(outputs_of(result), theirs)


def test_no_rank_of_ours_is_worse_than_theirs(found):
    result, _, logs = found
    finished_BxW = np.asarray(result.finished_BxW)
    ours = np.asarray(result.log_probabilities_BxW)
    assert finished_BxW.mean() > 0.9
    assert (ours[finished_BxW] >= logs[finished_BxW] - TIE).all()
