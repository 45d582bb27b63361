"""The peers do our work: as many parameters, the same tokens; needs torch.

Seen to fail: without the identities for the dropout that the paper has not, without the
zero of either attention, without the mask of padding, and without `ignore_index`.
"""

import dataclasses
import importlib.util

import numpy as np
import pytest

from t2t_jax.model.config import TransformerConfig
from t2t_jax.model.counting import count_parameters

if not importlib.util.find_spec("torch"):
    pytest.skip("torch is in the extra `bench`", allow_module_level=True)

import peers_torch
import torch
from contest import Work
from peer_networks import NETWORKS

CONFIG = TransformerConfig(
    vocab_size=31, num_layers=2, d_model=24, d_ff=40, num_heads=2, d_k=12, d_v=12
)
NAMES = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            name == "hf_marian" and not importlib.util.find_spec("transformers"),
            reason="transformers is in the extra `bench`",
        ),
    )
    for name in NETWORKS
]


def network(name, *, dropout=CONFIG.dropout, **keys):
    torch.manual_seed(0)
    config = dataclasses.replace(CONFIG, dropout=dropout)
    return NETWORKS[name](config, **keys)


def loss_of(step):
    with torch.no_grad():
        return float(step._trainer._forward(*step._batch))


@pytest.mark.parametrize("name", NAMES)
def test_it_has_our_parameters_and_biases_of_its_projections(name):
    found = sum(
        p.numel()
        for p in network(name, has_padding=False).parameters()
        if p.requires_grad
    )
    biases = 3 * CONFIG.num_layers * 4 * CONFIG.d_model
    assert found == count_parameters(CONFIG).total + biases


@pytest.mark.parametrize("name", NAMES)
def test_padding_does_not_change_what_it_says(name):
    model = network(name, dropout=0.0, has_padding=True)
    random = np.random.default_rng(0)
    source = torch.from_numpy(random.integers(4, 31, (3, 5)))
    inputs = torch.from_numpy(random.integers(4, 31, (3, 7)))
    wider = (
        torch.nn.functional.pad(source, (0, 2)),
        torch.nn.functional.pad(inputs, (0, 3)),
    )
    with torch.no_grad():
        expected, found = model(source, inputs), model(*wider)[:, :7]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_no_word_sees_those_behind_it(name):
    model = network(name, dropout=0.0, has_padding=False)
    random = np.random.default_rng(0)
    source = torch.from_numpy(random.integers(4, 31, (2, 5)))
    inputs = torch.from_numpy(random.integers(4, 31, (2, 7)))
    other = inputs.clone()
    other[:, 4:] = 3
    with torch.no_grad():
        first, second = model(source, inputs), model(source, other)
    torch.testing.assert_close(first[:, :4], second[:, :4])
    assert not torch.allclose(first[:, 4:], second[:, 4:])


@pytest.mark.parametrize("name", NAMES)
def test_nothing_else_is_dropped_out(name):
    source = inputs = torch.arange(4, 12).reshape(2, 4)
    for dropout, same in ((0.0, True), (0.1, False)):
        model = network(name, dropout=dropout, has_padding=False)
        with torch.no_grad():
            assert torch.equal(model(source, inputs), model(source, inputs)) == same


def test_the_rate_is_not_that_of_what_the_paper_does_not_drop_out():
    modules = list(network("torch", has_padding=False).modules())
    attentions = [m for m in modules if isinstance(m, torch.nn.MultiheadAttention)]
    assert {attention.dropout for attention in attentions} == {0.0}
    # Of a batch with its positions, and behind each sub-layer: 2 in an encoder's
    # layer, 3 in a decoder's.
    dropouts = [m for m in modules if isinstance(m, torch.nn.Dropout)]
    assert len(dropouts) == 1 + (2 + 3) * CONFIG.num_layers


@pytest.mark.parametrize("name", NAMES)
def test_padding_is_not_learnt(name):
    config = dataclasses.replace(CONFIG, dropout=0.0)
    work = Work(config=config, device="cpu", rows=2, length=4, network=name)
    trainer = peers_torch._Trainer(work, has_padding=True)
    short = torch.arange(4, 12).reshape(2, 4)
    long = torch.nn.functional.pad(short, (0, 3))
    with torch.no_grad():
        expected, found = trainer._forward(*[short] * 3), trainer._forward(*[long] * 3)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_steps_make_the_loss_smaller(name):
    work = Work(config=CONFIG, device="cpu", rows=4, length=6, network=name)
    step = peers_torch.PeerStep(work)
    losses = [loss_of(step)]
    assert step.seconds(20) > 0
    losses.append(loss_of(step))
    assert losses[1] < losses[0]
