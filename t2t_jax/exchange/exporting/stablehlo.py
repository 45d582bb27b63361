"""Exports the search as StableHLO, which needs only JAX to run.

Three programs of `jax.export`, for any number of sentences of any length: the search of
the configuration, greedy search, and the scores of given translations. The parameters
are a file beside them and an argument, since the compiler copies constants: with the
paper's base model (252 MB, two CPU cores, JAX 0.10.2) the first result took 10.7 s and
3.3 GB of memory with the parameters inside, and 4.2 s and 0.8 GB with them beside.
"""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, cast

import jax
import numpy as np
import numpy.typing as npt
from jax import export

from t2t_jax.config import Config
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.vocabulary import table_of
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.engine.batching import padded_rows
from t2t_jax.decoding.scoring.scorer import Logs, Subwords
from t2t_jax.decoding.scoring.teacher_forcing import token_log_probabilities
from t2t_jax.decoding.search.beam_search import advance, collect, init_state
from t2t_jax.decoding.search.beam_state import BeamSearch
from t2t_jax.decoding.search.length_penalty import per_sentence_limits
from t2t_jax.decoding.search.static_params import BeamParams, params_from_config
from t2t_jax.devices.sharding.rules import leaves_by_path, path_of
from t2t_jax.errors import UserError, require_package
from t2t_jax.exchange.cards import fill_usage
from t2t_jax.exchange.exporting.base import (
    ExportFormat,
    ExportSpec,
    Original,
    divisor,
    untagged,
    write_json,
)
from t2t_jax.exchange.exporting.verification import (
    SAME_SEARCH,
    Backend,
    Output,
    check_equal,
    search_config,
)
from t2t_jax.model.architectures import step_model
from t2t_jax.run.inference.model import TranslationModel, learned_positions
from t2t_jax.types import BOS, EOS, PAD, UNK, Array, Params

PLATFORMS = ("cpu", "cuda", "tpu")

# Every step attends to all of the cache, so it grows; each length is compiled.
_CACHE_LENGTHS = (32, 64, 128)

# For six months newer releases of JAX read a file: its promise. The shortest six
# months have 181 days.
_READABLE = datetime.timedelta(days=180)
_Flat: TypeAlias = Mapping[str, Array]
_Results: TypeAlias = tuple[jax.Array, jax.Array, jax.Array]


class StableHLOFormat(ExportFormat):
    """Programs of `jax.export`, with parameters and vocabularies beside them."""

    library = "jax"
    verified_with = "the exported programs"
    tags = ("stablehlo", "jax-export")
    tolerance = SAME_SEARCH

    def check_supported(self, config: Config) -> None:
        """Checks that flatbuffers is installed, and that the model searches."""
        # In which JAX writes programs.
        require_package("flatbuffers", user="--format=stablehlo", extra="export")
        if config.decoding.sample:
            raise UserError(
                "--format=stablehlo exports beam search, but config.decoding.sample is "
                "set. Use --config.decoding.sample=false."
            )

    def write(self, to: Path, original: Original, spec: ExportSpec) -> None:
        """Writes the programs, the parameters, vocabularies and `config.json`."""
        model, decoding = original.model, original.config.decoding
        if model.vocabularies.target.reads_source:
            raise UserError(
                "--format=stablehlo does not support models whose outputs begin with "
                "the tag of their language, as its search forces no token. Use "
                "--format=ctranslate2 or --format=m2m_100."
            )
        parameters = leaves_by_path(jax.tree.map(np.asarray, model.params))
        np.savez(to / PARAMETERS, **parameters)
        extra = decoding.max_extra_tokens
        greedy = search_config(decoding, greedy=True)
        lowered = {
            MODEL: _lower(_search(model, decoding), "b, s", model=model, extra=extra),
            GREEDY: _lower(_search(model, greedy), "b, s", model=model, extra=extra),
            SCORE: _lower(_score(model), "b, s", "b, t", model=model, extra=0),
        }
        for name, program in lowered.items():
            (to / name).write_bytes(program.serialize())
        model.vocabularies.save(to)
        write_json(to / "config.json", _facts(decoding))

    def load(self, directory: Path, original: Original) -> Backend:
        """Loads them with JAX alone, and compares the parameters bit by bit."""
        with np.load(directory / PARAMETERS) as written:
            check_equal(leaves_by_path(original.model.params), dict(written))
        config, own = original.config.vocabulary, original.model.vocabularies
        read = own.load(directory, config=config)
        return StableHLOBackend(directory, vocabularies=read)

    def usage(self, original: Original, *, name: str) -> str:
        """Describes the programs, their arguments, and until when they can be read."""
        config = original.config
        positions, length = learned_positions(original.model.module), "any length"
        if positions:
            length = f"at most {positions - config.decoding.max_extra_tokens} tokens"
        vocabularies = original.model.vocabularies
        bare, languages = untagged(original)
        # Nothing but this package reads a table of pieces.
        has_tables = any(map(table_of, vocabularies))
        example, ids = original.origin["examples"][:1], [EOS]
        if has_tables:
            ids = vocabularies.source.encode_sources(example, target_language="")[0]
            ids.append(EOS)
        return fill_usage(
            "stablehlo",
            bare,
            name,
            tags=[vocabularies.source.tags[one] for one in languages],
            has_tables=has_tables,
            source="vocab" if vocabularies.shared else "vocab_source",
            ids=ids,
            eos=EOS,
            penalty=divisor(config.decoding),
            length=length,
            facts=_facts(config.decoding),
            platforms=", ".join(PLATFORMS),
        )


def _search(
    model: TranslationModel, decoding: DecodingConfig
) -> Callable[[_Flat, Array], _Results]:
    """Returns (parameters, source_BxS) -> (tokens_BxT, scores_B, lengths_B).

    It is `beam_search` with a cache that grows, in one program.
    """
    # Sampling is refused before.
    found = params_from_config(dataclasses.replace(decoding, n_best=1, mbr="none"))
    forbidden = tuple(model.vocabularies.target.tags.values())
    search_params = dataclasses.replace(cast(BeamParams, found), forbidden=forbidden)
    # Not by max_length_ratio, as S is symbolic: that is a limit of each sentence.
    extra = decoding.max_extra_tokens

    def translate(parameters: _Flat, source_BxS: Array) -> _Results:
        own_model = step_model(model.module, _nested(parameters, model.params))
        longest = source_BxS.shape[1] + extra
        ends = (*(end for end in _CACHE_LENGTHS if end <= extra), longest)
        memory = own_model.encode(source_BxS)
        search = BeamSearch(own_model, search_params)
        limits_B = per_sentence_limits(
            source_BxS, search_params, max_extra_tokens=extra, max_length=longest
        )
        state = init_state(
            search, memory, limits_B=limits_B, max_length=longest, cache_length=ends[0]
        )
        for end in ends:
            state = state._replace(cache=own_model.grow(state.cache, end))
            state = advance(search, state, memory=memory, until=end)
        best = collect(search, state)
        return best.tokens_BxWxT[:, 0], best.scores_BxW[:, 0], best.lengths_BxW[:, 0]

    return translate


def _score(model: TranslationModel) -> Callable[[_Flat, Array, Array], jax.Array]:
    """Returns (parameters, source_BxS, targets_BxT) -> log-probabilities [B, T]."""

    def score(parameters: _Flat, source_BxS: Array, targets_BxT: Array) -> jax.Array:
        return token_log_probabilities(
            model.module.apply,
            {"params": _nested(parameters, model.params)},
            source_BxS=source_BxS,
            target_outputs_BxT=targets_BxT,
        )

    return score


def _nested(parameters: _Flat, like: Params) -> Params:
    return jax.tree.map_with_path(lambda path, _: parameters[path_of(path)], like)


def _lower(
    program: Callable[..., Any], *axes: str, model: TranslationModel, extra: int
) -> export.Exported:
    """Lowers a program for all platforms.

    Args:
      axes: the symbolic axes of each array of tokens.
      extra: positions after the longest row that it needs.
    """
    positions = learned_positions(model.module)
    limits = [f"{axis[-1]} <= {positions - extra}" for axis in axes if positions]
    symbolic = partial(export.symbolic_shape, scope=export.SymbolicScope(limits))
    tokens = [jax.ShapeDtypeStruct(symbolic(shape), np.int32) for shape in axes]
    parameters = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), leaves_by_path(model.params)
    )
    return export.export(jax.jit(program), platforms=PLATFORMS)(parameters, *tokens)


def _facts(decoding: DecodingConfig) -> dict[str, Any]:
    """Returns the content of config.json."""
    # The keys that `beam_search` follows.
    names = {"max_extra_tokens", *(one.name for one in dataclasses.fields(BeamParams))}
    known = dataclasses.asdict(dataclasses.replace(decoding, n_best=1, mbr="none"))
    written = datetime.datetime.now(datetime.UTC).date()
    inputs = ["parameters", "source [b, s] int32"]
    return {
        "format": "stablehlo",
        "programs": {
            MODEL: {
                "inputs": inputs,
                "outputs": ["tokens [b, t] int32", "scores [b]", "lengths [b] int32"],
                "search": {key: value for key, value in known.items() if key in names},
            },
            GREEDY: {"like": MODEL, "search": "greedy"},
            SCORE: {
                "inputs": [*inputs, "targets [b, t] int32"],
                "outputs": ["log-probabilities [b, t]"],
            },
        },
        "parameters": PARAMETERS,
        "ids": {"pad": PAD, "bos": BOS, "eos": EOS, "unk": UNK},
        "platforms": list(PLATFORMS),
        "jax": jax.__version__,
        "written": written.isoformat(),
        "readable_until": (written + _READABLE).isoformat(),
    }


MODEL, GREEDY, SCORE = "model.stablehlo", "greedy.stablehlo", "score.stablehlo"
PARAMETERS = "parameters.npz"

_ROWS = 16  # of a batch: all have one shape, as each shape is compiled


class StableHLOBackend:
    """The programs of a directory, run as its README.md does, with JAX alone."""

    def __init__(self, directory: Path, *, vocabularies: VocabularyPair):
        self._directory, self._vocabularies = directory, vocabularies
        with np.load(directory / PARAMETERS) as parameters:
            self._parameters = jax.device_put(dict(parameters), jax.local_devices()[0])

    def search(self, lines: Sequence[str], *, greedy: bool) -> list[Output]:
        """Translates with the search of the configuration, or greedily."""
        program = self._program(GREEDY if greedy else MODEL)
        sources = self._vocabularies.source.encode_sources(lines, target_language="")
        found: list[tuple[int, ...]] = []
        for source_BxS in _batches(sources):
            tokens, _, lengths = map(np.asarray, program(self._parameters, source_BxS))
            rows = zip(tokens.tolist(), lengths, strict=True)
            found += [tuple(row[:length]) for row, length in rows]
        del found[len(lines) :]
        texts = self._vocabularies.target.decode(found)
        return [Output(*pair) for pair in zip(texts, found, strict=True)]

    def score(self, pairs: Sequence[Subwords]) -> list[Logs]:
        """Scores given tokens."""
        program, found = self._program(SCORE), []
        sides = (_batches([pair[side] for pair in pairs]) for side in (0, 1))
        for source_BxS, target_BxT in zip(*sides, strict=True):
            found += list(np.asarray(program(self._parameters, source_BxS, target_BxT)))
        return [row[: len(to) + 1] for row, (_, to) in zip(found, pairs, strict=False)]

    def _program(self, name: str) -> Callable[..., Any]:
        written = bytearray((self._directory / name).read_bytes())
        return jax.jit(export.deserialize(written).call)


def _batches(rows: Sequence[Sequence[int]]) -> Iterator[npt.NDArray[np.int32]]:
    """Yields the rows with their eos, then pad; the last batch has empty rows."""
    longest = 1 + max(map(len, rows), default=0)
    for start in range(0, len(rows), _ROWS):
        yield padded_rows(rows[start : start + _ROWS], _ROWS, longest)
