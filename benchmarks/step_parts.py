"""The parts of our own training step, forwards and backwards, ready to be timed."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from contest import Work

from t2t_jax.functional.attention import attention
from t2t_jax.functional.dropout import dropout
from t2t_jax.functional.embedding import embed, logits
from t2t_jax.functional.losses import label_smoothed_nll
from t2t_jax.functional.masks import causal_mask
from t2t_jax.model.architectures import make_module
from t2t_jax.model.attention import MultiHeadAttention
from t2t_jax.model.config import decoder_layers, resolve_compute_dtype
from t2t_jax.model.feed_forward import FeedForward
from t2t_jax.model.sublayer import AddAndNorm
from t2t_jax.training.config import OptimizerConfig
from t2t_jax.training.optimizer import make_optimizer
from t2t_jax.training.state import init_state

_FORWARD_AND_BACKWARD = 3 * 2  # passes, a multiplication and its addition


class Part(NamedTuple):
    """Something to be timed.

    Attributes:
      name: for people.
      function: (state, *arguments) -> (state, results); the state is donated.
      state: what the first call gets.
      arguments: of every call.
      flops: of its matrix products.
      times: how often a step does it.
      within: whether it is done inside another part as well.
    """

    name: str
    function: Callable[..., tuple[Any, Any]]
    state: Any = ()
    arguments: tuple[Any, ...] = ()
    flops: float = 0.0
    times: int = 1
    within: bool = False


class Parts:
    """Makes the parts of the step of some work, on JAX's first device."""

    def __init__(self, work: Work):
        platform = jax.devices()[0].platform
        self._config, self._work = work.config, work
        self._dtype = jnp.dtype(resolve_compute_dtype(work.config, platform))
        self._key = jax.random.key(0)
        self._x = self.drawn(work.rows, work.length, work.config.d_model)
        self._rows = jnp.arange(work.rows)

    @property
    def dtype(self) -> str:
        """The dtype of activations."""
        return self._dtype.name

    def drawn(self, *shape: int) -> jax.Array:
        """Draws numbers in the dtype of activations."""
        return jax.random.normal(self._key, shape, jnp.float32).astype(self._dtype)

    def all(self) -> list[Part]:
        """Makes them: those that are a step together, and those within others."""
        return [
            self._embedding(),
            self._attention(),
            self._between_projections(),
            self._feed_forward(),
            self._add_and_norm(),
            self._dropout(),
            self._cross_entropy(),
            self._adam(),
        ]

    def _embedding(self) -> Part:
        table = jnp.ones((self._config.vocab_size, self._config.d_model))
        ids = jnp.arange(2 * self._work.target_tokens) % self._config.vocab_size

        def looked_up(table: jax.Array) -> jax.Array:
            return embed(ids, table).astype(self._dtype)

        cotangent = self.drawn(len(ids), self._config.d_model)
        return _pulled_back("embedding of both sides", looked_up, cotangent, table)

    def _attention(self) -> Part:
        config, length, x = self._config, self._work.length, self._x
        module = MultiHeadAttention(config)

        def look(module: Any, x: jax.Array) -> Any:
            return module(
                x,
                module.keys_values(x),
                mask_Bx1xQxK=self._mask(),
                rows_B=self._rows,
            )

        params = module.init(self._key, x[:1], method=_look_alone)["params"]
        weights = 2 * config.d_model * config.num_heads * (config.d_k + config.d_v)
        scores = length * config.num_heads * (config.d_k + config.d_v)
        return _pulled_back(
            "attention",
            lambda params, x: module.apply({"params": params}, x, method=look),
            x,
            params,
            x,
            flops=self._work.target_tokens * (weights + scores),
            times=config.num_layers + 2 * decoder_layers(config),
        )

    def _between_projections(self) -> Part:
        config, length = self._config, self._work.length
        heads = (self._work.rows, config.num_heads, length)
        q, v = self.drawn(*heads, config.d_k), self.drawn(*heads, config.d_v)
        return _pulled_back(
            "  between its projections",
            partial(attention, mask_xQxK=self._mask()),
            v,
            q,
            q,
            v,
            flops=math.prod(heads) * length * (config.d_k + config.d_v),
            times=config.num_layers + 2 * decoder_layers(config),
        )._replace(within=True)

    def _feed_forward(self) -> Part:
        config, module = self._config, FeedForward(self._config)
        params = module.init(self._key, self._x[:1], None)["params"]
        return _pulled_back(
            "feed-forward network",
            lambda params, x: module.apply({"params": params}, x, None),
            self._x,
            params,
            self._x,
            flops=2 * self._work.target_tokens * config.d_model * config.d_ff,
            times=config.num_layers + decoder_layers(config),
        )

    def _add_and_norm(self) -> Part:
        module, x = AddAndNorm(self._config), self._x

        def normed(params: Any, x: jax.Array, y: jax.Array) -> Any:
            return module.apply(
                {"params": params},
                x,
                lambda _: y,
                rows_B=self._rows,
                rngs={"dropout": self._key},
            )

        params = {name: jnp.ones(x.shape[-1]) for name in ("scale", "bias")}
        times = 2 * self._config.num_layers + 3 * decoder_layers(self._config)
        return _pulled_back(
            "dropout, residual and norm", normed, x, params, x, x, times=times
        )

    def _dropout(self) -> Part:
        dropped = partial(
            dropout, rate=self._config.dropout, key=self._key, rows_B=self._rows
        )
        times = 2 * self._config.num_layers + 3 * decoder_layers(self._config)
        part = _pulled_back("  its dropout", dropped, self._x, self._x, times=times)
        return part._replace(within=True)

    def _cross_entropy(self) -> Part:
        config, tokens = self._config, self._work.target_tokens
        table = jax.random.normal(self._key, (config.vocab_size, config.d_model))
        targets = jnp.arange(tokens) % config.vocab_size
        smoothing = self._work.training.label_smoothing

        def loss(y: jax.Array, table: jax.Array) -> jax.Array:
            smoothed, _ = label_smoothed_nll(
                logits(y, table), targets, label_smoothing=smoothing
            )
            return smoothed.sum()

        return _pulled_back(
            "logits and cross entropy",
            loss,
            jnp.float32(1),
            self.drawn(tokens, config.d_model),
            table,
            flops=tokens * config.d_model * config.vocab_size,
        )

    def _adam(self) -> Part:
        optimizer = make_optimizer(OptimizerConfig(), d_model=self._config.d_model)
        init = partial(init_state, make_module(self._config), optimizer)
        state = jax.jit(init)(self._key)

        def update(state: Any, gradient: Any) -> tuple[Any, Any]:
            params, moments = state
            updates, moments = optimizer.update(gradient, moments, params)
            return (optax.apply_updates(params, updates), moments), ()

        gradient = jax.tree.map(lambda x: 1e-3 * jnp.ones_like(x), state.params)
        return Part("Adam", update, (state.params, state.optimizer), (gradient,))

    def _mask(self) -> jax.Array:
        length = self._work.length
        return jnp.broadcast_to(
            causal_mask(length), (self._work.rows, 1, length, length)
        )


def _look_alone(module: Any, x: jax.Array) -> Any:
    """Makes the parameters of an attention, for any length."""
    nowhere = jnp.ones((1, 1, 1, 1), bool)
    return module(x, module.keys_values(x), mask_Bx1xQxK=nowhere, rows_B=None)


def _pulled_back(
    name: str,
    function: Callable[..., Any],
    cotangent: jax.Array,
    *arguments: Any,
    flops: float = 0.0,
    times: int = 1,
) -> Part:
    """Makes a part of a function and its gradients by all of its arguments."""

    def both(_: Any, cotangent: jax.Array, *arguments: Any) -> tuple[Any, Any]:
        result, pull_back = jax.vjp(function, *arguments)
        return (), (result, pull_back(cotangent))

    return Part(
        name,
        both,
        arguments=(cotangent, *arguments),
        flops=_FORWARD_AND_BACKWARD * flops,
        times=times,
    )
