"""A model in a comparison: the interface, and the models of this package."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.scoring.scorer import Logs, Scorer, Subwords
from t2t_jax.decoding.text.translator import Translator
from t2t_jax.model.architectures import step_model
from t2t_jax.run.inference.model import TranslationModel, learned_positions
from t2t_jax.types import EOS


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

    def search(self, lines: Sequence[str], *, greedy: bool) -> list[Output]:
        """Translates lines by the beam search of the configuration, or greedily."""

    def score(self, pairs: Sequence[Subwords]) -> list[Logs]:
        """Returns the log-probability of each target, token by token."""


class JaxBackend:
    """A model of this package, on one device, with the length limits of a config."""

    def __init__(self, model: TranslationModel, config: DecodingConfig):
        self._scorer = Scorer(
            model.module.apply,
            {"params": model.params},
            model.vocabularies,
            config,
            learned_positions(model.module),
        )
        self._step_model = step_model(model.module, model.params)
        self._vocabularies = model.vocabularies
        self._config = config
        target = model.vocabularies.target
        pieces = target.pieces(range(target.size))
        self._ids: Mapping[str, int] = {piece: id_ for id_, piece in enumerate(pieces)}

    def search(self, lines: Sequence[str], *, greedy: bool) -> list[Output]:
        """Translates as `--mode=translate` does, in the dtype of the model."""
        config = search_config(self._config, greedy=greedy)
        # One thread: the caller's, as its matmul precision is thread-local.
        translator = Translator(
            self._step_model, self._vocabularies, config, max_concurrent=1
        )
        found = translator.translations(lines, target_language="")
        best = [translation.hypotheses[0] for translation in found]
        return [
            Output(one.text, tuple(self._ids[piece] for piece in one.tokens))
            for one in best
        ]

    def score(self, pairs: Sequence[Subwords]) -> list[Logs]:
        """Scores all positions of a target at once."""
        found = dict(self._scorer.iter_logs(pairs))
        return [found[number] for number in range(len(pairs))]


def search_config(config: DecodingConfig, *, greedy: bool) -> DecodingConfig:
    """Returns the search of a comparison: that of a configuration, or a greedy one."""
    own = dataclasses.replace(
        config,
        n_best=1,
        mbr="none",
        sample=False,
        compute_dtype="auto",
        segment="lines",
    )
    if not greedy:
        return own
    return dataclasses.replace(own, beam_size=1, length_penalty=0.0, beam_rule="fixed")
