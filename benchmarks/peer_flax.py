"""Training with the example `wmt` of Flax, as a contestant.

Its network is read from the example's source, which is no package: a folder with its
`models.py`. The loss is made as the example makes it, of dense smoothed targets and a
log-softmax. What the example measures besides, at every step, is left out; so is its
dropout of attention weights. That inside its feed-forward networks cannot be.
"""

from __future__ import annotations

import importlib.util
import time
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from contest import Work
from own_process import peak_megabytes, surroundings

from t2t_jax.types import EOS


class PeerStep:
    """The example's step on full rows of made-up tokens, which are on the device."""

    def __init__(self, work: Work):
        models = _models(Path(work.folder))
        config, size = work.config, work.config.vocab_size
        self._dtype = jnp.bfloat16 if work.device == "gpu" else jnp.float32
        settings = models.TransformerConfig(
            vocab_size=size,
            output_vocab_size=size,
            share_embeddings=True,
            logits_via_embedding=True,
            dtype=self._dtype,
            emb_dim=config.d_model,
            num_heads=config.num_heads,
            num_layers=config.num_layers,
            qkv_dim=config.num_heads * config.d_k,
            mlp_dim=config.d_ff,
            dropout_rate=config.dropout,
            attention_dropout_rate=0.0,
        )
        ids = np.random.default_rng(0).integers(
            EOS + 2, size, (2, work.rows, work.length)
        )
        self._batch = jax.device_put((ids[0].astype("int32"), ids[1].astype("int32")))
        key = jax.random.key(0)
        still = models.Transformer(settings.replace(deterministic=True))
        params = jax.jit(still.init)(key, *self._batch)["params"]
        optimizer = optax.adam(1e-4, b1=0.9, b2=0.98, eps=1e-9)
        self._state = (params, optimizer.init(params), jnp.int32(0))
        smoothing = work.training.label_smoothing
        loss = partial(_loss, models.Transformer(settings), key, smoothing)
        self._step = jax.jit(partial(_step, loss, optimizer), donate_argnums=0)
        self.peak_megabytes = peak_megabytes

    def seconds(self, steps: int) -> float:
        """Times so many steps."""
        began = time.perf_counter()
        for _ in range(steps):
            self._state = self._step(self._state, self._batch)
        jax.block_until_ready(self._state)
        return time.perf_counter() - began

    def facts(self) -> dict[str, Any]:
        """Tells what does not change from round to round."""
        return {
            "parameters": sum(x.size for x in jax.tree.leaves(self._state[0])),
            "dtype": jnp.dtype(self._dtype).name,
            **surroundings("optax"),
        }


def _models(folder: Path) -> Any:
    """Reads the example's `models.py`."""
    spec = importlib.util.spec_from_file_location("flax_wmt", folder / "models.py")
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder / 'models.py'} cannot be read")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _loss(
    network: Any,
    key: jax.Array,
    smoothing: float,
    params: Any,
    batch: tuple[jax.Array, jax.Array],
    number: jax.Array,
) -> jax.Array:
    source, target = batch
    logits = network.apply(
        {"params": params},
        source,
        target,
        rngs={"dropout": jax.random.fold_in(key, number)},
    ).astype(jnp.float32)
    size = logits.shape[-1]
    low = smoothing / (size - 1)
    smoothed = jax.nn.one_hot(target, size) * (1 - smoothing - low) + low
    of_tokens: jax.Array = -jnp.sum(smoothed * jax.nn.log_softmax(logits), axis=-1)
    return of_tokens.mean()


def _step(loss: Any, optimizer: Any, state: Any, batch: Any) -> Any:
    params, moments, number = state
    gradient = jax.grad(loss)(params, batch, number)
    updates, moments = optimizer.update(gradient, moments, params)
    return optax.apply_updates(params, updates), moments, number + 1
