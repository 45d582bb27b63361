"""The paper's model in PyTorch, two ways; needs the extra `bench`.

Both have the sizes, the places of dropout and the tied matrix of our own model. What
a peer drops out beyond the paper (attention weights, and inside the feed-forward
networks) is turned off: it would only cost it time. Both have biases in their
projections, which ours, and the paper, have not: one in 600 parameters of base.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import torch
from torch import nn

from t2t_jax.model.config import TransformerConfig, decoder_layers
from t2t_jax.types import BOS, EOS, PAD

MAX_POSITIONS = 512
"""Positions that a network here knows."""


def marian(config: TransformerConfig) -> nn.Module:
    """Builds Hugging Face's MarianMTModel: post-norm, sinusoids, one tied matrix."""
    from transformers import MarianConfig, MarianMTModel

    depths = {"encoder": config.num_layers, "decoder": decoder_layers(config)}
    sides = {
        f"{side}_{name}": size
        for side, depth in depths.items()
        for name, size in (
            ("layers", depth),
            ("attention_heads", config.num_heads),
            ("ffn_dim", config.d_ff),
        )
    }
    return MarianMTModel(
        MarianConfig(
            vocab_size=config.vocab_size,
            d_model=config.d_model,
            dropout=config.dropout,
            attention_dropout=0.0,
            activation_dropout=0.0,
            activation_function="relu",
            scale_embedding=True,
            share_encoder_decoder_embeddings=True,
            max_position_embeddings=MAX_POSITIONS,
            pad_token_id=PAD,
            bos_token_id=BOS,
            eos_token_id=EOS,
            decoder_start_token_id=BOS,
            forced_eos_token_id=None,
            **sides,
        )
    )


class Marian(nn.Module):
    """MarianMTModel with the arguments that both networks here take.

    Args:
      config: of the model.
      has_padding: whether there is padding to be masked; without, none is looked for.
    """

    def __init__(self, config: TransformerConfig, *, has_padding: bool):
        super().__init__()
        self._model = marian(config)
        self._has_padding = has_padding

    def forward(self, source: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        """Scores every word: [B, S] and [B, T] ids -> [B, T, V]."""
        mask = (source != PAD).long() if self._has_padding else None
        told = self._model(
            input_ids=source,
            attention_mask=mask,
            decoder_input_ids=inputs,
            use_cache=False,
        )
        logits: torch.Tensor = told.logits
        return logits


class TorchTransformer(nn.Module):
    """`torch.nn.Transformer` between tied embeddings with sinusoids, post-norm.

    Args:
      config: of the model.
      has_padding: as in `Marian`.
    """

    positions: torch.Tensor
    future: torch.Tensor

    def __init__(self, config: TransformerConfig, *, has_padding: bool):
        super().__init__()
        self._has_padding = has_padding
        self._scale = math.sqrt(config.d_model)
        self.embedding = nn.Embedding(config.vocab_size, config.d_model)
        nn.init.normal_(self.embedding.weight, std=config.d_model**-0.5)
        self.dropout = nn.Dropout(config.dropout)
        self.stacks = nn.Transformer(
            config.d_model,
            config.num_heads,
            config.num_layers,
            decoder_layers(config),
            config.d_ff,
            config.dropout,
            batch_first=True,
        )
        # Post-norm stacks end in a norm already.
        self.stacks.encoder.norm = self.stacks.decoder.norm = None
        for layer in itertools.chain(
            self.stacks.encoder.layers, self.stacks.decoder.layers
        ):
            layer.dropout = nn.Identity()  # the one inside the feed-forward network
            layer.self_attn.dropout = 0.0
            if isinstance(layer, nn.TransformerDecoderLayer):
                layer.multihead_attn.dropout = 0.0
        self.register_buffer("positions", _sinusoids(config.d_model))
        future = torch.full((MAX_POSITIONS, MAX_POSITIONS), -math.inf).triu(1)
        self.register_buffer("future", future)

    def forward(self, source: torch.Tensor, inputs: torch.Tensor) -> torch.Tensor:
        """Scores every word: [B, S] and [B, T] ids -> [B, T, V]."""
        length = inputs.shape[1]
        mask = source == PAD if self._has_padding else None
        outputs = self.stacks(
            self._embedded(source),
            self._embedded(inputs),
            tgt_mask=self.future[:length, :length],
            tgt_is_causal=True,
            src_key_padding_mask=mask,
            memory_key_padding_mask=mask,
        )
        return nn.functional.linear(outputs, self.embedding.weight)

    def _embedded(self, ids: torch.Tensor) -> torch.Tensor:
        vectors = self.embedding(ids) * self._scale + self.positions[: ids.shape[1]]
        dropped: torch.Tensor = self.dropout(vectors)
        return dropped


def _sinusoids(d_model: int) -> torch.Tensor:
    place = torch.arange(MAX_POSITIONS)[:, None]
    angles = place * 10_000 ** (-torch.arange(0, d_model, 2) / d_model)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)


NETWORKS: dict[str, Callable[..., nn.Module]] = {
    "hf_marian": Marian,
    "torch": TorchTransformer,
}
