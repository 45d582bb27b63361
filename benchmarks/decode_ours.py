"""This package's decoding as contestants: its own search and its own translator."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Sequence
from typing import Any

import jax
from decode_forced import ForcedOutputs, Tokens
from decode_free import FreeOutputs
from decode_weights import random_params
from decode_work import DecodeWork, Way
from own_process import peak_megabytes, surroundings

from t2t_jax.decoding.engine.chunked_decode import chunked_search
from t2t_jax.decoding.engine.run_batches import map_concurrently
from t2t_jax.decoding.search.static_params import BeamParams
from t2t_jax.model.architectures import make_module, step_model
from t2t_jax.run.inference.load import load


class OwnForced(ForcedOutputs):
    """The search under the translator, with random weights."""

    def __init__(self, work: DecodeWork):
        super().__init__(work)
        self._module = make_module(work.config, devices=jax.devices())
        self._params = random_params(work.config)
        self._model = step_model(
            self._module, self._params, compute_dtype=work.search_dtype
        )
        self._search_params = BeamParams(
            beam_size=work.beam_size,
            length_penalty=work.length_penalty,
            min_tokens=work.length,
        )
        self._compiled: set[int] = set()

    def lengths(self, sources: Tokens, way: Way) -> Sequence[int]:
        """Searches as the translator does; the last batch has what is left."""
        starts = range(0, len(sources), way.at_once)
        batches = deque(sources[start : start + way.at_once] for start in starts)

        def lengths(batch: Tokens) -> list[int]:
            result = chunked_search(
                self._model,
                batch,
                max_extra_tokens=0,
                search_params=self._search_params,
            )
            self._compiled.add(len(batch))
            return result.lengths_BxW[:, 0].tolist()

        found = map_concurrently(
            lengths, batches, is_ready=lambda batch: len(batch) in self._compiled
        )
        return [length for _, of_batch in found for length in of_batch]

    def facts(self) -> dict[str, Any]:
        """Tells what the model and the machine are."""
        return {
            "parameters": sum(x.size for x in jax.tree.leaves(self._params)),
            "dtype": self._model.model.config.compute_dtype,
            **surroundings(),
        }

    def peak_megabytes(self) -> float:
        """Returns the most memory, compiling included where it is the host's."""
        return peak_megabytes()


class OwnFree(FreeOutputs):
    """The translator of a trained model, from lines to lines."""

    def __init__(self, work: DecodeWork):
        super().__init__(work)
        model = load(work.workdir)
        self._model = dataclasses.replace(
            model,
            decoding=dataclasses.replace(
                model.decoding,
                beam_size=work.beam_size,
                length_penalty=work.length_penalty,
                compute_dtype=work.search_dtype,
            ),
        )
        self._translator = self._model.translator()

    def translations(self, lines: Sequence[str]) -> tuple[list[str], int]:
        """Translates, and counts tokens as the translator does."""
        found = self._translator.translations(lines)
        texts = [translation.text for translation in found]
        return texts, sum(translation.num_tokens for translation in found)

    def facts(self) -> dict[str, Any]:
        """Tells what the trained model and the machine are."""
        bfloat16 = self.work.search_dtype == "bfloat16"
        return {
            "parameters": sum(x.size for x in jax.tree.leaves(self._model.params)),
            "step": self._model.step,
            "dtype": "bfloat16" if bfloat16 else self.work.dtype,
            **surroundings(),
        }

    def peak_megabytes(self) -> float:
        """Returns the most memory since the model was loaded, that included."""
        return peak_megabytes()
