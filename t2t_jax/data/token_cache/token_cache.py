"""Encoded corpora on disk: memory-mapped token ids and offsets.

A cache is a directory named by a hash of its inputs. It is built in `NAME.building` and
renamed atomically, so readers find a complete cache or none. Concurrent builders of the
same cache wait for each other.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from t2t_jax.data.arrays import Hashes, Integers, Lengths
from t2t_jax.data.config import SIDES, DataConfig
from t2t_jax.data.corpora.corpus import (
    Corpus,
    PairLocation,
    direction_of,
    directions_of,
    languages_of,
    locator,
    parts_of,
    short_name,
    tag_of,
    weights_by_size,
)
from t2t_jax.data.files.progress_bar import ProgressBar
from t2t_jax.data.token_cache.builder import META_FILE, TOKEN_DTYPES, build_cache
from t2t_jax.data.token_cache.cache_paths import (
    exclusive_lock,
    partial_path,
    publish,
    remove_abandoned_builds,
    remove_stale_build,
    token_caches,
    write_errors,
)
from t2t_jax.data.token_cache.filters import LENGTHS_VERSION
from t2t_jax.data.token_cache.filters import VERSION as FILTERS_VERSION
from t2t_jax.data.token_cache.shards import LINES, WORDS, is_valid, read_record
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.tokenizers import shown_tags
from t2t_jax.data.vocabulary.vocabulary import Vocabulary, has_piece
from t2t_jax.errors import ConfigError, DataError, OutputError


class TokenSide(NamedTuple):
    """One language of an encoded corpus.

    Attributes:
      tokens: all sentences concatenated, each followed by eos.
      offsets: [N + 1] begin of each sentence in `tokens`, and the end; int64.
    """

    tokens: Integers
    offsets: Integers

    def ids(self, numbers: Integers) -> list[list[int]]:
        """Returns the tokens of some sentences, eos included."""
        spans = zip(self.offsets[numbers], self.offsets[numbers + 1], strict=True)
        return [self.tokens[begin:end].tolist() for begin, end in spans]

    @property
    def lengths(self) -> Integers:
        """[N] tokens of each sentence, eos included; int32, not cached."""
        lengths = np.empty(len(self.offsets) - 1, np.int32)
        # An int64 temporary would take most of the time.
        np.subtract(self.offsets[1:], self.offsets[:-1], out=lengths, casting="unsafe")
        return lengths


def memory_map(path: Path, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Memory-maps a file of numbers as a flat array."""
    # A plain array view: indexing np.memmap is several times slower.
    return np.asarray(np.memmap(path, dtype, "r"))


FORMAT = 4


@dataclass(frozen=True)
class TokenCache:
    """An encoded corpus of N pairs.

    Attributes:
      line_numbers: [N] line of each kept pair in its part of the corpus, from 1.
      meta: content of `meta.json`: inputs and statistics.
      hashes: of the sentences of each side, [N] both.
      weights: of the parts.
      corpora: the parts, with the specs of this run.
      source_words: unique hashes of the words of the source sentences, sorted.
    """

    source: TokenSide
    target: TokenSide
    line_numbers: Integers
    meta: dict[str, Any]
    hashes: tuple[Hashes, ...] = ()
    weights: tuple[float, ...] = (1.0,)
    corpora: tuple[Corpus, ...] = ()
    source_words: Hashes | None = None

    @property
    def num_pairs(self) -> int:
        """Pairs kept, N."""
        return len(self.line_numbers)

    @cached_property
    def lengths(self) -> Lengths:
        """[N] tokens of each sentence, eos included, of both sides."""
        return self.source.lengths, self.target.lengths

    @property
    def part_pairs(self) -> tuple[int, ...]:
        """Pairs kept of each part of the corpus, in order."""
        parts = self.meta.get("parts", [{"counts": {"kept": self.num_pairs}}])
        return tuple(part["counts"]["kept"] for part in parts)

    def locate(self, pair: int) -> PairLocation:
        """Returns corpus and line of pair number `pair`, from 0."""
        part = int(np.searchsorted(np.cumsum(self.part_pairs), pair, side="right"))
        return locator(self.corpora[part])(int(self.line_numbers[pair]))

    @property
    def counts(self) -> dict[str, int]:
        """Pairs read, kept, and dropped by each of `filters.REASONS`."""
        return dict(self.meta["counts"])

    @property
    def fingerprint(self) -> str:
        """SHA-256 of corpus, vocabularies, filters and format."""
        return str(self.meta["fingerprint"])


def build_or_open(
    corpus: Corpus,
    vocabularies: VocabularyPair,
    *,
    config: DataConfig,
    progress: ProgressBar | None = None,
) -> TokenCache:
    """Opens the token cache of a corpus; encodes the corpus if there is none.

    A damaged cache is replaced; an unfinished build is resumed. Weights are not stored.

    Raises:
      ConfigError: `data.cache_dir` is in a home directory that does not exist; or
        there are weights besides `data.temperature`.
      DataError: the text is invalid, or no pair of a part is kept; or the vocabulary
        has no tag of a target language.
      OSError: the disk is full or fails.
      OutputError: the cache cannot be written.
      UnavailableError: an encoding process died.
    """
    check_languages(corpus, vocabularies.source)
    _check_tags(corpus, vocabularies.source, config)
    progress, home = progress or ProgressBar(), token_caches(config)
    with progress.heartbeat(f"Checking the token cache of {short_name(corpus.spec)}"):
        inputs = _inputs_of(corpus, vocabularies, config)
        fingerprint = hashlib.sha256(json.dumps(inputs).encode()).hexdigest()
        path = home / f"tokens-{fingerprint[:24]}"
        cache = _open(path, corpus, fingerprint, config.temperature)
    building = partial_path(path)
    if cache is not None:
        remove_stale_build(building)
        return cache
    meta = {"fingerprint": fingerprint, "spec": corpus.spec, **inputs}
    with write_errors(home):
        remove_abandoned_builds(home)
        with exclusive_lock(building, progress):
            if _open(path, corpus, fingerprint, 1.0) is None:  # not built meanwhile
                how: Any = {"config": config, "meta": meta, "progress": progress}
                publish(build_cache(building, corpus, vocabularies, **how), path)
            shutil.rmtree(building, ignore_errors=True)
    if (cache := _open(path, corpus, fingerprint, config.temperature)) is None:
        fault = "the token cache differs from what was written"
        raise OutputError(f"{path}: {fault}. Change config.data.cache_dir.")
    return cache


def check_languages(corpus: Corpus, vocabulary: Vocabulary) -> None:
    """Raises a DataError if a vocabulary lacks tags of a corpus's languages."""
    tags, reads_source = vocabulary.tags, vocabulary.reads_source
    name = short_name(corpus.spec)
    needed = {one for pair in directions_of(corpus) for one in pair[not reads_source :]}
    if missing := sorted(needed - tags.keys()):
        target, has = "target " * (not reads_source), shown_tags(tags, missing[0])
        raise DataError(
            f"{name}: the vocabulary must have a tag of each {target}language, and has "
            f"none of {', '.join(missing)}; it has tags of {has or 'none'}. Change the "
            "languages after #, or train another vocabulary."
        )


def _check_tags(corpus: Corpus, vocabulary: Vocabulary, config: DataConfig) -> None:
    """Checks the tags of a corpus's parts, and their weights beside a temperature."""
    name, parts = short_name(corpus.spec), parts_of(corpus)
    for tag in dict.fromkeys(tag_of(part) for part, _ in parts):
        if tag and not has_piece(vocabulary, tag):
            rule = f"the vocabulary must have {tag!r} as a piece that is not split"
            change = f"Train another, with config.vocabulary.symbols={tag!r}."
            raise DataError(f"{name}: {rule}. {change}")
    named = sorted({one for part, _ in parts for one in languages_of(part)})
    if unknown := sorted(config.filter_names.get("script", {}).keys() - {*named}):
        such = "-".join(f"{one}=latin" for one in named[:2])
        raise ConfigError(
            f"data.filters={config.filters!r} names a script of {', '.join(unknown)}, "
            f"and the languages of {name} are {', '.join(named)}. Set "
            f"config.data.filters=script:{such}, for example."
        )
    if config.temperature > 1 and {weight for _, weight in parts} != {1.0}:
        fault = f"computes the weights of the corpora, and {name!r} has weights"
        change = "Leave them out, or set config.data.temperature=1."
        raise ConfigError(f"data.temperature={config.temperature:g} {fault}. {change}")


def _inputs_of(
    corpus: Corpus, vocabularies: VocabularyPair, config: DataConfig
) -> dict[str, Any]:
    """Returns everything that the content of a cache depends on."""
    inputs: dict[str, Any] = {"format": FORMAT, "corpus": corpus.fingerprint()}
    inputs["vocabulary"] = vocabularies.fingerprint
    for name in ("max_length", "max_length_ratio", "drop_copies", "drop_duplicates"):
        inputs[name] = getattr(config, name)
    if config.filters:  # Else the cache is the one that it was without the key.
        named = [languages_of(part) for part, _ in parts_of(corpus)]
        inputs["filters"] = [config.filters, FILTERS_VERSION, named]
    tagged = [tag_of(one) or any(direction_of(one)) for one, _ in parts_of(corpus)]
    if config.max_length_ratio and any(tagged):
        inputs["lengths_version"] = LENGTHS_VERSION
    if vocabularies.source.reads_source:
        # The fingerprint of a corpus has the languages of its targets alone.
        inputs["directions"] = [direction_of(part) for part, _ in parts_of(corpus)]
    return inputs


def _open(
    path: Path, corpus: Corpus, fingerprint: str, temperature: float
) -> TokenCache | None:
    """Maps a cache; None if it is missing or damaged."""
    try:
        meta = read_record(path / META_FILE)
        # Verify every byte, one second for 3 GB: training would not notice corruption.
        if meta["fingerprint"] != fingerprint or not is_valid(path, meta["files"]):
            return None
        # A shared cache directory is not trusted: with dtype "O" NumPy would
        # dereference the file's bytes as pointers.
        if meta["dtype"] not in TOKEN_DTYPES:
            return None

        def mapped(kind: str, dtype: npt.DTypeLike) -> list[npt.NDArray[Any]]:
            return [memory_map(path / f"{side}.{kind}", dtype) for side in SIDES]

        tokens, offsets = mapped("tokens", meta["dtype"]), mapped("offsets", np.int64)
        parts, corpora = parts_of(corpus), tuple(one for one, _ in parts_of(corpus))
        every = zip(corpora, meta["parts"], strict=True)
        counted = [{"spec": one.spec, **part} for one, part in every]
        kept = [part["counts"]["kept"] for part in counted]
        source, target = map(TokenSide, tokens, offsets)
        cache = TokenCache(
            source,
            target,
            memory_map(path / LINES, np.int64),
            {**meta, "spec": corpus.spec, "parts": counted},
            tuple(mapped("hashes", np.uint64)),
            weights=weights_by_size(parts, kept, temperature=temperature),
            corpora=corpora,
            source_words=np.fromfile(path / WORDS, np.uint64),
        )
        return cache if _is_consistent(cache) else None
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return None


def _is_consistent(cache: TokenCache) -> bool:
    """Returns whether counts and arrays are of as many pairs and tokens."""
    sides = cache.source, cache.target
    sizes = {len(side.offsets) - 1 for side in sides} | set(map(len, cache.hashes))
    is_whole = all(side.offsets[-1] == len(side.tokens) for side in sides)
    return is_whole and sizes | {sum(cache.part_pairs)} == {cache.num_pairs}
