"""Marian as contestants, through `pymarian`; of the extra `bench`.

It computes in float32. The wheel has MKL with one thread a call, so each thread has
batches of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pymarian
from decode_forced import ForcedOutputs, Tokens
from decode_free import FreeOutputs
from decode_work import DecodeWork, Way
from marian_files import from_line, to_line
from step_figures import peak_resident_megabytes, versions

from t2t_jax.run.workdir import Workdir


class PymarianForced(ForcedOutputs):
    """`translate` with a model that never ends a sentence, up to the longest length."""

    def __init__(self, work: DecodeWork):
        super().__init__(work)
        # An output may have as many tokens as its source, whose eos counts.
        self._engine = _Engine(work, max_length_factor=1)

    def ways(self, rows: int) -> list[Way]:
        """Lists sizes of batches, none so large that a thread would have none."""
        threads = self.work.threads
        at_once = {min(-(-rows // threads), cut) for cut in self.work.cuts}
        return [Way(at_once=number, workers=threads) for number in sorted(at_once)]

    def lengths(self, sources: Tokens, way: Way) -> Sequence[int]:
        """Translates made-up words; an eos follows each source, so one is left out."""
        outputs = self._engine.outputs(sources[:, 1:].tolist(), way)
        return [len(ids) for ids in outputs]

    def facts(self) -> dict[str, Any]:
        """Tells what the engine is."""
        return self._engine.facts()

    def peak_megabytes(self) -> float:
        """Returns the most memory of the process."""
        return peak_resident_megabytes()


class PymarianFree(FreeOutputs):
    """`translate` from lines to lines; it sorts them by length itself."""

    def __init__(self, work: DecodeWork):
        super().__init__(work)
        self._engine = _Engine(work)
        run = Workdir(Path(work.workdir))
        self._vocabularies = run.read_vocabularies(run.read_config().vocabulary)

    def ways(self) -> list[Way]:
        """Lists sizes of batches."""
        threads = self.work.threads
        return [Way(at_once=number, workers=threads) for number in self.work.cuts]

    def translations(self, lines: Sequence[str]) -> tuple[list[str], int]:
        """Translates, and counts tokens with each eos."""
        encoded = self._vocabularies.source.encode(lines)
        outputs = self._engine.outputs(encoded, self.way)
        tokens = sum(len(ids) + 1 for ids in outputs)
        return self._vocabularies.target.decode(outputs), tokens

    def facts(self) -> dict[str, Any]:
        """Tells what the engine with the trained weights is."""
        return self._engine.facts()

    def peak_megabytes(self) -> float:
        """Returns the most memory of the process so far."""
        return peak_resident_megabytes()


class _Engine:
    """Marian with one network for each thread."""

    def __init__(self, work: DecodeWork, **options: float):
        weights = Path(work.weights)
        self._translator = pymarian.Translator(
            models=str(weights / "model.npz"),
            vocabs=[str(weights / f"{side}.yml") for side in ("source", "target")],
            cpu_threads=work.threads,
            beam_size=work.beam_size,
            normalize=work.length_penalty,
            maxi_batch=1000,
            maxi_batch_sort="src",
            log_level="warn",
            **options,
        )

    def outputs(self, sources: Sequence[Sequence[int]], way: Way) -> list[list[int]]:
        """Returns the best output of each source, both without eos."""
        lines = self._translator.translate(
            [to_line(ids) for ids in sources], mini_batch=way.at_once
        )
        return [from_line(line) for line in lines]

    def facts(self) -> dict[str, Any]:
        return {
            "dtype": "float32",
            "device": "cpu",
            "versions": versions(["pymarian"]),
        }
