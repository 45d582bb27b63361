"""Vocabularies beside the models of fairseq, tensor2tensor and Marian.

fairseq has dictionaries, and codes or a SentencePiece model that split words;
tensor2tensor has subwords, or tokens by line; Marian has SentencePiece models (`.spm`),
or lists of pieces (`.yml`, `.json`, `.txt`), as of OPUS-MT: there `source.spm` and
`target.spm` split the text, and a list gives the pieces their ids.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from t2t_jax.data.vocabulary.byte_pairs import read_merges
from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.data.vocabulary.sentencepiece_ids import (
    piece_count,
    special_ids,
    with_our_ids,
)
from t2t_jax.data.vocabulary.tensor2tensor import read_subwords
from t2t_jax.data.vocabulary.tokenizers import SPECIAL_PIECES, table_file
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import DataError, InputMissingError, short_repr
from t2t_jax.exchange.importing.imported import Settings
from t2t_jax.exchange.readers.yaml_file import parse_ids
from t2t_jax.files import MAX_VOCABULARY_BYTES, read_limited, read_text

Id: TypeAlias = int | None
Ids: TypeAlias = list[Id]
"""The foreign id of each of ours; None for those that the toolkit does not have."""

ADVICE = "Pass the vocabularies of this model with --vocabularies."
"""For errors of vocabularies."""

_CODES = ("bpecodes", "code", "codes")
_SENTENCEPIECE = ("sentencepiece.bpe.model", "spm.model")
_OVERWRITE = " #fairseq:overwrite"
_RESERVED = ["<pad>", "<EOS>"]
_UNKNOWN = "UNK"
_LISTS = (".yml", ".yaml", ".json", ".txt")
_SIDES = ("source", "target")

_NOTE_CODES = (
    "Lines are split into subwords here; what was done to the training text before, "
    "such as Moses tokenization, has to be done to them first, and undone in outputs."
)
_NOTE_PIECES = (
    "There are no codes beside the model, so lines have to be given in pieces, "
    "separated by spaces; in the output they are joined at '@@'."
)
_NOTE_TOKENS = (
    "The vocabulary has no rules to split text, so lines have to be given in its "
    "tokens, separated by spaces; in the output they are joined at '@@'."
)
_NOTE_LIST = "Text must be given in the pieces of its vocabulary."


class FoundVocabularies(NamedTuple):
    """The vocabularies of a model.

    Attributes:
      ids: of source and target.
      files: that were read.
      notes: for the README.md of the model, a sentence each.
    """

    pair: VocabularyPair
    ids: tuple[Ids, Ids]
    files: tuple[Path, ...]
    notes: tuple[str, ...] = ()


class _Side(NamedTuple):
    """A vocabulary.

    Attributes:
      model: content of a file of ours.
      ids: the foreign id of each of ours.
      splits: whether it splits text; if not, the text has to be in pieces.
    """

    model: bytes
    ids: Ids
    splits: bool = True


def _found(
    sides: Sequence[_Side], names: Sequence[Path], files: Sequence[Path], *notes: str
) -> FoundVocabularies:
    """Loads the vocabularies of source and target, one object if they are the same."""
    source, target = (
        Vocabulary(side.model, name=str(name), advice=ADVICE)
        for side, name in zip(sides, names, strict=True)
    )
    return FoundVocabularies(
        VocabularyPair(target if sides[0] == sides[1] else source, target),
        ids=(sides[0].ids, sides[1].ids),
        files=tuple(dict.fromkeys(files)),
        notes=notes,
    )


def _ends(given: Sequence[Path]) -> tuple[Path, Path]:
    """Returns the files of source and target, of one or two."""
    if len(given) > 2:
        raise DataError(f"Pass one or two vocabularies, not {len(given)}.")
    return given[0], given[-1]


def _split_by(splitter: Path, pieces: Sequence[str], *, language_tokens: bool) -> bytes:
    """Returns pieces that a SentencePiece model makes of text."""
    own = {"sentencepiece": _read(splitter), "language_tokens": language_tokens}
    return table_file("sentencepiece_table", pieces, **own)


def _read(path: Path) -> bytes:
    return read_limited(path, max_bytes=MAX_VOCABULARY_BYTES, advice=ADVICE)


def our_ids(size: int, *, eos: int, unk: Id, bos: Id = None, pad: Id = None) -> Ids:
    """Returns the foreign id of each of our ids: pad, bos, eos, unk, and the rest.

    Args:
      size: of the foreign vocabulary.
      eos, unk, bos, pad: foreign ids; None for one that it does not have.

    Example:
      >>> our_ids(5, eos=0, unk=1)
      [None, None, 0, 1, 2, 3, 4]
    """
    special = (pad, bos, eos, unk)
    return [*special, *(number for number in range(size) if number not in special)]


def fairseq_vocabularies(
    directory: Path, *, languages: Sequence[str], given: Sequence[Path]
) -> FoundVocabularies:
    """Reads fairseq's dictionaries, and the codes or SentencePiece model beside them.

    Args:
      directory: has `dict.LANGUAGE.txt` of both sides, and may have codes of
        subword-nmt or fastBPE, or a SentencePiece model.
      languages: of source and target, if they are known.
      given: the dictionaries, or the one of both sides, in place of the directory's.

    Raises:
      DataError: a file is damaged.
      InputMissingError: a dictionary is missing.
    """
    dictionaries = _ends(given) if given else _dictionaries(directory, languages)
    names = (*_SENTENCEPIECE, *_CODES)
    splitter = next((p for n in names if (p := directory / n).is_file()), None)
    make, note = partial(table_file, "byte_pairs", merges=None), _NOTE_PIECES
    if splitter and splitter.name in _CODES:
        merges, note = read_merges(_text(splitter), name=str(splitter)), _NOTE_CODES
        make = partial(table_file, "byte_pairs", merges=merges)
    elif splitter:
        make = partial(_split_by, splitter, language_tokens=False)
        note = f"Lines are split by {splitter.name}."
    named = [read_dictionary(_text(path), name=str(path)) for path in dictionaries]
    sides = [
        _Side(make(pieces), our_ids(len(pieces), bos=0, pad=1, eos=2, unk=3))
        for pieces in named
    ]
    files = [*dictionaries, *([splitter] if splitter else [])]
    # A damaged file of pieces or of SentencePiece is found here.
    return _found(sides, [splitter or path for path in dictionaries], files, note)


def _dictionaries(directory: Path, languages: Sequence[str]) -> tuple[Path, Path]:
    paths = [directory / f"dict.{name}.txt" for name in languages]
    if len(found := [path for path in paths if path.is_file()]) != 2:
        raise InputMissingError(
            f"{directory} must have dict.LANGUAGE.txt of both languages that the "
            f"checkpoint names ({', '.join(languages) or 'none'}), and has "
            f"{len(found)}. Copy them there, or pass "
            "--vocabularies=dict.SOURCE.txt,dict.TARGET.txt."
        )
    return found[0], found[1]


def read_dictionary(text: str, *, name: str) -> list[str]:
    r"""Reads a dictionary: a piece and its count on each line, after four special ones.

    Args:
      name: of the file, for messages.

    Returns:
      The pieces by our ids, which are fairseq's but for the first two.

    Raises:
      DataError: a line is not a piece and a count, or a piece is there twice.

    Example:
      >>> read_dictionary("the 7\nlo@@ 5\n", name="dict.en.txt")[4:]
      ['the', 'lo@@']
    """
    pieces: dict[str, None] = {}
    for number, line in enumerate(text.removesuffix("\n").split("\n"), start=1):
        # A piece that looks special may have an id of its own.
        piece, _, count = line.rstrip().removesuffix(_OVERWRITE).rpartition(" ")
        if not piece or not count.removeprefix("-").isdecimal() or piece in pieces:
            raise DataError(
                f"{name}, line {number:,}: {line[:40]!r} is not a new piece and its "
                f"count. {ADVICE}"
            )
        pieces[piece] = None
    return [*SPECIAL_PIECES, *pieces]


def _text(path: Path) -> str:
    return read_text(path, advice=ADVICE).replace("\r\n", "\n")


def t2t_vocabularies(
    directory: Path, *, given: Sequence[Path], sizes: Collection[int], divisor: int
) -> FoundVocabularies:
    """Reads the vocabularies of tensor2tensor.

    Args:
      directory: searched for one of the right size, if none is given.
      given: of source and target, or of both.
      sizes: rows of the checkpoint's vocabulary matrices.
      divisor: of these numbers, which may exceed those of the subwords for it.

    Raises:
      DataError: a file is not a vocabulary of tensor2tensor.
      InputMissingError: none, or more than one, is found.
    """
    paths = list(given)
    for path in () if given else sorted(directory.glob("vocab*")):
        with suppress(DataError):  # another file
            ids = _t2t_side(path, divisor=divisor).ids
            if len(ids) - ids.count(None) in sizes:
                paths.append(path)
    if not given and len(paths) != 1:
        wanted = " or ".join(f"{size:,}" for size in sorted(sizes))
        raise InputMissingError(
            f"{directory} must have one vocabulary of tensor2tensor, vocab.*, of "
            f"{wanted} subwords, and has {len(paths)}. Copy it from the data of the "
            "training, or pass --vocabularies=FILE or --vocabularies=SOURCE,TARGET."
        )
    ends = _ends(paths)
    sides = [_t2t_side(path, divisor=divisor) for path in ends]
    notes = () if all(side.splits for side in sides) else (_NOTE_TOKENS,)
    return _found(sides, ends, ends, *notes)


def _t2t_side(path: Path, *, divisor: int) -> _Side:
    """Reads subwords, which are in quotes, or tokens by line."""
    text = read_text(path, advice=ADVICE)
    is_tokens = text.startswith(_RESERVED[0])
    if is_tokens:
        names = [line.strip() for line in text.removesuffix("\n").split("\n")]
    else:
        names = read_subwords(text, name=str(path))
    if names[: len(_RESERVED)] != _RESERVED:
        raise DataError(
            f"{path}: must begin with {' and '.join(_RESERVED)}, and begins with "
            f"{short_repr(names[:2])}. {ADVICE}"
        )
    unk = names.index(_UNKNOWN) if is_tokens and _UNKNOWN in names else None
    # Subwords have `_` at their end only, and tokens have no space: no text is encoded
    # to these.
    mark = " " if is_tokens else "_"
    unused = range(len(names), len(names) + -len(names) % divisor)
    names += [f"{mark}{number}" for number in unused]
    ids = our_ids(len(names), pad=0, eos=1, unk=unk)
    pieces = pieces_by(dict(enumerate(names)), ids)
    if is_tokens:
        return _Side(table_file("byte_pairs", pieces, merges=None), ids, splits=False)
    return _Side(table_file("subwords", pieces), ids)


def pieces_by(names: Mapping[int, str], ids: Ids) -> list[str]:
    """Returns the pieces by our ids, of names by foreign ids.

    Example:
      >>> pieces_by({2: "a"}, our_ids(4, eos=0, unk=1))[4:]
      ['a', '<unused_3>']
    """
    own = ids[len(SPECIAL_PIECES) :]
    return [*SPECIAL_PIECES, *(names.get(id_ or 0, f"<unused_{id_}>") for id_ in own)]


def marian_vocabularies(
    model: Path, decoder: Settings, *, given: Sequence[Path], sizes: Sequence[int]
) -> FoundVocabularies:
    """Reads Marian's vocabularies.

    Args:
      model: the file that they lie beside.
      decoder: settings, which may name them.
      given: of source and target, or of both, in place of those.
      sizes: of source and target; one for a model with one embedding.

    Raises:
      DataError: a file is damaged, or not of this model.
      InputMissingError: none is found.
    """
    paths = list(given) or _marian_paths(model, decoder)
    ends = _ends(paths)
    sides = [
        _marian_side(path, size, splitter=path.with_name(f"{side}.spm"))
        for path, size, side in zip(ends, (sizes[0], sizes[-1]), _SIDES, strict=True)
    ]
    notes = () if sides[0].splits else (_NOTE_LIST,)
    found = _found(sides, ends, paths, *notes)
    if len(sizes) == 2:
        source = Vocabulary(sides[0].model)
        return found._replace(pair=VocabularyPair(source, found.pair.target))
    pieces = [side.pieces(range(side.size)) for side in found.pair]
    if pieces[0] != pieces[1]:
        raise DataError(
            f"{model} has one embedding for both sides, and {paths[0]} and {paths[-1]} "
            f"have different pieces. {ADVICE}"
        )
    return found


def _marian_paths(model: Path, decoder: Settings) -> list[Path]:
    """Finds the vocabularies beside a model."""
    directory, named = model.parent, decoder.get("vocabs")
    beside = {path.name: path for path in directory.iterdir() if path.is_file()}
    found = []
    if isinstance(named, list) and len(named) in (1, 2):
        # What is no name is beside no model.
        found.append([Path(one).name if isinstance(one, str) else "" for one in named])
    patterns = ("vocab*.spm", "*.vocab.yml", "vocab*.yml", "vocab*.json")
    matching = (fnmatch.filter(beside, pattern) for pattern in patterns)
    found += [names for names in matching if len(names) == 1]
    found.append([f"{side}.spm" for side in _SIDES])
    for names in filter(None, found):
        if beside.keys() >= {*names}:
            return [beside[name] for name in names]
    raise InputMissingError(
        f"{directory} has no vocabulary of {model.name} that is found by its name. "
        "Pass --vocabularies=SOURCE,TARGET, or one file for both."
    )


def _marian_side(path: Path, size: int, *, splitter: Path) -> _Side:
    """Reads a SentencePiece model, or a list of pieces that one beside it makes."""
    content, name = _read(path), str(path)
    is_list = path.suffix in _LISTS
    if is_list:
        foreign = _listed(path, content)
        names = [foreign.get(number, f"<id_{number}>") for number in range(size)]
        pad, eos, unk = (
            names.index(piece) if piece in names else None
            for piece in ("<pad>", "</s>", "<unk>")
        )
        bos = None
        count = min(len(foreign), size)  # it may have more than the model
    else:
        count = piece_count(content, name=name)
        pad, bos, eos, unk = special_ids(content, name=name)
    if count != size:
        raise DataError(f"{name} has {count:,} pieces, the model {size:,}. {ADVICE}")
    if eos is None or unk is None:
        raise DataError(f"{name} has no pieces </s> and <unk>. {ADVICE}")
    ids = our_ids(size, pad=pad, bos=bos, eos=eos, unk=unk)
    if not is_list:
        return _Side(with_our_ids(content, ids, name=name), ids)
    pieces = pieces_by(dict(enumerate(names)), ids)
    if not splitter.is_file():
        return _Side(table_file("byte_pairs", pieces, merges=None), ids, splits=False)
    return _Side(_split_by(splitter, pieces, language_tokens=True), ids)


def _listed(path: Path, content: bytes) -> dict[int, str]:
    """Reads a list of pieces, `piece: id` or one a line, as pieces by id."""
    if path.suffix != ".txt":
        # JSON is YAML.
        return parse_ids(content, name=str(path))
    text = read_text(path, advice=ADVICE)
    return dict(enumerate(text.removesuffix("\n").split("\n")))
