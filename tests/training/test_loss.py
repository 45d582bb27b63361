"""Both models' sums over a batch, in chunks and not.

Seen to fail: with the head of the model left as it was, with one chunk whatever is
asked for, and where a step does not hand on what it is told.
"""

import dataclasses
from functools import partial

import jax
import numpy as np
import optax
import pytest

from t2t_jax.model.config import RNNConfig, TransformerConfig
from t2t_jax.model.rnn.rnn import RNN
from t2t_jax.model.transformer import Transformer
from t2t_jax.sharding.mesh import make_mesh
from t2t_jax.training.config import TrainingConfig
from t2t_jax.training.loss import forward_loss
from t2t_jax.training.state import init_state
from t2t_jax.training.step import compile_evaluation, train_step
from tests.jaxprs import shapes
from tests.training.copy_task import KEY, V, batch_of, pair_of, sentences

BATCH = batch_of([pair_of(words) for words in sentences(3, 4)])
CONFIG = TransformerConfig(
    vocab_size=V, num_layers=1, d_model=8, d_ff=8, num_heads=2, d_k=4, d_v=4
)
BIASED = dataclasses.replace(
    CONFIG, output_bias=True, attention_biases=True, tying="none", start="zero"
)
MODULES = [
    Transformer(CONFIG),
    RNN(RNNConfig(vocab_size=V, num_layers=1, d_model=8, d_hidden=8, d_attention=8)),
]


def require_same_in_chunks(module):
    params = jax.jit(module.init)(KEY, BATCH.source, BATCH.target_inputs)["params"]

    def loss(params, chunks):
        sums = forward_loss(
            module,
            params,
            BATCH,
            label_smoothing=0.1,
            dropout_key=KEY,
            loss_chunks=chunks,
        )
        return sums.loss, sums

    of = jax.value_and_grad(loss, has_aux=True)
    # float32 sums over some 30 tokens in another order
    jax.tree.map(
        partial(np.testing.assert_allclose, rtol=2e-5, atol=1e-5),
        *(
            jax.jit(of, static_argnums=1).lower(params, chunks).compile()(params)
            for chunks in (3, 1)
        ),
    )
    logits = (*BATCH.target_outputs.shape, V)
    seen = [shapes(jax.make_jaxpr(partial(of, chunks=n))(params)) for n in (1, 3)]
    assert [logits in found for found in seen] == [True, False]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: type(module).__name__)
def test_chunks_change_no_sum_and_no_gradient(module):
    require_same_in_chunks(module)


def test_a_bias_of_the_logits_is_in_every_chunk():
    require_same_in_chunks(Transformer(BIASED))


@pytest.mark.parametrize("what", ["train", "evaluate"])
@pytest.mark.parametrize("chunks", [1, 3])
def test_steps_and_evaluations_are_in_chunks_where_they_are_asked_to_be(what, chunks):
    module, optimizer, mesh = MODULES[0], optax.sgd(0.1), make_mesh(jax.devices()[:1])
    state = jax.eval_shape(partial(init_state, module, optimizer), KEY)
    if what == "train":
        step = partial(
            train_step,
            module=module,
            optimizer=optimizer,
            config=TrainingConfig(loss_chunks=chunks),
            mesh=mesh,
        )
        jaxpr = jax.make_jaxpr(step)(state, BATCH, KEY)
    else:
        evaluate = compile_evaluation(
            module, label_smoothing=0.1, mesh=mesh, loss_chunks=chunks
        )
        jaxpr = jax.make_jaxpr(evaluate)(state.params, BATCH)
    assert ((*BATCH.target_outputs.shape, V) in shapes(jaxpr)) == (chunks == 1)
