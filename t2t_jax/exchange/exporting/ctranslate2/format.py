"""Converts a Transformer to a CTranslate2 model, which needs neither JAX nor Python.

CTranslate2 supports the paper's architecture with post- and pre-norm, but not the
recurrent baseline. Measured with version 4.8.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import math
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import numpy.typing as npt

from t2t_jax.config import Config
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.errors import UserError
from t2t_jax.exchange.cards import fill_template
from t2t_jax.exchange.exporting.backends import Backend
from t2t_jax.exchange.exporting.base import ExportSpec, Original
from t2t_jax.exchange.exporting.ctranslate2.backend import (
    CTranslate2Backend,
    piece_names,
    suppressed_pieces,
)
from t2t_jax.exchange.exporting.verification import FLOAT32, Tolerance
from t2t_jax.functional.positions import sinusoidal_positions
from t2t_jax.model.config import TransformerConfig, decoder_layers
from t2t_jax.types import BOS, EOS, UNK, Params

_Matrix = npt.NDArray[np.float32]

_PAPERS_PENALTY = "the paper by ((5 + n) / 6)^alpha"
_SHRINKING = (
    "Its beam keeps its width, where this model's search\ngives a place of it to each "
    "finished output."
)

MIN_POSITIONS = 2048  # CTranslate2's own default number of sinusoids


@dataclasses.dataclass(frozen=True)
class CTranslate2Format:
    """CTranslate2 models, with the vocabularies beside them."""

    library: str = "ctranslate2"
    tags: tuple[str, ...] = ()
    verified_with: str = "CTranslate2"
    tolerance: Tolerance = FLOAT32

    def check_supported(self, config: Config) -> None:
        """Checks that CTranslate2 is installed, and supports the model."""
        require_transformer(config)
        require_ctranslate2()

    def write(self, to: Path, original: Original, spec: ExportSpec) -> None:
        """Writes the model, quantized if asked for, and the vocabularies."""
        write_tokenizers(to, original.model.vocabularies)
        write_ctranslate2(
            to,
            original.model.params,
            config=original.config,
            vocabularies=original.model.vocabularies,
            quantization=spec.quantization,
        )

    def load(self, directory: Path, original: Original) -> Backend:
        """Loads it with CTranslate2 on the CPU."""
        config, vocabularies = original.config, original.model.vocabularies
        return CTranslate2Backend(
            directory,
            vocabularies=vocabularies.load(directory, config=config.vocabulary),
            config=config.decoding,
            positions=exported_positions(config),
        )

    def usage(self, original: Original, *, name: str) -> str:
        """Describes CTranslate2's `translate_batch`."""
        config, vocabularies = original.config, original.model.vocabularies
        special = vocabularies.target.pieces(range(UNK + 1))
        suppressed = [[p] for p in suppressed_pieces(config.decoding, special)]
        # A JSON string is also a Python string.
        sentence, suppressions = (
            json.dumps(value, ensure_ascii=False)
            for value in (original.origin["examples"][0], suppressed)
        )
        code = tokenization_of(vocabularies, name=name, sentence=sentence)
        return fill_template(
            "ctranslate2",
            name=name,
            packages=code.packages,
            setup=code.setup,
            encode=code.encode,
            decode=code.decode.format("found[0].hypotheses[0]"),
            note=f"\n\n{code.note}" if code.note else "",
            suppressed=suppressions,
            positions=exported_positions(config),
            decoding=config.decoding,
            search=_search(config.decoding),
        )


def _search(config: DecodingConfig) -> dict[str, str]:
    """Returns arguments of CTranslate2's search, and in what it differs from ours."""
    limit = f"len(pieces) + {config.max_extra_tokens}"
    if config.max_length_ratio:
        limit += f", math.ceil({config.max_length_ratio:g} * (len(pieces) + 1))"
    is_power = config.length_normalization == "power"
    here = "as this model's search does" if is_power else _PAPERS_PENALTY
    differences = f"It divides log-probabilities by n^alpha, {here}."
    if config.beam_rule == "shrinking":
        differences += f" {_SHRINKING}"
    return {
        "limit": limit,
        "imports": "import math\n" if config.max_length_ratio else "",
        "differences": differences,
    }


def fill_stacks(
    spec: Any, params: Params, *, config: TransformerConfig, positions: int
) -> None:
    """Copies all parameters of a Transformer into a specification.

    Args:
      spec: `ctranslate2.specs.TransformerSpec` with as many layers, heads and norms.
      positions: number of sinusoids.
    """
    # Copies, as CTranslate2 quantizes matrices in place.
    params = jax.tree.map(np.array, params)
    tables = {name: part["table"] for name, part in _matrices(params).items()}
    for side, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        part = params[side]
        stack.scale_embeddings = config.scale_embeddings
        stack.position_encodings.encodings = _positions(part, config, positions)
        if config.norm_position == "pre":
            _fill_norm(stack.layer_norm, part["final_norm"])
        for number, layer in enumerate(stack.layer):
            _fill_layer(layer, part[f"layer_{number}"], config)
    spec.encoder.embeddings[0].weight = tables["source"]
    spec.decoder.embeddings.weight = tables["target"]
    spec.decoder.projection.weight = tables["pre_softmax"]
    if config.output_bias:
        spec.decoder.projection.bias = _matrices(params)["pre_softmax"]["bias"]
    spec.decoder.start_from_zero_embedding = config.start == "zero"


def _matrices(params: Params) -> dict[str, Params]:
    target = params.get("target_embedding", params.get("embedding"))
    return {
        "source": params.get("source_embedding", target),
        "target": target,
        "pre_softmax": params.get("pre_softmax", target),
    }


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
    attentions = [("self_attention", layer.self_attention, True)]
    if "cross_attention" in params:
        attentions.append(("cross_attention", layer.attention, False))
    for name, spec, is_self in attentions:
        _fill_attention(spec, params[name], is_self=is_self)
        _fill_norm(spec.layer_norm, params[f"{name}_norm"])
        spec.queries_scale = scale
    inner_and_outer = (layer.ffn.linear_0, layer.ffn.linear_1)
    for name, spec in zip(("inner", "outer"), inner_and_outer, strict=True):
        spec.weight = params["feed_forward"][name]["kernel"].T
        spec.bias = params["feed_forward"][name]["bias"]
    _fill_norm(layer.ffn.layer_norm, params["feed_forward_norm"])


def _fill_norm(spec: Any, params: Params) -> None:
    spec.gamma, spec.beta = params["scale"], params["bias"]


def _fill_attention(spec: Any, params: Params, *, is_self: bool) -> None:
    kernels = {name: part["kernel"] for name, part in params.items()}
    depth = max(kernels["key"].shape[2], kernels["value"].shape[2])
    names = ("query", "key", "value")
    inputs = [names] if is_self else [names[:1], names[1:]]
    for linear, together in zip(spec.linear, inputs, strict=False):
        rows = [_heads_first(kernels[name], depth) for name in together]
        linear.weight = np.concatenate(rows)
        if "bias" in params["query"]:
            biases = [params[name]["bias"][None] for name in together]  # [1, H, K]
            columns = [_heads_first(bias, depth)[:, 0] for bias in biases]
            linear.bias = np.concatenate(columns)
    spec.linear[-1].weight = _heads_last(kernels["output"], depth)
    if "bias" in params["output"]:
        spec.linear[-1].bias = params["output"]["bias"]


def _heads_first(kernel_DxHxK: _Matrix, depth: int) -> _Matrix:
    """Reshapes W^Q, W^K or W^V from [D, H, K] to [H * depth, D], zero-padded."""
    d_model, heads, own = kernel_DxHxK.shape
    filled = np.pad(kernel_DxHxK, ((0, 0), (0, 0), (0, depth - own)))
    return filled.reshape(d_model, heads * depth).T


def _heads_last(kernel_HxVxD: _Matrix, depth: int) -> _Matrix:
    """Reshapes W^O from [H, Dv, D] to [D, H * depth], zero-padded."""
    heads, own, d_model = kernel_HxVxD.shape
    filled = np.pad(kernel_HxVxD, ((0, 0), (0, depth - own), (0, 0)))
    return filled.reshape(heads * depth, d_model).T


def require_ctranslate2(form: str = "ctranslate2") -> None:
    """Checks that CTranslate2 is installed, before anything is written.

    Args:
      form: `--format`, for the message.

    Raises:
      UserError: it is not.
    """
    if find_spec("ctranslate2") is None:
        raise UserError(
            f"--format={form} needs CTranslate2, which is not installed. "
            "Run: pip install 't2t-jax[export]'"
        )


def require_transformer(config: Config, form: str = "ctranslate2") -> None:
    """Checks that CTranslate2 supports the model.

    Args:
      form: `--format`, for the message.

    Raises:
      UserError: it does not.
    """
    if config.architecture != "transformer":
        raise UserError(
            f"--format={form} requires a Transformer, but --workdir holds "
            f"architecture={config.architecture!r}, which CTranslate2 does not "
            "support. Use --format=model_dir or --format=safetensors."
        )


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
    to: Path,
    params: Params,
    *,
    config: Config,
    vocabularies: VocabularyPair,
    quantization: str = "float32",
) -> None:
    """Writes a CTranslate2 model, without what splits text.

    Args:
      quantization: one of `formats.QUANTIZATIONS`.

    Raises:
      UserError: CTranslate2 is not installed, or does not support the model.
    """
    require_ctranslate2()
    require_transformer(config)
    spec = _specification(config)
    fill_stacks(spec, params, config=config.model, positions=exported_positions(config))
    model, sides = config.model, piece_names(vocabularies)
    spec.register_source_vocabulary(sides[0])
    spec.register_target_vocabulary(sides[1])
    settings = spec.config
    settings.layer_norm_epsilon = model.layer_norm_epsilon
    settings.add_source_eos = True
    settings.bos_token = sides[1][BOS]
    # With "zero", the vector of this token is not used.
    settings.decoder_start_token = sides[1][EOS if model.start == "eos" else BOS]
    settings.eos_token, settings.unk_token = sides[1][EOS], sides[1][UNK]
    spec.validate()
    spec.optimize(quantization)
    to.mkdir(exist_ok=True)
    spec.save(str(to))


def _specification(config: Config) -> Any:
    from ctranslate2.specs.common_spec import Activation
    from ctranslate2.specs.transformer_spec import TransformerSpec

    model = config.model
    activations = {
        "relu": Activation.RELU,
        "swish": Activation.SWISH,
        "gelu": Activation.GELU,
        "quick_gelu": Activation.GELUSigmoid,
    }
    spec = TransformerSpec.from_config(
        (model.num_layers, decoder_layers(model)),
        model.num_heads,
        pre_norm=model.norm_position == "pre",
        activation=activations[model.activation],
    )
    # Returned by `return_attention`: the mean of all heads of the layer.
    spec.decoder.alignment_layer = np.int16(config.decoding.attention_layer)
    spec.decoder.alignment_heads = np.int16(model.num_heads)
    return spec


_SENTENCEPIECE = """\
import ctranslate2, sentencepiece

source = sentencepiece.SentencePieceProcessor("{name}/{source}")
target = sentencepiece.SentencePieceProcessor("{name}/{target}")"""
_OWN = """\
import ctranslate2
from t2t_jax.data.vocabulary.vocabulary import Vocabulary

source = Vocabulary.load("{name}/{source}")
target = Vocabulary.load("{name}/{target}")
ids = {{piece: id_ for id_, piece in enumerate(target.pieces(range(target.size)))}}"""


class Tokenization(NamedTuple):
    """Python code.

    Attributes:
      packages: to install.
      setup: makes `source` and `target`.
      encode: the pieces of a sentence.
      decode: a text of pieces.
      note: what the text needs besides, a sentence, or "".
    """

    packages: str
    setup: str
    encode: str
    decode: str
    note: str = ""


def tokenization_of(
    vocabularies: VocabularyPair, *, name: str, sentence: str
) -> Tokenization:
    """Returns the code for the vocabularies of a model.

    Args:
      name: of the directory with what `write_tokenizers` wrote.
      sentence: Python's literal of an example.
    """
    shared = vocabularies.shared
    names = ["vocab.model" if shared else "vocab_source.model", "vocab.model"]
    tables = [_table_of(side) for side in vocabularies]
    kinds = {table.get("kind", "") for table in tables}
    if kinds <= {"", "sentencepiece_table"}:
        for number, side in enumerate(("source", "target")):
            if tables[number]:
                names[number] = f"{side}.spm"
        return Tokenization(
            packages="CTranslate2 and SentencePiece (`pip install ctranslate2 "
            "sentencepiece`)",
            setup=_SENTENCEPIECE.format(name=name, source=names[0], target=names[1]),
            encode=f"source.encode({sentence}, out_type=str)",
            decode="target.decode({})",
            note=_note(tables[0]),
        )
    return Tokenization(
        packages="CTranslate2, and t2t_jax for its vocabulary",
        setup=_OWN.format(name=name, source=names[0], target=names[1]),
        encode=f"source.pieces(source.encode([{sentence}])[0])",
        decode="target.decode([[ids[piece] for piece in {}]])[0]",
    )


def write_tokenizers(to: Path, vocabularies: VocabularyPair) -> None:
    """Writes the vocabularies, and the SentencePiece models of tables."""
    vocabularies.save(to)
    for name, side in zip(("source", "target"), vocabularies, strict=True):
        if encoded := _table_of(side).get("sentencepiece"):
            (to / f"{name}.spm").write_bytes(base64.b64decode(encoded))


def _table_of(vocabulary: Vocabulary) -> dict[str, Any]:
    """Returns the table of a vocabulary of another toolkit, or {}."""
    is_table = vocabulary.model.startswith(b"{")
    table: dict[str, Any] = json.loads(vocabulary.model) if is_table else {}
    return table


def _note(table: dict[str, Any]) -> str:
    notes = []
    if table.get("language_tokens"):
        notes.append(
            "A language token such as `>>de<<` is a piece of its own, before those of "
            "the sentence."
        )
    if language := table.get("moses"):
        notes.append(
            "Sentences must be normalized first, with "
            f'`sacremoses.MosesPunctNormalizer("{language}").normalize`.'
        )
    return " ".join(notes)
