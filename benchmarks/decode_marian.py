"""`generate` of Hugging Face on MarianMTModel, as contestants; extra `bench`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from decode_forced import ForcedOutputs, Tokens
from decode_free import FreeOutputs, longest_first
from decode_work import DecodeWork, Way
from marian_weights import read_marian
from peer_networks import MAX_POSITIONS
from step_figures import peak_resident_megabytes, versions

from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.run.workdir import Workdir
from t2t_jax.types import EOS, PAD

_MORE = DecodingConfig().max_extra_tokens


class MarianForced(ForcedOutputs):
    """`generate` with as many tokens at least as at most."""

    def __init__(self, work: DecodeWork):
        super().__init__(work)
        self._generator = _Generator(work)

    def lengths(self, sources: Tokens, way: Way) -> Sequence[int]:
        """Generates batch by batch; nothing can end early."""
        found: list[int] = []
        for start in range(0, len(sources), way.at_once):
            outputs = self._generator.outputs(
                sources[start : start + way.at_once],
                min_new_tokens=self.work.length,
                max_new_tokens=self.work.length,
            )
            found += np.count_nonzero(outputs != PAD, axis=1).tolist()
        return found

    def facts(self) -> dict[str, Any]:
        """Tells what the network is."""
        return self._generator.facts()

    def peak_megabytes(self) -> float:
        """Returns the most memory, of the GPU where there is one."""
        return self._generator.peak_megabytes()


class MarianFree(FreeOutputs):
    """`generate` on batches of like length; a batch is done when all its rows are."""

    def __init__(self, work: DecodeWork):
        super().__init__(work)
        self._generator = _Generator(work)
        run = Workdir(Path(work.workdir))
        self._vocabularies = run.read_vocabularies(run.read_config().vocabulary)

    def translations(self, lines: Sequence[str]) -> tuple[list[str], int]:
        """Translates, and counts tokens up to each eos."""
        longest = MAX_POSITIONS - _MORE - 1
        sources = [
            [*ids[:longest], EOS] for ids in self._vocabularies.source.encode(lines)
        ]
        texts, tokens = [""] * len(lines), 0
        lengths = [len(ids) for ids in sources]
        for batch in longest_first(lengths, at_once=self.way.at_once):
            rows = np.full((len(batch), lengths[batch[0]]), PAD, np.int32)
            for row, number in zip(rows, batch, strict=True):
                row[: lengths[number]] = sources[number]
            outputs = self._generator.outputs(
                rows, max_new_tokens=rows.shape[1] - 1 + _MORE, early_stopping=True
            )
            said = [up_to_eos(row) for row in outputs.tolist()]
            tokens += sum(map(len, said))
            decoded = self._vocabularies.target.decode(
                [[token for token in row if token != EOS] for row in said]
            )
            for number, text in zip(batch, decoded, strict=True):
                texts[number] = text
        return texts, tokens

    def ways(self) -> list[Way]:
        """Lists sizes of batches."""
        return [Way(at_once=number) for number in self.work.cuts]

    def facts(self) -> dict[str, Any]:
        """Tells what the network with the trained weights is."""
        return self._generator.facts()

    def peak_megabytes(self) -> float:
        """Returns the most memory so far, of the GPU where there is one."""
        return self._generator.peak_megabytes()


def up_to_eos(tokens: list[int]) -> list[int]:
    """Drops what follows the eos: more of them, where pad is number 0.

    Example:
      >>> up_to_eos([7, 2, 2, 2]), up_to_eos([7, 5])
      ([7, 2], [7, 5])
    """
    return tokens[: tokens.index(EOS) + 1] if EOS in tokens else tokens


class _Generator:
    """A network, where it computes, and how it searches."""

    def __init__(self, work: DecodeWork):
        self._device = "cuda" if work.device == "gpu" else "cpu"
        if work.device == "cpu":
            torch.set_num_threads(work.threads)
        self._network = read_marian(
            work.weights, epsilon=work.config.layer_norm_epsilon
        )
        self._network.to(self._device, getattr(torch, work.dtype))
        self._dtype = work.dtype
        self._search = {
            "num_beams": work.beam_size,
            "length_penalty": work.length_penalty,
            "do_sample": False,
        }

    def outputs(self, sources: Tokens, **limits: Any) -> npt.NDArray[np.int64]:
        """Translates [B, S] ids into [B, T], without bos."""
        ids = torch.from_numpy(sources.astype(np.int64)).to(self._device)
        # Where nothing is padding, no mask is computed either.
        mask = {} if (sources != PAD).all() else {"attention_mask": (ids != PAD).long()}
        with torch.inference_mode():
            said = self._network.generate(
                input_ids=ids, **mask, **self._search, **limits
            )
        found: npt.NDArray[np.int64] = said[:, 1:].cpu().numpy()
        return found

    def facts(self) -> dict[str, Any]:
        weights = self._network.parameters()
        on_gpu = self._device == "cuda"
        return {
            "parameters": sum(p.numel() for p in weights if p.requires_grad),
            "dtype": self._dtype,
            "device": torch.cuda.get_device_name() if on_gpu else "cpu",
            "versions": versions(["torch", "transformers", "numpy"]),
        }

    def peak_megabytes(self) -> float:
        if self._device == "cuda":
            return torch.cuda.max_memory_allocated() / 1e6
        return peak_resident_megabytes()
