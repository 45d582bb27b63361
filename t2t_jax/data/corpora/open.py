"""Opens the corpus that a spec names: a prefix and what follows it.

=====================================  ===============================================
`phrasebook:SPLIT:COUNT`               the embedded English-German corpus
`text:SOURCE,TARGET`                   two files, aligned line by line
`text:A.en+B.en,A.de+B.de`             several, each two of them aligned by themselves
`tsv:FILE`, `tsv:A+B`                  source, tab, target in every line
`tsv:FILE#3,1`                         the columns of source and target, from 1
`trees:FILE`, `trees:A,B#tags`          trees in Penn brackets: words, and their tree
                                       with XX for words, or parts of speech, or
                                       with `#numbers` 1, 2, 3 …
`tfds:NAME/CONFIG:SPLIT`               a translation set of TensorFlow Datasets, in
                                       the direction of its name
`tfds:NAME/CONFIG:SPLIT:SOURCE-TARGET` the same, in the given direction
`CORPUS#<BT>`                          the same, with `<BT> ` before each source
`CORPUS#en-de`                         the same, with its languages: the tag of the
                                       target, `>>de<<`, is added to each source
`CORPUS#en-de,de-en`                   the same in both directions, as two corpora
=====================================  ===============================================

Files are plain or .gz. All but `tfds:` may end in a slice: `text:all.en,all.de[1000:]`
skips the first 1,000 pairs, `[:1000]` keeps only these, `[:1%]` the first hundredth.
With `tfds:` the slice is part of the split, in TFDS's syntax: `train[:1%]:en-de`.

Languages follow all else but the slice: `text:all.en,all.de#en-de[1000:]`,
`tsv:FILE#3,1#en-de,de-en`, `tfds:NAME/CONFIG:train:en-de#en-de`. The first direction is
that of the text as it lies, whatever order the second adds. A code is two or three
letters, and perhaps a script or region: `de`, `pt_BR`. All corpora of a mixture name
their languages, or none does. A tag of `vocabulary.symbols` that marks a corpus, such
as text that was translated back, comes before: `tsv:back.tsv#2,1#<BT>#en-de[:1000]`.

`++` joins corpora, and a number and `*` before one is its weight, from 0.001 to 1000:
how often each of its pairs is seen in an epoch.
`text:a.en,a.de++2*tsv:b.tsv++0.5*phrasebook:train:1000` reads the pairs of b.tsv twice,
and half of the phrasebook's, sampled anew each epoch. Quote `*` and `[` in a shell.

Iterating over a corpus validates it: all faults are raised together at the end of the
pass, and nothing is yielded after the first broken line. Iterating over a slice
validates the corpus that it is cut from.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from t2t_jax.data.config import DataConfig
from t2t_jax.data.corpora.corpus import (
    Corpus,
    DirectedCorpus,
    MixtureCorpus,
    Part,
    SliceCorpus,
    TaggedCorpus,
    direction_of,
    layers_of,
    parts_of,
    spec_error,
)
from t2t_jax.data.corpora.phrasebook import PhrasebookCorpus, open_phrasebook
from t2t_jax.data.corpora.text_files import TextCorpus, TsvCorpus, open_text_files
from t2t_jax.data.corpora.tfds import TfdsCorpus, open_tfds
from t2t_jax.data.corpora.tree_files import open_trees
from t2t_jax.data.files.progress_bar import Log
from t2t_jax.data.vocabulary.tokenizers import LANGUAGE_CODE
from t2t_jax.errors import ConfigError, DataError, ErrorCollector, InputMissingError

_KINDS = ("phrasebook", "text", "tfds", "trees", "tsv")
# A ++ inside a path, as in c++/news.en, is not followed by a prefix and colon. Invalid
# weights match too, so that parse_part can report them.
_JOINT = re.compile(rf"\+\+(?=(?:[^:*/,]*\*)?[a-z]+:|[^:+/,]*(?:{'|'.join(_KINDS)}):)")
_SINGLE_PLUS = re.compile(rf"\+(?=(?:[\d.]+\*)?(?:{'|'.join(_KINDS)}):)")
_WEIGHTED = re.compile(r"(?P<weight>[^:]*)\*(?P<name>[^:*]*:.*)")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")
_LEAST_WEIGHT, _MOST_WEIGHT = 0.001, 1000
_COUNTED_BYTES = 2_000_000_000  # on disk
_NO_SLICE = re.compile(r"\[[\d:%,-]*\]?$")
_DIRECTION = f"{LANGUAGE_CODE}-{LANGUAGE_CODE}"
_DIRECTIONS = re.compile(
    rf"(?P<name>.*)#(?P<directions>{_DIRECTION}(?:,{_DIRECTION})*)(?P<slice>\[.*\])?"
)
# As of #EN-DE or #en, which are not in the names of existing files.
_NO_DIRECTIONS = re.compile(r"[^#]*[^#,](?:#\d+,\d+)?#[A-Za-z_,-]*(?:\[.*\])?")
_TAGGED = re.compile(r"(?P<base>.*)#(?P<tag><[^<>#,\s]+>)")
SLICE = re.compile(r"(?P<base>.*)\[(?P<start>(?:\d+%?)?):(?P<stop>(?:\d+%?)?)\]")


def open_corpus(spec: str, *, key: str = "data.train", joiner: str = "") -> Corpus:
    """Opens the corpus that a spec names; its files exist.

    Args:
      key: the configuration key of the spec, for messages.
      joiner: `data.subword_joiner`, of `text:` and `tsv:` files.

    Raises:
      ConfigError: the spec is invalid.
      InputMissingError: a file does not exist or cannot be read.
    """
    require_joined(spec, key=key)
    errors, how = ErrorCollector(), {"key": key, "joiner": joiner}
    names = split_spec(spec) or [spec]
    parts: list[Part] = [errors.try_call(_open_part, name, **how) for name in names]
    errors.raise_if_any()
    named = [any(direction_of(one.corpus)) for p in parts for one in parts_of(p.corpus)]
    if any(named) and not all(named):
        rule = (
            "name the languages of all of its corpora or of none, as #en-de after "
            "each: a model of several languages translates no source without a tag"
        )
        raise spec_error(key, spec, rule)
    if len(parts) == 1 and parts[0].weight == 1:
        return parts[0].corpus
    # A mixture among the parts is replaced by its own parts, with its weight.
    flat = (Part(one, weight) for part, weight in parts for one, _ in parts_of(part))
    return MixtureCorpus(spec, tuple(flat))


def split_spec(spec: str) -> list[str]:
    """Splits a spec at its ++; an empty spec has no parts.

    Example:
      >>> split_spec("text:c++/a.en,c++/a.de++2*tsv:b")
      ['text:c++/a.en,c++/a.de', '2*tsv:b']
    """
    return _JOINT.split(spec) if spec else []


def reads_trees(spec: str) -> bool:
    """Returns whether all parts of a corpus are trees.

    Example:
      >>> reads_trees("trees:a.mrg++0.5*trees:b.mrg"), reads_trees("text:a.en,a.de")
      (True, False)
    """
    parts = [name.split("*")[-1] for name in split_spec(spec)]
    return bool(parts) and all(name.startswith("trees:") for name in parts)


def files_of(corpus: Corpus) -> Iterator[Path]:
    """Lists the files of lines that a corpus is read from."""
    *_, text = layers_of(corpus)
    if isinstance(text, MixtureCorpus):
        yield from chain.from_iterable(files_of(part) for part, _ in text.parts)
    elif isinstance(text, TextCorpus):
        yield from (text.source, text.target)
    elif isinstance(text, TsvCorpus):
        yield text.path


def large_file_of(corpus: Corpus) -> Path | None:
    """Returns a file whose lines take long to count: one of over 2 GB on disk."""
    sizes = ((path, path.stat().st_size) for path in files_of(corpus))
    return next((path for path, size in sizes if size > _COUNTED_BYTES), None)


def count_pairs(spec: str, *, key: str) -> dict[str, Any]:
    """Counts the pairs of the corpus that a spec names; `note` says why it cannot.

    Nothing is decoded or downloaded, and files of over 2 GB on disk are not counted. A
    missing corpus is not an error.

    Raises:
      ConfigError: the spec is invalid.

    Example:
      >>> count_pairs("phrasebook:dev:500[7:]", key="data.dev")
      {'spec': 'phrasebook:dev:500[7:]', 'pairs': 493, 'note': ''}
    """
    found: dict[str, Any] = {"spec": spec, "pairs": None, "note": ""}
    if not spec:
        return {**found, "note": f"config.{key} is empty."}
    try:
        corpus = open_corpus(spec, key=key)
        if large := large_file_of(corpus):
            note = f"{large} has over {_COUNTED_BYTES:,} bytes and is not counted."
            return {**found, "note": note}
        return {**found, "pairs": corpus.num_pairs()}
    except (DataError, InputMissingError) as error:
        return {**found, "note": "\n".join(error.problems)}


def _open_part(part: str, *, key: str, joiner: str) -> Part:
    weight, spec = parse_part(part, key=key)
    name, directions = split_directions(spec)
    if not _are_valid(spec, name, directions):
        rule = (
            "name two languages after #, as #en-de, or both directions of them, as "
            "#en-de,de-en; trees have none. A tag of sources has brackets, #<BT>, and "
            "goes with one direction"
        )
        raise spec_error(key, spec, rule)
    corpus = _open_one(name, key=key, joiner=joiner)
    return Part(_directed(corpus, spec, directions, key=key), weight)


def split_directions(part: str) -> tuple[str, list[tuple[str, str]]]:
    """Splits the directions off a part of a spec; its name keeps the slice.

    Example:
      >>> split_directions("2*tsv:a.tsv#3,1#en-de,de-en[:9]")
      ('2*tsv:a.tsv#3,1[:9]', [('en', 'de'), ('de', 'en')])
    """
    if not (found := _DIRECTIONS.fullmatch(part)):
        return part, []
    codes = (one.split("-") for one in found["directions"].split(","))
    name = found["name"] + (found["slice"] or "")
    return name, [(source, target) for source, target in codes]


def _are_valid(spec: str, name: str, directions: Sequence[tuple[str, str]]) -> bool:
    """Returns whether the directions of a spec are; `name` is the spec without them."""
    prefix, _, rest = spec.partition(":")
    if not directions:
        is_meant = prefix != "trees" and _NO_DIRECTIONS.fullmatch(rest)
        is_file = Path(SLICE.sub(r"\g<base>", rest).rpartition(",")[2]).exists()
        return not is_meant or is_file
    source, target = directions[0]
    is_tagged = _TAGGED.fullmatch(SLICE.sub(r"\g<base>", name))
    both = [(source, target), (target, source)][: 1 if is_tagged else 2]
    known = both[: len(directions)]
    return source != target and prefix != "trees" and [*directions] == known


def _directed(
    corpus: Corpus, spec: str, directions: Sequence[tuple[str, str]], *, key: str
) -> Corpus:
    """Returns a corpus in each of some directions; as it is if there are none."""
    if not directions:
        return corpus
    parts = parts_of(corpus)
    if directions[0][::-1] in {_named_languages(part.corpus) for part in parts}:
        first, given = ("-".join(one) for one in (directions[0][::-1], directions[0]))
        rule = (
            f"begin with the direction in which its text lies, #{first} by the name of "
            f"the text, and begins with {given}"
        )
        raise spec_error(key, spec, rule)
    found = [
        DirectedCorpus(f"{one.spec}#{'-'.join(to)}", one, to, is_reversed=number > 0)
        for number, to in enumerate(directions)
        for one, _ in parts
    ]
    return _joint(spec, found)


def _joint(spec: str, corpora: Sequence[Corpus]) -> Corpus:
    """Returns a corpus of several that are not mixtures, each with weight 1."""
    if len(corpora) == 1:
        return corpora[0]
    return MixtureCorpus(spec, tuple(Part(one, 1.0) for one in corpora))


def _named_languages(corpus: Corpus) -> tuple[str, ...]:
    """Returns the languages that the name of a corpus has, as it lies."""
    *_, corpus = layers_of(corpus)
    if isinstance(corpus, TfdsCorpus):
        return corpus.languages
    if isinstance(corpus, TextCorpus):
        paths = corpus.source, corpus.target
        return tuple(one.name.removesuffix(".gz").rpartition(".")[2] for one in paths)
    return ("en", "de") if isinstance(corpus, PhrasebookCorpus) else ()


def parse_part(part: str, *, key: str) -> tuple[float, str]:
    """Splits a part of a spec into its weight and its name, which has a prefix.

    Raises:
      ConfigError: the weight is out of range, or the prefix is not known.
    """
    weight, name = 1.0, part
    if weighted := _WEIGHTED.fullmatch(part):
        number, name = weighted["weight"], weighted["name"]
        weight = float(number) if _NUMBER.fullmatch(number) else 0.0
        if not _LEAST_WEIGHT <= weight <= _MOST_WEIGHT:
            rule = (
                f"be prefixed by a weight from {_LEAST_WEIGHT} to {_MOST_WEIGHT} and "
                f"*, such as 0.5*{name}"
            )
            raise spec_error(key, part, rule)
    prefix, colon, _ = name.partition(":")
    if not colon or prefix not in _KINDS:
        rule = f"begin with one of {', '.join(f'{kind}:' for kind in _KINDS)}"
        if "," in name and not colon and "*" not in name:
            rule += f". For two text files write text:{name}"
        raise spec_error(key, name, rule)
    return weight, name


def _open_one(spec: str, *, key: str, joiner: str) -> Corpus:
    prefix, _, rest = spec.partition(":")
    if tagged := _TAGGED.fullmatch(spec):
        base = _open_one(tagged["base"], key=key, joiner=joiner)
        return TaggedCorpus(spec, base, tagged["tag"])
    if prefix == "tfds":
        return open_tfds(spec, rest, key=key)
    if part := SLICE.fullmatch(spec):
        base = _open_one(part["base"], key=key, joiner=joiner)
        return _slice(base, spec, part["start"], part["stop"], key=key)
    if _NO_SLICE.search(spec) and not Path(rest.rpartition(",")[2]).exists():
        rule = "end in a slice with a colon, such as [:1000], [1000:] or [1%:5%]"
        raise spec_error(key, spec, rule)
    if prefix == "phrasebook":
        return open_phrasebook(spec, rest, key=key)
    if prefix == "trees":
        return _joint(spec, open_trees(spec, rest, key=key))
    return _joint(spec, open_text_files(spec, rest, key=key, joiner=joiner))


def require_joined(spec: str, *, key: str) -> None:
    """Checks that no prefix, which begins another corpus, follows a single +.

    Raises:
      ConfigError: one does.
    """
    parts = split_spec(spec)
    for number, part in enumerate(parts):
        weighted = _WEIGHTED.fullmatch(part)  # A weight may have a +, wrongly.
        begin = weighted.start("name") if weighted else 0
        parts[number] = part[:begin] + _SINGLE_PLUS.sub("++", part[begin:])
    if (meant := "++".join(parts)) != spec:
        raise ConfigError(
            f"{key}={spec!r} must join corpora by ++; a single + joins files of one. "
            f"Set config.{key}={meant}."
        )


def _slice(base: Corpus, spec: str, start: str, stop: str, *, key: str) -> Corpus:
    """Cuts a slice; percentages are of all pairs, rounded."""
    total = base.num_pairs() if "%" in start + stop else 0

    def bound(text: str) -> int:
        return round(total * int(text[:-1]) / 100) if "%" in text else int(text)

    first, last = bound(start or "0"), bound(stop or str(sys.maxsize))
    if first >= last:
        of = f" of {total:,} pairs" if total else ""
        raise spec_error(key, spec, f"have a pair, and is an empty slice{of}")
    return SliceCorpus(spec, base, first, last)


def train_and_dev(config: DataConfig) -> tuple[str, str]:
    """Returns the specs of the training and the development corpus; "" is none.

    Raises:
      ConfigError: no pairs can be held out of the training corpus.

    Example:
      >>> train_and_dev(DataConfig(train="text:a.en,a.de", dev_pairs=1_000))
      ('text:a.en,a.de[1000:]', 'text:a.en,a.de[:1000]')
    """
    pairs = config.dev_pairs
    if config.dev or not pairs:
        return config.train, config.dev
    # As the user wrote it, without slices.
    require_joined(config.train, key="data.train")
    first, *others = split_spec(config.train) or [""]
    _, name = parse_part(first, key="data.train")
    if SLICE.fullmatch(name) or name.startswith("tfds:"):
        raise ConfigError(
            f"Cannot hold data.dev_pairs={pairs} out of {name!r}: it is a slice or a "
            "set of TFDS. Set config.data.dev, and config.data.dev_pairs=0."
        )
    return "++".join([f"{first}[{pairs}:]", *others]), f"{name}[:{pairs}]"


def open_held_out(spec: str, *, log: Log, joiner: str = "") -> tuple[Corpus, ...]:
    """Opens the test sets of `data.held_out`, but for TFDS sets that are not prepared.

    Args:
      joiner: `data.subword_joiner`.

    Raises:
      ConfigError: the spec is invalid.
      InputMissingError: a file does not exist or cannot be read.
    """
    errors = ErrorCollector()

    def open_one(name: str) -> Corpus | None:
        try:
            return open_corpus(name, key="data.held_out", joiner=joiner)
        except InputMissingError:
            if not name.startswith("tfds:"):
                raise
            log(f"{name} is not prepared: it is not checked against the training text.")
            return None

    found = [errors.try_call(open_one, name) for name in split_spec(spec)]
    errors.raise_if_any()
    return tuple(corpus for corpus in found if corpus is not None)
