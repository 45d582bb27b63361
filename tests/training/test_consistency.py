"""The step with SimCut and with R-Drop: two passes, on any number of devices.

Seen to fail: with the embeddings cut off in both passes, with the same dropout key for
both, with masks of the row's number in the batch of a device, with R-Drop's weight not
halved, and with bos instead of eos spared in the source.
"""

import dataclasses
from functools import cache, partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose

from t2t_jax.config import Config
from t2t_jax.errors import ConfigError
from t2t_jax.functional.losses import label_smoothed_nll
from t2t_jax.model.config import TransformerConfig
from t2t_jax.model.embedding import TokenCutoff
from t2t_jax.model.rnn.rnn import RNN
from t2t_jax.model.transformer import Transformer
from t2t_jax.training.config import TrainingConfig
from t2t_jax.training.loss import forward_loss, training_loss
from tests.tiers import soak
from tests.training.copy_task import BOS, EOS, KEY, V, batch_of, drawn_pairs, packed
from tests.training.test_accumulation import R_DROP, SIMCUT
from tests.training.test_step import RECURRENT

BATCH = batch_of(drawn_pairs(3, 5))
CONFIG = TransformerConfig(
    vocab_size=V, num_layers=1, d_model=8, d_ff=8, num_heads=2, d_k=4, d_v=4
)
MODULES = [Transformer(CONFIG), RNN(RECURRENT)]
BOTH = pytest.mark.parametrize("module", MODULES, ids=lambda m: type(m).__name__)


@cache
def params_of(module):
    return jax.jit(module.init)(KEY, BATCH.source, BATCH.target_inputs)["params"]


def logits(module, params, batch, *, key=KEY, **options):
    names = ("source", "target_inputs", "source_segments", "target_segments", "rows")
    options |= {name: getattr(batch, name) for name in names}
    drops = {"deterministic": False, "rngs": {"dropout": key}}
    return module.apply({"params": params}, **options, **drops)


def cut_off(module, params, batch):
    """Returns the logits, and for each side and token whether it was cut off."""
    found, state = jax.jit(
        partial(
            logits,
            module,
            mutable=["intermediates"],
            capture_intermediates=lambda m, _: isinstance(m, TokenCutoff),
        )
    )(params, batch)
    vectors = (
        state["intermediates"][f"{side}_cutoff"]["__call__"][0]
        for side in ("source", "target")
    )
    return found, [~np.asarray(x).any(-1) for x in vectors]


def spelt_out(module, params, training):
    """Computes the published loss from the logits of both passes."""
    cut = module.clone(cutoff=training.simcut_probability if training.simcut else 0.0)
    first = logits(module, params, BATCH)
    other = logits(cut, params, BATCH, key=jax.random.fold_in(KEY, 1))
    log_p, log_q = jax.nn.log_softmax(first), jax.nn.log_softmax(other)
    of_p, of_q = (
        label_smoothed_nll(z, BATCH.target_outputs, label_smoothing=0.1)[0]
        for z in (first, other)
    )
    kl_pq = (jnp.exp(log_p) * (log_p - log_q)).sum(-1)
    kl_qp = (jnp.exp(log_q) * (log_q - log_p)).sum(-1)
    terms = of_p + 3.0 * kl_pq
    if training.r_drop:
        terms = (of_p + of_q + 5.0 * (kl_pq + kl_qp) / 2) / 2
    return jnp.sum(terms, where=BATCH.target_segments > 0)


@pytest.mark.parametrize(
    ("module", "training"),
    [*product(MODULES, [SIMCUT]), (MODULES[0], R_DROP), soak(MODULES[1], R_DROP)],
)
def test_loss_and_gradient_are_those_of_two_passes_spelt_out(module, training):
    params = params_of(module)

    def loss(params, chunks):
        config = dataclasses.replace(training, loss_chunks=chunks)
        return training_loss(module, params, BATCH, config=config, dropout_key=KEY)

    def both(params):
        expected = jax.value_and_grad(partial(spelt_out, module, training=training))
        found = jax.value_and_grad(loss, has_aux=True)
        plain = forward_loss(
            module, params, BATCH, label_smoothing=0.1, dropout_key=KEY
        )
        return expected(params), found(params, 3), plain

    (wanted, slope), ((found, sums), gradient), plain = jax.jit(both)(params)
    assert_allclose(found, wanted, rtol=1e-5)  # float32
    # float32 sums over some 30 tokens in another order
    jax.tree.map(partial(assert_allclose, rtol=1e-4, atol=2e-5), gradient, slope)
    # The first pass is the pass without these keys.
    assert_allclose(sums.nll, plain.nll, rtol=1e-6)
    assert sums.correct == plain.correct
    assert sums[3:6] == plain[3:6]
    assert plain.consistency is None
    assert sums.consistency > 0.01
    if training.simcut:
        assert_allclose(sums.loss, plain.loss, rtol=1e-6)


@BOTH
def test_the_second_pass_sees_zeros_in_place_of_some_tokens_of_both_sides(module):
    """Tokens whose vector is zero do the same as those that are cut off."""
    nothing = V - 1  # an id that does not occur
    assert nothing not in BATCH.source
    params = jax.tree.map(jnp.copy, params_of(module))
    params["embedding"]["table"] = params["embedding"]["table"].at[nothing].set(0.0)
    found, is_cut = cut_off(module.clone(cutoff=0.3), params, BATCH)
    sides = [BATCH.source, BATCH.target_inputs]
    for tokens, spared, cut in zip(sides, (EOS, BOS), is_cut, strict=True):
        assert not cut[tokens == spared].any()
        assert 0.1 < cut[tokens > 3].mean() < 0.6  # of some 30 tokens
    source, target = (
        np.where(cut, nothing, tokens)
        for tokens, cut in zip(sides, is_cut, strict=True)
    )
    assert ((source == nothing).any(0) != (target == nothing).any(0)).any()
    masked = BATCH._replace(source=source, target_inputs=target)
    assert_allclose(found, jax.jit(partial(logits, module))(params, masked), atol=1e-6)


def test_padding_and_layers_computed_twice_change_nothing():
    def sums_of(config, **padding):
        batch, of = batch_of(drawn_pairs(3, 5), **padding), Transformer(config)
        return jax.jit(partial(training_loss, of, config=SIMCUT, dropout_key=KEY))(
            params_of(MODULES[0]), batch
        )

    loss, sums = sums_of(CONFIG)
    for other, more in (
        sums_of(CONFIG, rows=11, length=17),
        sums_of(dataclasses.replace(CONFIG, remat=True)),
    ):
        assert_allclose(other, loss, rtol=1e-6)  # float32
        assert more[2:5] == sums[2:5]
        assert_allclose(more.consistency, sums.consistency, rtol=1e-5)


def test_packed_pairs_are_cut_off_each_but_for_its_first_and_last_token():
    row = packed(drawn_pairs(4, 3, longest=5), length=19)
    _, is_cut = cut_off(Transformer(CONFIG, cutoff=0.9), params_of(MODULES[0]), row)
    sides = (row.source, EOS), (row.target_inputs, BOS)
    for (tokens, spared), cut in zip(sides, is_cut, strict=True):
        kept = ~cut & (tokens > 0)
        assert kept[tokens == spared].sum() == 3
        assert kept.sum() < 3 + 6  # of some 10 more, one in ten


def test_r_drop_of_a_model_without_dropout_is_refused():
    still, rnn = (dataclasses.replace(c, dropout=0.0) for c in (CONFIG, RECURRENT))
    no_cut = TrainingConfig(simcut=1.0, simcut_probability=0.0)
    with pytest.raises(ConfigError, match=r"are the same with model\.dropout=0"):
        Config(training=R_DROP, model=still)
    with pytest.raises(ConfigError, match=r"are the same with rnn\.dropout=0"):
        Config(architecture="rnn", training=no_cut, rnn=rnn)
    Config(training=SIMCUT, model=still)
    Config(training=R_DROP, model=dataclasses.replace(still, attention_dropout=0.1))


def test_keys_that_cannot_be_are_refused():
    for values, problem in (
        ({"simcut": -1.0}, r"training\.simcut=-1\.0 must be 0"),
        ({"simcut": 3.0, "r_drop": 5.0}, r"simcut=3 and training\.r_drop=5 both use"),
        ({"simcut_probability": 0.1}, r"no effect with training\.simcut=0"),
    ):
        with pytest.raises(ConfigError, match=problem):
            TrainingConfig(**values)
