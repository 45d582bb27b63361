"""CTranslate2 as contestants: float32, bfloat16, int8; needs the extra `bench`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ctranslate2
from decode_forced import ForcedOutputs, Tokens
from decode_free import FreeOutputs
from decode_work import DecodeWork, MadeUpWords, Way
from step_figures import peak_resident_megabytes, versions

from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.run.workdir import Workdir
from t2t_jax.types import EOS

_MORE = DecodingConfig().max_extra_tokens


class CTranslate2Forced(ForcedOutputs):
    """`translate_batch` with as many tokens at least as at most."""

    def __init__(self, work: DecodeWork):
        super().__init__(work)
        self._engines = _Engines(work)
        self._words = MadeUpWords(work.config.vocab_size)

    def ways(self, rows: int) -> list[Way]:
        """Lists sizes of batches, for one worker and for as many as threads."""
        return _with_workers(super().ways(rows), self.work)

    def lengths(self, sources: Tokens, way: Way) -> Sequence[int]:
        """Translates made-up words; the engine cuts them into batches itself.

        It reads an eos behind each source, in the place of which a word is left out.
        """
        outputs = self._engines.outputs(
            [self._words.pieces(row) for row in sources[:, 1:].tolist()],
            way,
            min_decoding_length=self.work.length,
            max_decoding_length=self.work.length,
        )
        return [len(words) for words in outputs]

    def facts(self) -> dict[str, Any]:
        """Tells what the engine is."""
        return self._engines.facts()

    def peak_megabytes(self) -> float:
        """Returns the most memory of the process; nobody tells that of a GPU."""
        return peak_resident_megabytes()


class CTranslate2Free(FreeOutputs):
    """`translate_batch` from lines to lines; it sorts them by length itself."""

    def __init__(self, work: DecodeWork):
        super().__init__(work)
        self._engines = _Engines(work)
        run = Workdir(Path(work.workdir))
        self._vocabularies = run.read_vocabularies(run.read_config().vocabulary)
        pieces = self._vocabularies.target.pieces(range(work.config.vocab_size))
        self._ids = {piece: number for number, piece in enumerate(pieces)}

    def ways(self) -> list[Way]:
        """Lists sizes of batches, and workers."""
        return _with_workers([Way(at_once=n) for n in self.work.cuts], self.work)

    def translations(self, lines: Sequence[str]) -> tuple[list[str], int]:
        """Translates, and counts tokens with each eos."""
        encoded = self._vocabularies.source.encode(lines)
        outputs = self._engines.outputs(
            [self._vocabularies.source.pieces(ids) for ids in encoded],
            self.way,
            max_decoding_length=max(map(len, encoded)) + _MORE,
            return_end_token=True,
        )
        said = [[self._ids[piece] for piece in words] for words in outputs]
        texts = self._vocabularies.target.decode(
            [[number for number in ids if number != EOS] for ids in said]
        )
        return texts, sum(map(len, said))

    def facts(self) -> dict[str, Any]:
        """Tells what the engine with the trained weights is."""
        return self._engines.facts()

    def peak_megabytes(self) -> float:
        """Returns the most memory of the process so far."""
        return peak_resident_megabytes()


class _Engines:
    """One engine for each dtype and number of workers, made when first asked for."""

    def __init__(self, work: DecodeWork):
        self._work = work
        self._made: dict[tuple[str, int], Any] = {}

    def outputs(
        self, sources: Sequence[Sequence[str]], way: Way, **limits: Any
    ) -> list[list[str]]:
        """Returns the best output of each source."""
        found = self._engine(way).translate_batch(
            sources,
            beam_size=self._work.beam_size,
            length_penalty=self._work.length_penalty,
            max_batch_size=way.at_once,
            batch_type="examples",
            **limits,
        )
        return [one.hypotheses[0] for one in found]

    def facts(self) -> dict[str, Any]:
        engines = self._made.values()
        return {
            "dtype": " or ".join(sorted({engine.compute_type for engine in engines})),
            "device": next(iter(engines)).device,
            "versions": versions(["ctranslate2"]),
        }

    def _engine(self, way: Way) -> Any:
        key = way.dtype, way.workers
        if key not in self._made:
            in_int8 = self._work.network.endswith("_int8")
            self._made[key] = ctranslate2.Translator(
                self._work.weights,
                device="cuda" if self._work.device == "gpu" else "cpu",
                compute_type=f"int8_{way.dtype}" if in_int8 else way.dtype,
                inter_threads=way.workers,
                intra_threads=self._work.threads // way.workers,
            )
        return self._made[key]


def _with_workers(ways: Sequence[Way], work: DecodeWork) -> list[Way]:
    """Adds to each way the same with a worker for each thread of a CPU.

    A single sentence tries both too: with two threads it can be slower than with one.
    Where the work is in bfloat16, a CPU tries float32 too, and that alone where it has
    no bfloat16 in CTranslate2.
    """
    on_cpu = work.device == "cpu"
    numbers = {1, work.threads} if on_cpu else {1}
    dtypes = {work.dtype}
    if on_cpu:
        known = ctranslate2.get_supported_compute_types("cpu")
        dtypes = {work.dtype, "float32"} & known
    return [
        Way(at_once=way.at_once, workers=workers, dtype=dtype)
        for way in ways
        for workers in sorted(numbers)
        for dtype in sorted(dtypes)
    ]
