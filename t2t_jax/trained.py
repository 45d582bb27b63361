"""A trained model with all that it takes to use it, wherever it came from."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Literal, overload

from flax import linen as nn

from t2t_jax.data.vocabularies import Vocabularies
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.ensemble import EnsembleStepModel
from t2t_jax.decoding.examination import Examiner
from t2t_jax.decoding.scoring import PairScore, Scorer
from t2t_jax.decoding.translation import Attention, Translation
from t2t_jax.decoding.translator import Translator
from t2t_jax.errors import UserError
from t2t_jax.model.architectures import make_step_model
from t2t_jax.model.config import TransformerConfig
from t2t_jax.model.cross_attention import CrossAttention
from t2t_jax.parsing import nearest
from t2t_jax.types import Params


@dataclasses.dataclass(frozen=True)
class Model:
    """A trained model with all that it takes to use it.

    Attributes:
      module: the Linen module, for `module.apply({"params": params}, …)`.
      params: nested dict of float32 arrays; each device that translates holds all.
      vocabularies: from text to subwords and back.
      decoding: how `translate` searches.
      step: optimizer steps behind the parameters.
      averaged_steps: the checkpoints whose mean they are; none if they are of one.
      spacing: of those: `unit`, `gaps`, and whether `forced` in spite of a fault.
      others: models that translate together with this one, their probabilities being
        averaged; they have its vocabularies.
    """

    module: nn.Module
    params: Params
    vocabularies: Vocabularies
    decoding: DecodingConfig
    step: int
    averaged_steps: tuple[int, ...] = ()
    spacing: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    others: tuple[Model, ...] = ()

    @overload
    def translate(
        self, lines: Sequence[str], *, n_best: Literal[1] = 1, **search: Any
    ) -> list[str]: ...

    @overload
    def translate(
        self, lines: Sequence[str], *, n_best: int, **search: Any
    ) -> list[list[str]]: ...

    @overload
    def translate(
        self,
        lines: Sequence[str],
        *,
        n_best: int = 1,
        return_attention: Literal[True],
        **search: Any,
    ) -> tuple[list[str] | list[list[str]], list[Attention | None]]: ...

    def translate(
        self,
        lines: Sequence[str],
        *,
        n_best: int = 1,
        return_attention: bool = False,
        **search: Any,
    ) -> Any:
        """Translates n lines into n translations, in the same order.

        Args:
          lines: any text without line ends; a blank line becomes an empty one.
          n_best: translations of each line, the best first.
          return_attention: whether to tell where the model looked, too.
          search: `prefixes`, one string for each line that its translation must begin
            with; and what differs from the configuration, such as `beam_size=1` or
            `sample=True`: any key of `DecodingConfig`.

        Returns:
          A string for each line; a list of strings where `n_best` is more than 1. With
          `return_attention` a pair of that and, for each line, the weights of its best
          translation, [tokens, source tokens]; None where there was nothing to say.

        Raises:
          UserError: a value breaks its rule.
          DataError: the model's scores are not numbers.
        """
        found = self.translations(
            lines, n_best=n_best, attention=return_attention, **search
        )
        texts: Any = [one.text for one in found]
        if n_best > 1:
            texts = [[h.text for h in one.hypotheses] for one in found]
        if not return_attention:
            return texts
        return texts, [one.hypotheses[0].attention_TxS for one in found]

    def translations(
        self,
        lines: Sequence[str],
        *,
        prefixes: Sequence[str] | None = None,
        **options: Any,
    ) -> list[Translation]:
        """Translates, and tells all that is known of each translation.

        Args:
          lines: as in `translate`.
          prefixes: what each translation must begin with, "" for nothing.
          options: those of `translator`.
        """
        return self.translator(**options).translations(lines, prefixes=prefixes)

    def translator(
        self, *, token_scores: bool = False, attention: bool = False, **changes: Any
    ) -> Translator:
        """Returns what translates, for those who show progress.

        Args:
          token_scores: whether every token's own log-probability is found too.
          attention: whether it is found where the model looked.
          changes: what differs from the configuration: any key of `DecodingConfig`.

        Raises:
          UserError: a value breaks its rule, or a key or a layer does not exist.
        """
        config = _changed(self.decoding, changes)
        models = (self, *self.others)
        _require_beams(config, self.vocabularies.target.size)
        for one in models:
            _require_positions(config, _max_length(one.module))
        steps = tuple(make_step_model(one.module, one.params) for one in models)
        examiner = None
        if token_scores or attention:
            attends = [
                CrossAttention(one.module, config.attention_layer)
                for one in models
                if attention
            ]
            examiner = Examiner(
                tuple(one.module.apply for one in models),
                tuple({"params": one.params} for one in models),
                vocab_size=self.vocabularies.target.size,
                attends=tuple(attends),
                token_scores=token_scores,
            )
        step_model = EnsembleStepModel(steps) if self.others else steps[0]
        return Translator(step_model, self.vocabularies, config, examiner=examiner)

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[PairScore]:
        """Tells how probable each target is as the translation of its source."""
        return self.scorer().scores(sources, targets)

    def scorer(self) -> Scorer:
        """Returns what scores, for those who show progress.

        Raises:
          UserError: there are several models; their mean scores its own output only.
        """
        if self.others:
            raise UserError(
                f"Pairs are scored by one model, and {1 + len(self.others)} are loaded "
                "together. Load one at a time."
            )
        return Scorer(
            self.module.apply,
            {"params": self.params},
            self.vocabularies,
            self.decoding,
            max_length=_max_length(self.module),
        )


def _changed(config: DecodingConfig, changes: Mapping[str, Any]) -> DecodingConfig:
    known = [field.name for field in dataclasses.fields(config)]
    unknown = [name for name in changes if name not in known]
    if unknown:
        raise UserError(
            f"{name} is no setting of a search.{nearest(name, known)} There are "
            f"{', '.join(known)}."
            for name in unknown
        )
    return dataclasses.replace(config, **changes)


def _require_beams(config: DecodingConfig, vocab_size: int) -> None:
    if config.beam_size > vocab_size:
        raise UserError(
            f"beam_size={config.beam_size} must be at most the {vocab_size} subwords "
            "that a hypothesis can begin with. Lower beam_size."
        )


def _require_positions(config: DecodingConfig, most: int | None) -> None:
    """Checks that a table of learned positions reaches as far as an output may."""
    longest = config.max_source_length + config.max_extra_tokens
    if most is not None and longest > most:
        raise UserError(
            f"max_source_length + max_extra_tokens = {longest} must be at most the "
            f"model's {most} learned positions. Lower max_source_length."
        )


def _max_length(module: nn.Module) -> int | None:
    """Returns how many positions the model knows; None where there is no end."""
    config = getattr(module, "config", None)
    if isinstance(config, TransformerConfig) and config.positions == "learned":
        return config.max_positions
    return None
