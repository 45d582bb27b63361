"""Converts a Transformer to a CTranslate2 model, which needs neither JAX nor Python.

CTranslate2 supports the paper's architecture with post- and pre-norm, but not the
recurrent baseline. Measured with version 4.8.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

import jax
import numpy as np
import numpy.typing as npt

from t2t_jax.config import Config
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.vocabulary import table_of
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.scoring.scorer import Logs, Subwords
from t2t_jax.decoding.shortlist import Shortlist, load_shortlist
from t2t_jax.errors import require_package
from t2t_jax.exchange.cards import fill_usage
from t2t_jax.exchange.exporting.base import (
    ExportFormat,
    ExportSpec,
    Original,
    Supported,
    distinct_pieces,
    require_transformer,
    untagged,
)
from t2t_jax.exchange.exporting.verification import Backend, Output
from t2t_jax.functional.positions import sinusoidal_positions
from t2t_jax.model.config import GATED, TransformerConfig, decoder_layers
from t2t_jax.types import BOS, EOS, PAD, UNK, Params

_Matrix = npt.NDArray[np.float32]

MIN_POSITIONS = 2048  # CTranslate2's own default number of sinusoids

SUPPORTED: Supported = {"tag_position": ("first",)}
"""Supported values by key of `config.model`."""


class CTranslate2Format(ExportFormat):
    """CTranslate2 models, with the vocabularies beside them."""

    library = "ctranslate2"
    verified_with = "CTranslate2"

    def check_supported(self, config: Config) -> None:
        """Checks that CTranslate2 is installed, and supports the model."""
        require_transformer(config, "ctranslate2", SUPPORTED)
        require_package("ctranslate2", user="--format=ctranslate2", extra="export")

    def write(self, to: Path, original: Original, spec: ExportSpec) -> None:
        """Writes the model, quantized if asked for, and the vocabularies."""
        vocabularies = original.model.vocabularies
        if spec.shortlist:
            found = load_shortlist(spec.shortlist, vocabularies)
            lines = vocabulary_map(found, *piece_names(vocabularies))
            (to / "vmap.txt").write_text("".join(lines), encoding="utf-8")
        vocabularies.save(to)
        for name, side in zip(("source", "target"), vocabularies, strict=True):
            if encoded := table_of(side).get("sentencepiece"):
                (to / f"{name}.spm").write_bytes(base64.b64decode(encoded))
        write_ctranslate2(to, original, spec)

    def load(self, directory: Path, original: Original) -> Backend:
        """Loads it with CTranslate2 on the CPU."""
        config = original.config
        written = original.model.vocabularies.load(directory, config=config.vocabulary)
        return CTranslate2Backend(directory, vocabularies=written, config=config)

    def usage(self, original: Original, *, name: str) -> str:
        """Describes CTranslate2's `translate_batch`."""
        vocabularies = original.model.vocabularies
        source, target = vocabularies
        pieces, tags = target.pieces(range(target.size)), target.tags.values()
        suppressed = suppressed_pieces(original.config.decoding, pieces, tags)
        tables = [table_of(side) for side in vocabularies]
        kinds = {table.get("kind", "") for table in tables}
        original, languages = untagged(original)
        return fill_usage(
            "ctranslate2",
            original,
            name,
            is_own=not kinds <= {"", "sentencepiece_table"},
            tables=tables,
            shared=vocabularies.shared,
            suppressed=json.dumps([[one] for one in suppressed], ensure_ascii=False),
            tags=source.pieces(source.tags[one] for one in languages),
            positions=exported_positions(original.config),
        )


def fill_stacks(spec: Any, params: Params, whole: Config) -> None:
    """Copies all parameters of a Transformer into a specification.

    Args:
      spec: `ctranslate2.specs.TransformerSpec` with as many layers, heads and norms.
    """
    config, positions = whole.model, exported_positions(whole)
    # Copies, as CTranslate2 quantizes matrices in place.
    params = jax.tree.map(np.array, params)
    target = params.get("target_embedding", params.get("embedding"))
    logits = params.get("pre_softmax", target)
    for side, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        part = params[side]
        stack.scale_embeddings = config.scale_embeddings
        if config.positions != "rotary":
            stack.position_encodings.encodings = _positions(part, config, positions)
        if config.norm_position == "pre":
            _fill_norm(stack.layer_norm, part["final_norm"])
        for number, layer in enumerate(stack.layer):
            _fill_layer(layer, part[f"layer_{number}"], config)
    spec.encoder.embeddings[0].weight = params.get("source_embedding", target)["table"]
    spec.decoder.embeddings.weight = target["table"]
    spec.decoder.projection.weight = logits["table"]
    if config.output_bias:
        spec.decoder.projection.bias = logits["bias"]
    spec.decoder.start_from_zero_embedding = config.start == "zero"


def _positions(stack: Params, config: TransformerConfig, count: int) -> _Matrix:
    if config.positions == "learned":
        # Scaled like the token embeddings.
        scale = math.sqrt(config.d_model) if config.scale_embeddings else 1
        table: _Matrix = stack["positions"]["learned"]["table"]
        return table[config.first_position :] * np.float32(scale)
    # CTranslate2's own sinusoids are others.
    numbers = np.arange(count) + config.first_position
    rates = config.position_rates
    return np.array(sinusoidal_positions(numbers, config.d_model, rates=rates))


def _fill_layer(layer: Any, params: Params, config: TransformerConfig) -> None:
    scale = np.float32(1 / math.sqrt(config.d_k))
    attentions = [("self_attention", layer.self_attention)]
    if "cross_attention" in params:
        attentions.append(("cross_attention", layer.attention))
    for name, spec in attentions:
        _fill_attention(spec, params[name], is_self=name == "self_attention")
        _fill_norm(spec.layer_norm, params[f"{name}_norm"])
        spec.queries_scale = scale
    names = {"inner": "linear_0", "outer": "linear_1"}
    if config.activation in GATED:  # linear_0 has the activation
        names = {"gate": "linear_0", "inner": "linear_0_noact", "outer": "linear_1"}
    for name, linear in names.items():
        _fill_linear(getattr(layer.ffn, linear), params["feed_forward"][name])
    _fill_norm(layer.ffn.layer_norm, params["feed_forward_norm"])


def _fill_linear(spec: Any, params: Params) -> None:
    spec.weight = params["kernel"].T
    if "bias" in params:
        spec.bias = params["bias"]


def _fill_norm(spec: Any, params: Params) -> None:
    spec.gamma = params["scale"]
    if "bias" in params:
        spec.beta = params["bias"]


def _fill_attention(spec: Any, params: Params, *, is_self: bool) -> None:
    depth = max(params[name]["kernel"].shape[2] for name in ("key", "value"))
    names = ("query", "key", "value")
    inputs = [names] if is_self else [names[:1], names[1:]]
    for linear, together in zip(spec.linear, inputs, strict=False):
        parts = [params[name] for name in together]
        kernels = [_heads_first(part["kernel"], depth) for part in parts]
        linear.weight = np.concatenate(kernels)
        if "bias" in parts[0]:
            biases = [_heads_first(part["bias"][None], depth) for part in parts]
            linear.bias = np.concatenate(biases)[:, 0]
    output_DxHxV = np.moveaxis(params["output"]["kernel"], -1, 0)
    kernel = _heads_first(output_DxHxV, depth)
    _fill_linear(spec.linear[-1], {**params["output"], "kernel": kernel})


def _heads_first(kernel_DxHxK: _Matrix, depth: int) -> _Matrix:
    """Reshapes W^Q, W^K or W^V from [D, H, K] to [H * depth, D], zero-padded."""
    filled = np.pad(kernel_DxHxK, ((0, 0), (0, 0), (0, depth - kernel_DxHxK.shape[2])))
    return filled.reshape(len(filled), -1).T


def exported_positions(config: Config) -> int:
    """Returns the number of positions of an exported model.

    Example:
      >>> exported_positions(Config())
      2048
      >>> learned = TransformerConfig(positions="learned", max_positions=1500)
      >>> exported_positions(Config(model=learned))
      1500
    """
    if config.model.positions == "learned":
        return config.model.max_positions
    decoding = config.decoding
    return max(decoding.max_source_length, decoding.longest_output(), MIN_POSITIONS)


def write_ctranslate2(
    to: Path, original: Original, spec: ExportSpec, *, language: str = ""
) -> None:
    """Writes a CTranslate2 model, without what splits text.

    Args:
      language: whose tag CTranslate2 adds to each source; "" for sources that begin
        with theirs.
    """
    config, vocabularies = original.config, original.model.vocabularies
    converted = _specification(config)
    fill_stacks(converted, original.model.params, config)
    model, sides = config.model, piece_names(vocabularies)
    converted.register_source_vocabulary(sides[0])
    converted.register_target_vocabulary(sides[1])
    settings = converted.config
    settings.layer_norm_epsilon = model.layer_norm_epsilon
    settings.add_source_eos = True
    added = vocabularies.source.tags[language] if language else BOS
    settings.bos_token, settings.add_source_bos = sides[0][added], bool(language)
    # With "zero", the vector of this token is not used.
    settings.decoder_start_token = sides[1][EOS if model.start == "eos" else BOS]
    settings.eos_token, settings.unk_token = sides[1][EOS], sides[1][UNK]
    converted.validate()
    converted.optimize(spec.quantization)
    to.mkdir(exist_ok=True)
    converted.save(str(to))


def _specification(config: Config) -> Any:
    from ctranslate2.specs.common_spec import Activation
    from ctranslate2.specs.transformer_spec import (
        TransformerDecoderSpec,
        TransformerEncoderSpec,
        TransformerSpec,
    )

    model = config.model
    activations = {
        "relu": Activation.RELU,
        **dict.fromkeys(("swish", "swiglu"), Activation.SWISH),
        **dict.fromkeys(("gelu", "geglu"), Activation.GELU),
        "quick_gelu": Activation.GELUSigmoid,
    }
    blocks = {
        "pre_norm": model.norm_position == "pre",
        "activation": activations[model.activation],
        "ffn_glu": model.activation in GATED,
        "rms_norm": model.norm == "rms",
        "rotary_dim": model.d_k if model.positions == "rotary" else None,
    }
    spec = TransformerSpec(
        TransformerEncoderSpec(model.num_layers, model.num_heads, **blocks),
        TransformerDecoderSpec(decoder_layers(model), model.num_heads, **blocks),
    )
    # Returned by `return_attention`: the mean of all heads of the layer.
    spec.decoder.alignment_layer = np.int16(config.decoding.attention_layer)
    spec.decoder.alignment_heads = np.int16(model.num_heads)
    return spec


def piece_names(vocabularies: VocabularyPair) -> tuple[list[str], list[str]]:
    """Returns the pieces of source and target, by which CTranslate2 looks up ids.

    Special pieces have the same names on both sides, as CTranslate2 requires. Of equal
    pieces the vocabulary uses the first, so that the others can have other names.
    """
    source, target = (side.pieces(range(side.size)) for side in vocabularies)
    source[: UNK + 1] = target[: UNK + 1]
    return distinct_pieces(source), distinct_pieces(target)


def vocabulary_map(
    shortlist: Shortlist, sources: Sequence[str], targets: Sequence[str]
) -> Iterator[str]:
    r"""Yields the lines of `vmap.txt`, with which CTranslate2 has `use_vmap=True`.

    A line is a source piece, a tab, and its candidates with spaces between; those of
    every sentence have no source piece. A piece with a space is left out.

    Example:
      >>> always, best = np.array([0, 1, 2, 3, 5]), np.array([[0]] * 4 + [[4], [0]])
      >>> pieces = ["<pad>", "<s>", "</s>", "<unk>", "a", "b"]
      >>> list(vocabulary_map(Shortlist(always, best, 6), pieces, pieces))
      ['\t<s> </s> <unk> b\n', 'a\ta\n']
    """
    rows = zip(["", *sources], [shortlist.always_A, *shortlist.best_VxK], strict=True)
    for source, ids in rows:
        names = [targets[id_] for id_ in ids.tolist() if id_ != PAD]
        names = [name for name in names if name and not set(name) & {*" \t\n"}]
        if names and not set(source) & {*" \t\n"}:
            yield f"{source}\t{' '.join(names)}\n"


def suppressed_pieces(
    config: DecodingConfig, pieces: Sequence[str], tags: Iterable[int] = ()
) -> list[str]:
    """Returns the target pieces that are never generated.

    Args:
      pieces: of the target vocabulary, by id.
      tags: the ids of its tags of languages.

    Example:
      >>> suppressed_pieces(DecodingConfig(), ["<pad>", "<s>", "</s>", "<unk>"])
      ['<pad>', '<s>']
    """
    unk = [] if config.allow_unk else [UNK]
    return [pieces[id_] for id_ in (PAD, BOS, *unk, *tags)]


class CTranslate2Backend:
    """A CTranslate2 model on the CPU.

    Args:
      config: of the exported model.
      threads: that each translate batches of their own.
      adds_tag: whether CTranslate2 adds the tag of each source.

    Attributes:
      vocabularies: of the export.
      compute_type: number format of the computation, which depends on the processor.
    """

    def __init__(
        self,
        directory: Path,
        *,
        vocabularies: VocabularyPair,
        config: Config,
        threads: int = 1,
        adds_tag: bool = False,
    ):
        import ctranslate2

        # Threads of a batch wait for one another after every operation: beside another
        # program several took minutes for 100 lines that one translates in seconds.
        self._translator: Any = ctranslate2.Translator(
            str(directory), device="cpu", inter_threads=threads, intra_threads=1
        )
        self.compute_type: str = self._translator.compute_type
        self._source, self._target = piece_names(vocabularies)
        self._ids = {piece: id_ for id_, piece in enumerate(self._target)}
        self.vocabularies, self._config = vocabularies, config.decoding
        self._positions, self._begin = exported_positions(config), int(adds_tag)
        tags = vocabularies.target.tags.values()
        self._suppressed = suppressed_pieces(config.decoding, self._target, tags)

    def search(
        self, lines: Sequence[str], *, greedy: bool, **languages: str | None
    ) -> list[Output]:
        """Translates with CTranslate2 within the length limits of this package.

        `languages` are those of `split_tags`, by default of the tags, if there are any.
        Its alpha is the exponent of n, whatever the configuration divides by. A call
        has one limit, so lines of equal length are translated in one.
        """
        side = self.vocabularies.source
        named = {"target_language": "", **languages}
        texts, tags, forced = side.split_tags(lines, **named)
        encoded = zip(tags, side.encode(texts), strict=True)
        sources = [[*tag, *ids] for tag, ids in encoded]
        found = self.outputs(sources, forced, greedy=greedy)
        texts = self.vocabularies.target.decode(found)
        return [Output(*pair) for pair in zip(texts, found, strict=True)]

    def outputs(
        self,
        sources: Sequence[Sequence[int]],
        prefixes: Sequence[Sequence[int]],
        *,
        greedy: bool = False,
    ) -> list[tuple[int, ...]]:
        """Searches for the best output of each source.

        Args:
          sources: subwords without eos.
          prefixes: with which each output must begin.

        Returns:
          The tokens of each, with the eos unless it reached its limit.
        """
        by_length = sorted(range(len(sources)), key=lambda number: len(sources[number]))
        results: dict[int, Any] = {}
        for length, group in groupby(by_length, lambda number: len(sources[number])):
            numbers = list(group)
            limit = min(
                length + self._config.max_extra_tokens,
                self._config.longest_output(length + 1),
                self._positions,
            )
            forced = [self._targets(prefixes[number]) for number in numbers]
            some = self._translator.translate_batch(
                [self._sources(sources[number]) for number in numbers],
                beam_size=1 if greedy else self._config.beam_size,
                length_penalty=0 if greedy else self._config.length_penalty,
                target_prefix=forced if any(forced) else None,
                max_input_length=0,
                max_decoding_length=limit,
                min_decoding_length=self._config.min_tokens,
                suppress_sequences=[[piece] for piece in self._suppressed],
                return_end_token=True,
                max_batch_size=64,
                asynchronous=True,
            )
            results.update(zip(numbers, some, strict=True))
        found = (results[number].result() for number in range(len(sources)))
        return [tuple(self._ids[piece] for piece in one.hypotheses[0]) for one in found]

    def score(self, pairs: Sequence[Subwords]) -> list[Logs]:
        """Scores given tokens; CTranslate2 appends eos itself."""
        results = self._translator.score_batch(
            [self._sources(source) for source, _ in pairs],
            [self._targets(target) for _, target in pairs],
            max_batch_size=64,
            max_input_length=0,
        )
        return [np.asarray(result.log_probs, np.float32) for result in results]

    def _sources(self, ids: Sequence[int]) -> list[str]:
        return [self._source[id_] for id_ in ids[self._begin :]]

    def _targets(self, ids: Sequence[int]) -> list[str]:
        return [self._target[id_] for id_ in ids]
