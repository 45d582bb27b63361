"""`TranslationModel`: a trained model with its vocabularies and search settings."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, TypedDict, cast, overload

import jax
import numpy as np
import numpy.typing as npt
from flax import linen as nn

from t2t_jax.config import did_you_mean
from t2t_jax.data.line_arguments import as_lines
from t2t_jax.data.source_lines import SourceLines
from t2t_jax.data.token_cache.known_words import KnownWords
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.engine.batching import padded_rows
from t2t_jax.decoding.ensemble import EnsembleStepModel
from t2t_jax.decoding.scoring.scorer import PairScore, Scorer
from t2t_jax.decoding.scoring.teacher_forcing import Rescorer
from t2t_jax.decoding.text.segments import replace_lone_surrogates
from t2t_jax.decoding.text.translation import Attention, Translation
from t2t_jax.decoding.text.translator import Translator
from t2t_jax.devices.distributed.gather import (
    gather_to_local_devices,
    map_lines_across_processes,
    replicate,
)
from t2t_jax.devices.distributed.processes import current_processes
from t2t_jax.devices.processor import resolve_search_dtype
from t2t_jax.errors import ConfigError, UserError
from t2t_jax.evaluation.bleu import check_aligned, corpus_scores
from t2t_jax.model.architectures import AlignmentExtractor, step_model
from t2t_jax.model.config import ModelConfig, TransformerConfig
from t2t_jax.model.defaults import default_platform
from t2t_jax.types import Array, Params, StepModel

DEFAULT_DECODING = DecodingConfig()


class TextsWithAttention(NamedTuple):
    """Result of `TranslationModel.translate` with `return_attention=True`.

    Attributes:
      texts: a string for each line, or a list of strings if `n_best` > 1.
      attention: for each line the weights of its best translation, [tokens, source
        tokens]; None for a blank line.
    """

    texts: list[str] | list[list[str]]
    attention: list[Attention | None]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class TranslationModel:
    """A trained model that translates and scores text; `t2t_jax.load` makes one.

    `translate`, `translations` and `score` take lines of text. `step_model`, `encode`
    and `decode` are for `t2t_jax.beam_search` and `t2t_jax.sample`, which work on
    arrays; `module` and `params` are for Linen.

    Attributes:
      module: for `module.apply({"params": params}, …)`.
      params: nested dict of float32 arrays, replicated over the devices.
      decoding: the search settings of `translate`.
      averaged_steps: the averaged checkpoints; empty for a single one.
      spacing: of the averaged checkpoints: `unit`, `gaps`, and whether `forced`.
      others: further models of an ensemble with the same vocabularies.
      known_words: the source words of the training text, for the status `unfamiliar`.
      source_lines: how long the source lines of the training text are; None if that was
        not recorded, as in older runs.
      is_parser: whether it was trained on trees, so that its outputs are trees.
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
    source_lines: SourceLines | None = None
    is_parser: bool = False

    @classmethod
    def of(
        cls,
        module: nn.Module,
        params: Params,
        vocabulary: Vocabulary | VocabularyPair,
        *,
        decoding: DecodingConfig = DEFAULT_DECODING,
        step: int = 0,
    ) -> TranslationModel:
        """Assembles a model of its parts, such as those of a loop of one's own.

        Collective if the parameters are split over several processes.

        Args:
          params: such as `state.params`; they are replicated over the devices of this
            process, and not copied where they are already: a step that donates them
            ends the model.
          vocabulary: of both sides, or a pair of them.
          step: that of the state, `int(state.step)`.

        Raises:
          TypeError, UserError: as in `t2t_jax.step_model`; or a vocabulary has another
            size than the module.

        Example:
          >>> import t2t_jax
          >>> words = Vocabulary.train(["a dog barks", "ein Hund bellt"] * 9, 30)
          >>> config = t2t_jax.TransformerConfig(vocab_size=words.size, num_layers=1)
          >>> module = t2t_jax.Transformer(config)
          >>> tokens = np.ones((1, 1), int)
          >>> params = module.init(jax.random.key(0), tokens, tokens)["params"]
          >>> len(TranslationModel.of(module, params, words).translate(["a dog"]))
          1
        """
        step_model(module, params)  # checks them
        if isinstance(vocabulary, Vocabulary):
            vocabulary = VocabularyPair(vocabulary, vocabulary)
        if isinstance(config := getattr(module, "config", None), ModelConfig):
            found = tuple(one.size for one in vocabulary)
            wanted = (config.source_vocab_size or config.vocab_size, config.vocab_size)
            if found != wanted:
                raise UserError(
                    f"Vocabularies of source and target must have {wanted} subwords, "
                    f"as the module, and have {found}. Pass those of its training."
                )
        params = replicate(gather_to_local_devices(params))
        return cls(module, params, vocabulary, decoding, step)

    def __repr__(self) -> str:
        leaves = jax.tree.leaves(self.params)
        name, count = type(self.module).__name__, sum(leaf.size for leaf in leaves)
        sizes = " and ".join(sorted({f"{one.size:,}" for one in self.vocabularies}))
        arrays = (leaf for leaf in leaves if isinstance(leaf, jax.Array))
        devices = [*{device for leaf in arrays for device in leaf.devices()}]
        averaged, others = len(self.averaged_steps), len(self.others)
        line = f"{name} of {count:,} parameters, {sizes} subwords, step {self.step:,}"
        line += f", mean of {averaged}" * bool(averaged)
        line += f", with {others} more" * bool(others)
        line += f", on {len(devices)} x {devices[0].platform}" if devices else ""
        return f"<Model: {line}>"

    @property
    def step_model(self) -> StepModel:
        """The model as `t2t_jax.beam_search` and `t2t_jax.sample` take it, a pytree.

        That of an ensemble averages the probabilities of its models. It computes in
        `decoding.compute_dtype`.
        """
        return self._step_model(self.decoding.compute_dtype)

    def _step_model(self, compute_dtype: str) -> StepModel:
        compute_dtype = resolve_search_dtype(compute_dtype, default_platform())
        steps = [
            step_model(one.module, one.params, compute_dtype=compute_dtype)
            for one in (self, *self.others)
        ]
        return EnsembleStepModel(tuple(steps)) if self.others else steps[0]

    def encode(
        self, lines: Iterable[str], *, target: bool = False, **languages: str | None
    ) -> npt.NDArray[np.int32]:
        """Encodes lines as the source tokens that a search reads.

        Args:
          lines: B lines of text, neither split nor truncated.
          target: whether they are target sentences: the outputs of training.
          languages: `source_language` and `target_language`, as in `translate`.

        Returns:
          [B, S] int32 tokens: the subwords of each line, eos, then pad.

        Raises:
          TypeError: `lines` is a single string, or has an element that is not a string.
          UserError: as in `translate`.
        """
        texts = map(replace_lone_surrogates, as_lines(lines, caller="encode"))
        if target:
            (tags,) = self.vocabularies.source.split_tags([""], **languages).target_tags
            encoded = [[*tags, *ids] for ids in self.vocabularies.target.encode(texts)]
        else:
            encoded = self.vocabularies.source.encode_sources(texts, **languages)
        length = max((len(ids) + 1 for ids in encoded), default=0)
        return padded_rows(encoded, len(encoded), length)

    def decode(self, tokens_BxT: Array) -> list[str]:
        """Decodes target tokens to text.

        Args:
          tokens_BxT: [B, T] integer target tokens; pad, bos and eos are dropped. Of a
            search's `tokens_BxWxT` pass one output of each sentence, such as
            `tokens_BxWxT[:, 0]`, the best.

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
        n_best: int = 1,
        return_attention: bool = False,
        **search: Any,
    ) -> list[str] | list[list[str]] | TextsWithAttention: ...

    def translate(
        self,
        lines: Iterable[str],
        *,
        n_best: int = 1,
        return_attention: bool = False,
        **search: Any,
    ) -> list[str] | list[list[str]] | TextsWithAttention:
        """Translates n lines into n translations, in the same order.

        Args:
          lines: any text without line ends; a blank line becomes an empty one.
          n_best: translations of each line, the best first.
          return_attention: whether to return the attention weights too.
          search: `prefixes`, one string per line with which its translation must
            begin; `terms`, a list of words and phrases per line that its translation
            must contain; `target_language`, such as "de", of a model with tags of
            several, whose lines do not begin with one, and `source_language` of a model
            that reads that too, such as M2M-100; and any key of `DecodingConfig`, such
            as `beam_size=1` or `sample=True`.

        Returns:
          A string for each line; a list of strings if `n_best` > 1. With
          `return_attention` a `TextsWithAttention`.

        Raises:
          UserError: a value is not valid.
          DataError: the model's scores are not finite.
          TypeError: `lines` is a single string, or has an element that is not a string.

        Example:
          `model.translate(["A dog barks."])`, `model.translate(lines, beam_size=8)`,
          `model.translate(lines, sample=True, temperature=0.7, seed=1)`.
        """
        translations = self._without_status.translations(
            lines, n_best=n_best, attention=return_attention, **search
        )
        texts: list[str] | list[list[str]] = [one.text for one in translations]
        if n_best > 1:
            texts = [[h.text for h in one.hypotheses] for one in translations]
        if not return_attention:
            return texts
        attention = [one.hypotheses[0].attention_TxS for one in translations]
        return TextsWithAttention(texts, attention)

    @functools.cached_property
    def _without_status(self) -> TranslationModel:
        """This model for texts, of which nobody asks for unseen words."""
        return dataclasses.replace(self, known_words=None)

    def translations(
        self,
        lines: Iterable[str],
        *,
        prefixes: Iterable[str] | None = None,
        terms: Iterable[Iterable[str]] | None = None,
        source_language: str | None = None,
        target_language: str | None = None,
        **options: Any,
    ) -> list[Translation]:
        """Translates, and returns scores, tokens and status of each translation.

        Args:
          prefixes: with which each translation must begin; "" for none.
          terms: words and phrases that each translation must contain, a list for each
            line. `Translation.unmet_terms` are those that it does not.
          source_language: as in `Translator.translate`.
          target_language: as in `Translator.translate`.
          options: as for `translator`.

        Raises:
          UserError, DataError, TypeError: as in `translate`.
        """
        languages: Any = {"source_language": source_language}
        languages["target_language"] = target_language
        return self.translator(**options).translations(
            lines, prefixes=prefixes, terms=terms, **languages
        )

    def translator(
        self, *, token_scores: bool = False, attention: bool = False, **changes: Any
    ) -> Translator:
        """Returns a `Translator`, which also reports progress.

        The same object as in the call before, if the arguments are the same; with a
        shortlist a new one, as its file may have changed.

        Args:
          token_scores: whether to compute the log-probability of every token.
          attention: whether to compute the attention weights.
          changes: any key of `DecodingConfig`.

        Raises:
          UserError: a value is not valid, or a key or a layer does not exist.
        """
        arguments = repr((token_scores, attention, sorted(changes.items())))
        found = self._last_translator.get(arguments)
        if found is None:
            found = self._make_translator(token_scores, attention, changes)
            self._last_translator.clear()
            if not found.config.shortlist:  # a file, which may change
                self._last_translator[arguments] = found
        return found

    @functools.cached_property
    def _last_translator(self) -> dict[str, Translator]:
        return {}

    def _make_translator(
        self, token_scores: bool, attention: bool, changes: Mapping[str, Any]
    ) -> Translator:
        config = _apply_changes(self.decoding, changes, attention=attention)
        models = (self, *self.others)
        for one in models:
            _require_fitting(config, one)
        attending, layer = models if attention else (), config.attention_layer
        rescorer = Rescorer(
            tuple(one.module.apply for one in models),
            tuple({"params": one.params} for one in models),
            vocab_size=self.vocabularies.target.size,
            attends=tuple(AlignmentExtractor(one.module, layer) for one in attending),
            token_scores=token_scores,
        )
        return Translator(
            self._step_model(config.compute_dtype),
            self.vocabularies,
            config,
            rescorer=rescorer if token_scores or attention else None,
            known_words=self.known_words,
            source_lines=self.source_lines,
            is_parser=self.is_parser,
        )

    def score(
        self, sources: Iterable[str], targets: Iterable[str], **languages: str | None
    ) -> list[PairScore]:
        """Computes the log-probability of each target as the translation of its source.

        Args:
          languages: `source_language` and `target_language`, as in
            `Translator.translate`.

        Raises:
          DataError: pairs are too long for the model, or scores are not finite.
          TypeError: a side is a single string, or has an element that is not a string.
          UserError: the numbers of sources and targets differ, or this is an ensemble;
            or the language is missing, or none of the model's.
        """
        return self.scorer().scores(sources, targets, **languages)

    def scorer(self) -> Scorer:
        """Returns a `Scorer`, which also reports progress.

        Raises:
          UserError: this is an ensemble, which can score only its own outputs.
        """
        if self.others:
            raise UserError(
                "Pairs are scored by one model, not by an ensemble of "
                f"{1 + len(self.others)}. Load one at a time."
            )
        return Scorer(
            self.module.apply,
            {"params": self.params},
            self.vocabularies,
            self.decoding,
            max_length=learned_positions(self.module),
        )


class Scores(TypedDict):
    """What `evaluate` returns: scores in percent, and what they were computed of.

    Attributes:
      bleu_signature: of sacreBLEU, without which scores are not comparable.
      sentences: how many were translated.
      statuses: number of translations of each status but "ok".
      seconds: that translating took.
      checkpoint_step: of the model.
    """

    bleu: float
    bleu_signature: str
    chrf: float
    chrf_signature: str
    sentences: int
    statuses: dict[str, int]
    seconds: float
    checkpoint_step: int


def evaluate(
    model: TranslationModel,
    sources: Iterable[str],
    references: Iterable[str],
    **languages: str | None,
) -> Scores:
    """Translates and scores a corpus, as `--mode=evaluate` does by default.

    Of several processes all call it, with the same lines: each translates a share, and
    all get the scores.

    Args:
      model: a loaded one; or one of a module, parameters and a vocabulary, from
        `TranslationModel.of`.
      references: one for each source.
      languages: `source_language` and `target_language`, as in `Translator.translate`.

    Returns:
      BLEU and chrF of sacreBLEU with their signatures, and more: JSON values.

    Raises:
      DataError: the numbers of lines differ, or there are none.
      TypeError: a side is a single string, or has an element that is not a string.

    Example:
      `t2t_jax.evaluate(t2t_jax.load("runs/mine"), sources, references)["bleu"]`
    """
    sources, references = check_aligned(
        sources, references, caller="evaluate", noun="sources"
    )
    translator, began = model.translator(), time.perf_counter()

    def translate_share(lines: list[str], first: int) -> list[str]:
        found = translator.translations(lines, first=first, **languages)
        return [f"{','.join(one.statuses)} {one.text}" for one in found]

    outputs = map_lines_across_processes(translate_share, sources, current_processes())
    seconds = time.perf_counter() - began
    statuses, _, hypotheses = zip(*(x.partition(" ") for x in outputs), strict=True)
    counts = Counter(one for some in statuses for one in some.split(","))
    del counts["ok"]
    found: Any = corpus_scores(hypotheses, references)
    found |= {"sentences": len(references), "statuses": dict(counts)}
    return cast(Scores, found | {"seconds": seconds, "checkpoint_step": model.step})


def _apply_changes(
    config: DecodingConfig, changes: Mapping[str, Any], *, attention: bool
) -> DecodingConfig:
    known = [field.name for field in dataclasses.fields(config)]
    if unknown := [name for name in changes if name not in known]:
        raise UserError(
            f"{name} is not a search setting.{did_you_mean(name, known)} Use "
            f"{', '.join(known)}."
            for name in unknown
        )
    required = dict.fromkeys(("temperature", "top_k", "top_p", "seed"), "sample=True")
    if changes.get("sample", config.sample):
        # Where outputs are chosen among samples, the beam's size is their number.
        samples = changes.get("mbr", config.mbr) != "none"
        of_beams = ("beam_size", "beam_rule")[samples:]
        required = dict.fromkeys(of_beams, "sample=False")
    if not attention:
        required["attention_layer"] = "attention weights"
    if unused := [name for name in changes if name in required]:
        raise UserError(
            f"{name} requires {required[name]}. Ask for that too, or leave {name} out."
            for name in unused
        )
    try:
        return dataclasses.replace(config, **changes)
    except ConfigError as error:  # Here an argument, not a configuration key.
        names = (p.replace("config.decoding.", "") for p in error.problems)
        raise UserError(p.replace("decoding.", "") for p in names) from error


def _require_fitting(config: DecodingConfig, model: TranslationModel) -> None:
    """Checks that a model has the subwords and the positions that a search needs."""
    if config.beam_size > (size := model.vocabularies.target.size):
        raise UserError(
            f"beam_size={config.beam_size} must be at most the {size} subwords that a "
            "hypothesis can begin with. Lower beam_size."
        )
    positions = learned_positions(model.module)
    longest = max(config.max_source_length, config.longest_output())
    if positions is not None and longest > positions:
        raise UserError(
            f"{config.longest_output_formula()} = {longest} must be at most the "
            f"model's {positions} learned positions. Lower max_source_length."
        )


def learned_positions(module: nn.Module) -> int | None:
    """Returns the number of learned positions; None for sinusoids."""
    config = getattr(module, "config", None)
    if isinstance(config, TransformerConfig) and config.positions == "learned":
        return config.max_positions
    return None
