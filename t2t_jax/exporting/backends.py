"""The two models of a comparison: the original, and its export."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

import jax
import numpy as np
import numpy.typing as npt

from t2t_jax.config import Config
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.vocabulary import BOS, EOS, PAD, UNK
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.scoring.batching import pair_batches
from t2t_jax.decoding.scoring.teacher_forcing import Apply, token_log_probabilities
from t2t_jax.decoding.text.translator import Translator
from t2t_jax.exporting.ctranslate2 import exported_positions
from t2t_jax.inference.model import TranslationModel
from t2t_jax.model.architectures import make_step_model
from t2t_jax.types import Array, Params, PyTree

Pair: TypeAlias = tuple[Sequence[int], Sequence[int]]
"""Token ids of source and target, without eos."""

Logs: TypeAlias = npt.NDArray[np.float32]
"""Natural log-probabilities of a target's tokens and its eos."""


class Output(NamedTuple):
    """One translation; its token ids include eos unless it was truncated."""

    text: str
    tokens: tuple[int, ...]

    @property
    def subwords(self) -> tuple[int, ...]:
        """The ids without the eos."""
        return self.tokens[:-1] if self.tokens[-1:] == (EOS,) else self.tokens


class Backend(Protocol):
    """A model that can be compared."""

    def search(self, lines: Sequence[str], *, beam_size: int) -> list[Output]:
        """Translates lines with alpha 0."""

    def score(self, pairs: Sequence[Pair]) -> list[Logs]:
        """Returns the log-probability of each target, token by token."""


class JaxBackend:
    """A model of this package, on one device, with the length limits of a config."""

    def __init__(self, model: TranslationModel, config: DecodingConfig):
        self._apply: Apply = model.module.apply
        self._params: Params = model.params
        self._step_model = make_step_model(model.module, model.params)
        self._vocabularies = model.vocabularies
        self._config = config
        pieces = model.vocabularies.target.pieces(range(self._size))
        self._ids: Mapping[str, int] = {piece: id_ for id_, piece in enumerate(pieces)}

    @property
    def _size(self) -> int:
        return self._vocabularies.target.size

    def search(self, lines: Sequence[str], *, beam_size: int) -> list[Output]:
        """Translates as `--mode=translate` does."""
        config = _search_config(self._config, beam_size=beam_size)
        # One thread: the caller's, as its matmul precision is thread-local.
        translator = Translator(
            self._step_model, self._vocabularies, config, max_concurrent=1
        )
        best = [found.hypotheses[0] for found in translator.translations(lines)]
        return [
            Output(one.text, tuple(self._ids[piece] for piece in one.tokens))
            for one in best
        ]

    def score(self, pairs: Sequence[Pair]) -> list[Logs]:
        """Scores all positions of a target at once."""
        found: list[Logs] = [np.zeros(0, np.float32)] * len(pairs)
        for batch in pair_batches(pairs, self._config, vocab_size=self._size):
            logs_BxT = np.asarray(
                _score_batch(
                    {"params": self._params},
                    batch.source_BxS,
                    batch.target_outputs_BxT,
                    apply=self._apply,
                )
            )
            for row, number in enumerate(batch.indices):
                found[number] = logs_BxT[row, : len(pairs[number][1]) + 1]
        return found


class CTranslate2Backend:
    """A CTranslate2 model on the CPU.

    Args:
      threads: 0 for CTranslate2's default.

    Attributes:
      compute_type: number format of the computation, which depends on the processor.
    """

    def __init__(
        self,
        directory: Path,
        *,
        vocabularies: VocabularyPair,
        config: Config,
        threads: int = 0,
    ):
        import ctranslate2

        self._translator: Any = ctranslate2.Translator(
            str(directory), device="cpu", inter_threads=1, intra_threads=threads
        )
        self.compute_type: str = self._translator.compute_type
        self._source, self._target = (
            side.pieces(range(side.size)) for side in vocabularies
        )
        self._source[: UNK + 1] = self._target[: UNK + 1]
        self._ids = {piece: id_ for id_, piece in enumerate(self._target)}
        self._vocabularies, self._config = vocabularies, config.decoding
        self._positions = exported_positions(config)

    def search(self, lines: Sequence[str], *, beam_size: int) -> list[Output]:
        """Translates with CTranslate2 within the length limits of this package.

        A call has one limit, so lines of equal length are translated in one.
        """
        subwords = self._vocabularies.source.encode(lines)
        found: list[tuple[int, ...]] = [()] * len(lines)
        by_length = sorted(range(len(lines)), key=lambda number: len(subwords[number]))
        for length, group in groupby(by_length, lambda number: len(subwords[number])):
            numbers = list(group)
            limit = min(length + self._config.max_extra_tokens, self._positions)
            results = self._translator.translate_batch(
                [self._pieces(self._source, subwords[number]) for number in numbers],
                beam_size=beam_size,
                length_penalty=0,
                max_input_length=0,
                max_decoding_length=limit,
                min_decoding_length=0,
                suppress_sequences=[[self._target[PAD]], [self._target[BOS]]],
                return_end_token=True,
                max_batch_size=64,
            )
            for number, result in zip(numbers, results, strict=True):
                found[number] = tuple(self._ids[p] for p in result.hypotheses[0])
        texts = self._vocabularies.target.decode(found)
        return [Output(*pair) for pair in zip(texts, found, strict=True)]

    def score(self, pairs: Sequence[Pair]) -> list[Logs]:
        """Scores given tokens; CTranslate2 appends eos itself."""
        results = self._translator.score_batch(
            [self._pieces(self._source, source) for source, _ in pairs],
            [self._pieces(self._target, target) for _, target in pairs],
            max_batch_size=64,
            max_input_length=0,
        )
        return [np.asarray(result.log_probs, np.float32) for result in results]

    @staticmethod
    def _pieces(side: Sequence[str], ids: Iterable[int]) -> list[str]:
        return [side[id_] for id_ in ids]


def _search_config(config: DecodingConfig, *, beam_size: int) -> DecodingConfig:
    return DecodingConfig(
        beam_size=beam_size,
        length_penalty=0.0,
        max_extra_tokens=config.max_extra_tokens,
        tokens_per_batch=config.tokens_per_batch,
        max_source_length=config.max_source_length,
    )


@functools.partial(jax.jit, static_argnames=("apply",))
def _score_batch(
    variables: PyTree, source_BxS: Array, target_outputs_BxT: Array, *, apply: Apply
) -> jax.Array:
    return token_log_probabilities(
        apply,
        variables,
        source_BxS=source_BxS,
        target_outputs_BxT=target_outputs_BxT,
    )
