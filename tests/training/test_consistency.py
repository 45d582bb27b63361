"""The step with SimCut and with R-Drop: two passes, on any number of devices.

Seen to fail: with the embeddings cut off in both passes, with the same dropout key for
both, with masks of the row's number in the batch of a device, with R-Drop's weight not
halved, with bos instead of eos spared in the source, and with zero times another sum
added to the loss of one pass.
"""

import dataclasses
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from numpy.testing import assert_allclose

from t2t_jax.config import Config
from t2t_jax.errors import ConfigError
from t2t_jax.functional.losses import label_smoothed_nll
from t2t_jax.model.config import RNNConfig, TransformerConfig
from t2t_jax.model.embedding import TokenCutoff
from t2t_jax.model.rnn.rnn import RNN
from t2t_jax.model.transformer import Transformer
from t2t_jax.sharding.mesh import make_mesh
from t2t_jax.training import step
from t2t_jax.training.config import TrainingConfig
from t2t_jax.training.loss import forward_loss, training_loss
from t2t_jax.training.state import init_state, state_shardings
from t2t_jax.training.step import lower_step, make_train_step
from tests.training.copy_task import BOS, EOS, KEY, V, batch_of, pair_of, sentences
from tests.training.test_accumulation import Step
from tests.training.test_step import packed

SIMCUT = TrainingConfig(simcut=3.0, simcut_probability=0.3)
R_DROP = TrainingConfig(r_drop=5.0)
BATCH = batch_of([pair_of(words) for words in sentences(3, 5)])
CONFIG = TransformerConfig(
    vocab_size=V, num_layers=1, d_model=8, d_ff=8, num_heads=2, d_k=4, d_v=4
)
RECURRENT = RNNConfig(vocab_size=V, num_layers=1, d_model=8, d_hidden=8, d_attention=8)
MODULES = [Transformer(CONFIG), RNN(RECURRENT)]
BOTH = pytest.mark.parametrize("module", MODULES, ids=lambda m: type(m).__name__)


def params_of(module):
    return jax.jit(module.init)(KEY, BATCH.source, BATCH.target_inputs)["params"]


def passes(module, params, training):
    """Returns the logits of both passes of `training_loss`, each by itself."""
    cut = module.clone(cutoff=training.simcut_probability if training.simcut else 0.0)
    keys = (KEY, jax.random.fold_in(KEY, 1))
    return [
        one.apply(
            {"params": params},
            BATCH.source,
            BATCH.target_inputs,
            source_segments=BATCH.source_segments,
            target_segments=BATCH.target_segments,
            rows=BATCH.rows,
            deterministic=False,
            rngs={"dropout": key},
        )
        for one, key in zip((module, cut), keys, strict=True)
    ]


def spelt_out(module, params, training):
    """Computes the published loss from the logits of both passes."""
    first, other = passes(module, params, training)
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


@BOTH
@pytest.mark.parametrize("training", [SIMCUT, R_DROP], ids=["simcut", "r_drop"])
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
    params = params_of(module)
    params["embedding"]["table"] = params["embedding"]["table"].at[nothing].set(0.0)
    cut = module.clone(cutoff=0.3)

    def logits(module, source, target_inputs, **options):
        return module.apply(
            {"params": params},
            source,
            target_inputs,
            deterministic=False,
            rngs={"dropout": KEY},
            source_segments=BATCH.source_segments,
            target_segments=BATCH.target_segments,
            **options,
        )

    found, state = jax.jit(
        partial(
            logits,
            cut,
            mutable=["intermediates"],
            capture_intermediates=lambda m, _: isinstance(m, TokenCutoff),
        )
    )(BATCH.source, BATCH.target_inputs)
    sides = {"source": (BATCH.source, EOS), "target": (BATCH.target_inputs, BOS)}
    masked = {}
    for side, (tokens, spared) in sides.items():
        (x,) = state["intermediates"][f"{side}_cutoff"]["__call__"]
        is_cut = ~np.asarray(x).any(-1)
        assert not is_cut[tokens == spared].any()
        words = is_cut[tokens > 3]
        assert 0.1 < words.mean() < 0.6  # of some 30 tokens
        masked[side] = np.where(is_cut, nothing, tokens)
    assert (masked["source"] == nothing).any(axis=0).tolist() != (
        (masked["target"] == nothing).any(axis=0).tolist()
    )
    expected = jax.jit(partial(logits, module))(masked["source"], masked["target"])
    assert_allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize(
    ("training", "changed"),
    [
        pytest.param(SIMCUT, {}, id="simcut-8"),
        pytest.param(
            SIMCUT,
            {"fsdp": 2, "tensor": 2, "micro_batches": 4, "loss_chunks": 2},
            id="simcut-2x2x2-in-parts",
        ),
        pytest.param(
            SIMCUT,
            {"devices": 1, "micro_batches": 4, "loss_chunks": 3},
            id="simcut-1-in-parts",
            marks=pytest.mark.soak,
        ),
        pytest.param(R_DROP, {"fsdp": 2, "micro_batches": 2}, id="r_drop-4x2-in-parts"),
    ],
)
def test_one_gradient_from_one_state_however_it_is_split(training, changed):
    parts = {k: changed.pop(k, 1) for k in ("micro_batches", "loss_chunks")}
    output, moments = Step(devices=1, training=training).first()
    found, found_moments = Step(
        training=dataclasses.replace(training, **parts), **changed
    ).first()
    for name in ("correct", "target_tokens", "source_tokens", "slots"):
        assert getattr(found.sums, name) == getattr(output.sums, name)
    for name in ("loss", "nll", "consistency"):
        assert_allclose(
            getattr(found.sums, name), getattr(output.sums, name), rtol=1e-5
        )
    assert_allclose(found.gradient_norm, output.gradient_norm, rtol=1e-5)
    # float32 sums over 100 tokens in another order; atol: where they cancel
    jax.tree.map(partial(assert_allclose, rtol=2e-5, atol=1e-7), found_moments, moments)


def sums_of(batch, training=SIMCUT, config=CONFIG):
    module = Transformer(config)
    found = jax.jit(
        lambda params: training_loss(
            module, params, batch, config=training, dropout_key=KEY
        )
    )(params_of(module))
    return jax.device_get(found)


def test_rows_and_slots_of_padding_change_nothing():
    pairs = [pair_of(words) for words in sentences(3, 5)]
    loss, sums = sums_of(batch_of(pairs))
    for batch in (batch_of(pairs, rows=11), batch_of(pairs, length=17)):
        other, more = sums_of(batch)
        assert_allclose(other, loss, rtol=1e-6)  # float32
        assert_allclose(more.consistency, sums.consistency, rtol=1e-5)


def test_packed_pairs_are_cut_off_each_but_for_its_first_and_last_token():
    pairs = [pair_of(words) for words in sentences(4, 3, longest=5)]
    row = packed(pairs, length=19)
    _, state = Transformer(CONFIG, cutoff=0.9).apply(
        {"params": params_of(MODULES[0])},
        *(row.source, row.target_inputs),
        source_segments=row.source_segments,
        target_segments=row.target_segments,
        deterministic=False,
        rngs={"dropout": KEY},
        mutable=["intermediates"],
        capture_intermediates=lambda m, _: isinstance(m, TokenCutoff),
    )
    for side, tokens, spared in [
        ("source", row.source, EOS),
        ("target", row.target_inputs, BOS),
    ]:
        (x,) = state["intermediates"][f"{side}_cutoff"]["__call__"]
        kept = np.asarray(x).any(-1) & (tokens > 0)
        assert kept[tokens == spared].sum() == 3
        assert kept.sum() < 3 + 6  # of some 10 more, one in ten


def test_layers_computed_twice_give_the_same_bits():
    twice = dataclasses.replace(CONFIG, remat=True)
    loss, sums = sums_of(BATCH)
    again, same = sums_of(BATCH, config=twice)
    assert_allclose(again, loss, rtol=1e-6)
    assert_allclose(same.consistency, sums.consistency, rtol=1e-6)


def lowered(training=None):
    """Lowers the step of a tiny model; returns its text."""
    module, optimizer = Transformer(CONFIG), optax.adam(1e-3)
    mesh = make_mesh(jax.devices()[:1])
    shapes = jax.eval_shape(partial(init_state, module, optimizer), KEY)
    made = make_train_step(
        training or TrainingConfig(),
        module=module,
        optimizer=optimizer,
        mesh=mesh,
        shardings=state_shardings(shapes, mesh),
    )
    return lower_step(made, shapes, batch_shape=(5, 11)).as_text()


def one_pass(module, params, batch, *, config, dropout_key):
    """Computes the loss of a step as if there were nothing else."""
    sums = forward_loss(
        module,
        params,
        batch,
        label_smoothing=config.label_smoothing,
        dropout_key=dropout_key,
        loss_chunks=config.loss_chunks,
    )
    return sums.loss, sums


def test_off_is_the_program_without_a_second_pass_to_the_letter(monkeypatch):
    off, on = lowered(), lowered(SIMCUT)
    assert len(on) > 1.5 * len(off)
    monkeypatch.setattr(step, "training_loss", one_pass)
    monkeypatch.setattr(TokenCutoff, "__call__", lambda _, x, *others: x)
    assert lowered() == off


def test_r_drop_of_a_model_without_dropout_is_refused():
    with pytest.raises(ConfigError, match=r"are the same with model\.dropout=0"):
        Config(training=R_DROP, model=dataclasses.replace(CONFIG, dropout=0.0))
    with pytest.raises(ConfigError, match=r"are the same with rnn\.dropout=0"):
        Config(
            architecture="rnn",
            training=TrainingConfig(simcut=1.0, simcut_probability=0.0),
            rnn=dataclasses.replace(RECURRENT, dropout=0.0),
        )
    Config(training=SIMCUT, model=dataclasses.replace(CONFIG, dropout=0.0))
    Config(
        training=R_DROP,
        model=dataclasses.replace(CONFIG, dropout=0.0, attention_dropout=0.1),
    )


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"simcut": -1.0}, r"training\.simcut=-1\.0 must be 0 \(off\) or more"),
        ({"r_drop": math.nan}, r"training\.r_drop=nan must be 0 \(off\) or more"),
        ({"simcut": 3.0, "r_drop": 5.0}, r"simcut=3 and training\.r_drop=5 both use"),
        (
            {"simcut": 3.0, "simcut_probability": 1.0},
            r"training\.simcut_probability=1\.0 must lie in \[0, 1\)",
        ),
        ({"simcut_probability": 0.1}, r"no effect with training\.simcut=0"),
    ],
    ids=str,
)
def test_keys_that_cannot_be_are_refused(values, problem):
    with pytest.raises(ConfigError, match=problem):
        TrainingConfig(**values)
