"""A trained model with all that it takes to use it, wherever it came from."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, Generic, Literal, NamedTuple, TypeVar, overload

import jax
import numpy as np
import numpy.typing as npt
from flax import linen as nn

from t2t_jax.arguments import as_lines
from t2t_jax.config import did_you_mean
from t2t_jax.data.token_cache.known_words import KnownWords
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.ensemble import EnsembleStepModel
from t2t_jax.decoding.scoring.scorer import PairScore, Scorer
from t2t_jax.decoding.search.length_penalty import DEFAULT_IDS
from t2t_jax.decoding.text.rescoring import Rescorer
from t2t_jax.decoding.text.segments import replace_lone_surrogates
from t2t_jax.decoding.text.translation import Attention, Translation
from t2t_jax.decoding.text.translator import Translator
from t2t_jax.errors import ConfigError, UserError
from t2t_jax.model.alignment import AlignmentExtractor
from t2t_jax.model.architectures import make_step_model
from t2t_jax.model.config import TransformerConfig
from t2t_jax.types import Array, Params, StepModel

Texts = TypeVar("Texts")


class TextsWithAttention(NamedTuple, Generic[Texts]):
    """What `TranslationModel.translate` returns with `return_attention=True`.

    Attributes:
      texts: what it returns without: a string for each line, or a list of strings.
      attention: for each line the weights of its best translation, [tokens, source
        tokens]; None for a blank line.
    """

    texts: Texts
    attention: list[Attention | None]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class TranslationModel:
    """A trained model that translates and scores text; `t2t_jax.load` makes one.

    `translate`, `translations` and `score` take lines of text. `step_model`, `encode`
    and `decode` are for the search functions `t2t_jax.beam_search` and
    `t2t_jax.sample`, which work on arrays; `module` and `params` are for Linen.

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
      known_words: the source words of the training text, for the status `unfamiliar`;
        None where the run or the model has none.
    """

    module: nn.Module
    params: Params
    vocabularies: VocabularyPair
    decoding: DecodingConfig
    step: int
    averaged_steps: tuple[int, ...] = ()
    spacing: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    others: tuple[TranslationModel, ...] = ()
    known_words: KnownWords | None = None

    def __repr__(self) -> str:
        count = sum(x.size for x in jax.tree.leaves(self.params))
        source, target = self.vocabularies
        sizes = {f"{source.size:,}", f"{target.size:,}"}
        devices = {d for x in jax.tree.leaves(self.params) for d in x.devices()}
        return (
            f"<Model: {type(self.module).__name__} of {count:,} parameters, "
            f"{' and '.join(sorted(sizes))} subwords, step {self.step:,}"
            + (f", mean of {len(self.averaged_steps)}" if self.averaged_steps else "")
            + (f", with {len(self.others)} more" if self.others else "")
            + f", on {len(devices)} x {next(iter(devices)).platform}>"
        )

    @property
    def step_model(self) -> StepModel:
        """The model as `t2t_jax.beam_search` and `t2t_jax.sample` take it.

        A pytree whose leaves are the parameters. Models that were loaded together are
        one `StepModel`, whose probabilities are their mean.
        """
        steps = [make_step_model(m.module, m.params) for m in (self, *self.others)]
        return EnsembleStepModel(tuple(steps)) if self.others else steps[0]

    def encode(self, lines: Iterable[str]) -> npt.NDArray[np.int32]:
        """Encodes lines as the source tokens that a search reads.

        Args:
          lines: B lines of text. They are neither split nor cut, however long.

        Returns:
          [B, S] int32 source tokens: the subwords of each line, eos, then pad. S is
          that of the longest line.

        Raises:
          TypeError: `lines` is a single string, or holds something else than strings.
        """
        texts = map(replace_lone_surrogates, as_lines(lines, caller="encode"))
        rows = [
            [*ids, DEFAULT_IDS.eos] for ids in self.vocabularies.source.encode(texts)
        ]
        length = max(map(len, rows), default=0)
        source_BxS = np.full((len(rows), length), DEFAULT_IDS.pad, np.int32)
        for row, tokens in zip(source_BxS, rows, strict=True):
            row[: len(tokens)] = tokens
        return source_BxS

    def decode(self, tokens_BxT: Array) -> list[str]:
        """Decodes target tokens to text.

        Args:
          tokens_BxT: [B, T] integer target tokens; pad, bos and eos are dropped. Of a
            search's `tokens_BxWxT` pass one output of each sentence, such as
            `tokens_BxWxT[:, 0]`, the best.

        Returns:
          B lines of text.

        Raises:
          UserError: `tokens_BxT` is not a matrix of integers that are tokens of the
            target vocabulary.
        """
        tokens_BxT, size = np.asarray(tokens_BxT), self.vocabularies.target.size
        if tokens_BxT.ndim != 2 or not np.issubdtype(tokens_BxT.dtype, np.integer):
            raise UserError(
                f"tokens of shape {tokens_BxT.shape} and type {tokens_BxT.dtype} must "
                "be integers of shape [B, T]. Pass one output of each sentence, such "
                "as tokens_BxWxT[:, 0]."
            )
        if tokens_BxT.size and not 0 <= tokens_BxT.min() <= tokens_BxT.max() < size:
            raise UserError(
                f"tokens from {tokens_BxT.min()} to {tokens_BxT.max()} must lie in "
                f"[0, {size}), the target vocabulary. Pass tokens of this model."
            )
        return self.vocabularies.target.decode(tokens_BxT.tolist())

    @overload
    def translate(
        self,
        lines: Iterable[str],
        *,
        n_best: Literal[1] = 1,
        return_attention: Literal[False] = False,
        **search: Any,
    ) -> list[str]: ...

    @overload
    def translate(
        self,
        lines: Iterable[str],
        *,
        n_best: int,
        return_attention: Literal[False] = False,
        **search: Any,
    ) -> list[list[str]]: ...

    @overload
    def translate(
        self,
        lines: Iterable[str],
        *,
        n_best: Literal[1] = 1,
        return_attention: Literal[True],
        **search: Any,
    ) -> TextsWithAttention[list[str]]: ...

    @overload
    def translate(
        self,
        lines: Iterable[str],
        *,
        n_best: int,
        return_attention: Literal[True],
        **search: Any,
    ) -> TextsWithAttention[list[list[str]]]: ...

    def translate(
        self,
        lines: Iterable[str],
        *,
        n_best: int = 1,
        return_attention: bool = False,
        **search: Any,
    ) -> (
        list[str]
        | list[list[str]]
        | TextsWithAttention[list[str]]
        | TextsWithAttention[list[list[str]]]
    ):
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
          `return_attention` that and, for each line, the weights of its best
          translation.

        Raises:
          UserError: a value breaks its rule.
          DataError: the model's scores are not numbers.
          TypeError: `lines` is a single string, or holds something else than strings.

        Example:
          `model.translate(["A dog barks."])`, `model.translate(lines, beam_size=8)`,
          `model.translate(lines, sample=True, temperature=0.7, seed=1)`.
        """
        lines = as_lines(lines, caller="translate")
        found = self.translations(
            lines, n_best=n_best, attention=return_attention, **search
        )
        attention = [one.hypotheses[0].attention_TxS for one in found]
        if n_best > 1:
            several = [[h.text for h in one.hypotheses] for one in found]
            return (
                TextsWithAttention(several, attention) if return_attention else several
            )
        texts = [one.text for one in found]
        return TextsWithAttention(texts, attention) if return_attention else texts

    def translations(
        self,
        lines: Iterable[str],
        *,
        prefixes: Iterable[str] | None = None,
        **options: Any,
    ) -> list[Translation]:
        """Translates, and returns scores, tokens and status of each translation.

        Args:
          prefixes: what each translation must begin with, "" for nothing.
          options: those of `translator`.

        Raises:
          UserError: as in `translate`.
          DataError: likewise.
          TypeError: likewise.
        """
        lines = as_lines(lines, caller="translations")
        if prefixes is not None:
            prefixes = as_lines(prefixes, caller="translations", noun="prefixes")
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
        rescorer = None
        if token_scores or attention:
            attends = [
                AlignmentExtractor(one.module, config.attention_layer)
                for one in models
                if attention
            ]
            rescorer = Rescorer(
                tuple(one.module.apply for one in models),
                tuple({"params": one.params} for one in models),
                vocab_size=self.vocabularies.target.size,
                attends=tuple(attends),
                token_scores=token_scores,
            )
        return Translator(
            self.step_model,
            self.vocabularies,
            config,
            rescorer=rescorer,
            known_words=self.known_words,
        )

    def score(self, sources: Iterable[str], targets: Iterable[str]) -> list[PairScore]:
        """Finds the log-probability of each target as the translation of its source.

        Returns:
          One score for each pair, in the same order.

        Raises:
          DataError: pairs are too long for the model, or scores are not numbers.
          TypeError: a side is a single string, or holds something else than strings.
          UserError: the sources are not as many as the targets, or several models are
            loaded together.
        """
        sources = as_lines(sources, caller="score", noun="sources")
        targets = as_lines(targets, caller="score", noun="targets")
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


_OF_SAMPLES = ("temperature", "top_k", "top_p", "sampling_seed")


def _changed(config: DecodingConfig, changes: Mapping[str, Any]) -> DecodingConfig:
    known = [field.name for field in dataclasses.fields(config)]
    unknown = [name for name in changes if name not in known]
    if unknown:
        raise UserError(
            f"{name} is not a setting of the search.{did_you_mean(name, known)} Use "
            f"{', '.join(known)}."
            for name in unknown
        )
    if not changes.get("sample", config.sample):
        unused = [name for name in changes if name in _OF_SAMPLES]
        if unused:
            raise UserError(
                f"{name} only changes samples. Pass sample=True too, or leave it out."
                for name in unused
            )
    try:
        return dataclasses.replace(config, **changes)
    except ConfigError as error:  # An argument here, and no key of a configuration.
        names = (p.replace("config.decoding.", "") for p in error.problems)
        raise UserError(p.replace("decoding.", "") for p in names) from error


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
