"""Training with PyTorch, as contestants; needs the extra `bench`.

Label smoothing and Adam are those of our own step. Matrix products are bfloat16 on a
GPU, where the update is one kernel, and on a CPU where the contestant's name says so.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from contest import Work
from peer_networks import NETWORKS, Marian
from real_text import padded, shifted_right, sorted_batches
from step_figures import peak_resident_megabytes, versions
from torch import nn

from t2t_jax.types import EOS, PAD


class _Trainer:
    """A network with its loss and its optimizer."""

    def __init__(self, work: Work, *, has_padding: bool):
        torch.manual_seed(0)
        self._device = "cuda" if work.device == "gpu" else "cpu"
        if work.device == "cpu":
            torch.set_num_threads(work.threads)
        else:  # TF32 for what autocast leaves in float32
            torch.set_float32_matmul_precision("high")
        name = work.network.removesuffix("_bfloat16")
        self._half = self._device == "cuda" or name != work.network
        network = NETWORKS[name](work.config, has_padding=has_padding)
        self.network = network.to(self._device).train()
        self._loss = nn.CrossEntropyLoss(
            label_smoothing=work.training.label_smoothing,
            ignore_index=PAD if has_padding else -100,
        )
        self._loss_of = torch.compile(self._forward) if work.compiled else self._forward
        self._optimizer = torch.optim.Adam(
            self.network.parameters(),
            lr=1e-4,
            betas=(0.9, 0.98),
            eps=1e-9,
            fused=work.device == "gpu",
        )

    def tensor(self, ids: np.ndarray[Any, Any]) -> torch.Tensor:
        return torch.from_numpy(ids).to(self._device)

    def step(
        self, source: torch.Tensor, inputs: torch.Tensor, outputs: torch.Tensor
    ) -> None:
        loss = self._loss_of(source, inputs, outputs)
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self._optimizer.step()

    def drain(self) -> None:
        """Waits for the device."""
        if self._device == "cuda":
            torch.cuda.synchronize()

    def facts(self) -> dict[str, Any]:
        names = ["torch", "numpy"]
        parameters = self.network.parameters()
        return {
            "parameters": sum(p.numel() for p in parameters if p.requires_grad),
            "dtype": "bfloat16" if self._half else "float32",
            "device": torch.cuda.get_device_name() if self._device == "cuda" else "cpu",
            "versions": versions(
                [*names, "transformers"] if isinstance(self.network, Marian) else names
            ),
        }

    def peak_megabytes(self) -> float:
        if self._device == "cuda":
            return torch.cuda.max_memory_allocated() / 1e6
        return peak_resident_megabytes()

    def _forward(
        self, source: torch.Tensor, inputs: torch.Tensor, outputs: torch.Tensor
    ) -> torch.Tensor:
        with torch.autocast(self._device, dtype=torch.bfloat16, enabled=self._half):
            logits = self.network(source, inputs)
        loss: torch.Tensor = self._loss(logits.float().flatten(0, 1), outputs.flatten())
        return loss


class PeerStep:
    """A peer's step on full rows of made-up tokens, which are on the device already."""

    def __init__(self, work: Work):
        self._trainer = _Trainer(work, has_padding=False)
        shape = (2, work.rows, work.length)
        ids = np.random.default_rng(0).integers(EOS + 2, work.config.vocab_size, shape)
        self._batch = [
            self._trainer.tensor(side)
            for side in (ids[0], shifted_right(ids[1]), ids[1])
        ]
        self.peak_megabytes = self._trainer.peak_megabytes
        self.facts = self._trainer.facts

    def seconds(self, steps: int) -> float:
        """Times so many steps."""
        self._trainer.drain()
        began = time.perf_counter()
        for _ in range(steps):
            self._trainer.step(*self._batch)
        self._trainer.drain()
        return time.perf_counter() - began


class PeerLoop:
    """A peer on real text, in batches of like length with as many slots as ours."""

    def __init__(self, work: Work):
        self._trainer = _Trainer(work, has_padding=True)
        self._cache = work.text.open()
        self._batches = self._endless(work.text.data.tokens_per_batch)
        self._made = 0
        self.peak_megabytes = self._trainer.peak_megabytes

    def train_for(self, seconds: float) -> tuple[float, int]:
        """Trains for a while, from where it stopped.

        Args:
          seconds: after which no step is begun.

        Returns:
          The seconds that it took, and the real target tokens of its steps.
        """
        tokens, began = 0, time.perf_counter()
        while time.perf_counter() - began < seconds:
            source, outputs = next(self._batches)
            sides = (source, shifted_right(outputs), outputs)
            self._trainer.step(*map(self._trainer.tensor, sides))
            tokens += int(np.count_nonzero(outputs))
            self._made += 1
        self._trainer.drain()
        return time.perf_counter() - began, tokens

    def facts(self) -> dict[str, Any]:
        """Tells what does not change from round to round, and the steps made."""
        return {**self._trainer.facts(), "steps": self._made}

    def _endless(self, tokens: int) -> Iterator[tuple[Any, Any]]:
        chance, cache = np.random.default_rng(0), self._cache
        while True:
            for pairs in sorted_batches(*cache.lengths, tokens=tokens, chance=chance):
                yield padded(cache.source, pairs), padded(cache.target, pairs)
