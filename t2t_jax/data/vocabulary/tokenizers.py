"""How text becomes the ids of a vocabulary, and back: one tokenizer for each kind.

A vocabulary is one file: a SentencePiece model, or a table of pieces as JSON, for words
and for the vocabularies of other toolkits. Its ids 0 to 3 are pad, bos, eos and unk.
"""

from __future__ import annotations

import base64
import difflib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

from t2t_jax.data.vocabulary.byte_pairs import BytePairEncoder, join_pieces
from t2t_jax.data.vocabulary.tensor2tensor import SubwordEncoder
from t2t_jax.data.vocabulary.words import WordList, word_classes
from t2t_jax.errors import DataError, UserError
from t2t_jax.files import damage_as_data_error
from t2t_jax.types import BOS, EOS, PAD, UNK

SPECIAL_PIECES = ("<pad>", "<s>", "</s>", "<unk>")
"""The pieces of the ids 0 to 3."""

LANGUAGE_CODE = "[a-z]{2,3}(?:_[A-Za-z]+)?"
"""A pattern: `de`, `pt_BR`, `zh_Hans`; a hyphen stands between two codes."""

_LANGUAGE = re.compile(r">>([^\s<>]+)<<")
_SPACE = "\u2581"
_VERSION = 1

_Ids: TypeAlias = Mapping[str, int]
_Json: TypeAlias = Mapping[str, Any]
_Split: TypeAlias = Callable[[str], list[int]]
_Join: TypeAlias = Callable[[list[int]], str]


class Tagged(Protocol):
    """What has tags of languages: a tokenizer, or a vocabulary.

    Attributes:
      tags: by language, such as `de`, the id of its tag, such as `>>de<<`.
      reads_source: whether a source begins with the tag of its own language, and the
        target with its own, as in M2M-100; else with that of the target, as in OPUS-MT.
    """

    tags: Mapping[str, int]
    reads_source: bool


@dataclass
class Tokenizer:
    """Encodes and decodes text; it is `Tagged`.

    Attributes:
      size: number of pieces, the four special ones included.
      encode: encodes lines; text that looks like a special piece is ordinary text.
        Takes `add_eos`, False if not given, and `num_threads`: at most, where it has
        any; one per core if not given.
      decode: decodes lists of ids, without pad, bos and eos.
      pieces: the pieces of ids as the vocabulary has them.
    """

    size: int
    tags: Mapping[str, int]
    reads_source: bool
    encode: Callable[..., list[list[int]]]
    decode: Callable[[Sequence[Sequence[int]]], list[str]]
    pieces: Callable[[Iterable[int]], list[str]]


def load_tokenizer(model: bytes, *, name: str, advice: str) -> Tokenizer:
    """Loads the tokenizer of a vocabulary file.

    Args:
      name: of the file, for messages.
      advice: what to do if it is invalid, a sentence.

    Raises:
      DataError: it is not a vocabulary, or its special ids are others.
      UserError: a package is not installed.
    """
    if model.startswith(b"{"):
        what = f"{name}: it is not a table of pieces"
        with damage_as_data_error(what, advice=advice):
            return _table_tokenizer(json.loads(model))
    return _of_sentencepiece(_processor(model, name=name, advice=advice))


def table_file(kind: str, pieces: Sequence[str], **options: Any) -> bytes:
    """Returns the content of a vocabulary file that is a table.

    Args:
      kind: "sentencepiece_table": a SentencePiece model makes the pieces, and the table
        gives their ids; "subwords": those of tensor2tensor; "byte_pairs": words with
        `@@` joints; "words": words and their classes, made by `word_table`.
      pieces: by id; those of the ids 0 to 3 are pad, bos, eos and unk.
      options: `language_tokens` (whether the pieces `>>xx<<` are tags of languages; or
        the tags by language, such as `{"de": "__de__"}`), and `source_tag` ("source" if
        it `reads_source`, as in `Tagged`, else "target"); `sentencepiece` (bytes of the
        model) and `moses` (language of a punctuation normalization of the text, or "")
        for the first; `merges` (pairs of pieces, or None for text that is split
        already) for the third; `num_words` and `num_classes` for the last.

    Example:
      >>> pieces = [*SPECIAL_PIECES, "lo@@", "w"]
      >>> model = table_file("byte_pairs", pieces, merges=[("l", "o")])
      >>> tokenizer = load_tokenizer(model, name="a table", advice="")
      >>> tokenizer.encode(["low w"]), tokenizer.decode([[4, 5, 5]])
      ([[4, 5, 5]], ['low w'])
    """
    if isinstance(options.get("sentencepiece"), bytes):
        encoded = base64.b64encode(options["sentencepiece"]).decode()
        options = {**options, "sentencepiece": encoded}
    content = {"version": _VERSION, "kind": kind, **options, "pieces": list(pieces)}
    text = json.dumps(content, ensure_ascii=False) + "\n"
    # Half of a surrogate pair, which JSON may escape, is refused by `load_tokenizer`.
    return text.encode(errors="backslashreplace")


def word_table(words: WordList, size: int, **options: Any) -> bytes:
    """Returns the content of a vocabulary file of words, of exactly `size` pieces.

    Pieces that are left over are unused: `size` is chosen before the text is known.
    Text is never encoded as one, and one that is generated is decoded as `<unk>`.

    Args:
      options: further ones of `table_file`.

    Example:
      >>> model = word_table(WordList(["XX", "(NP", ")NP"], []), size=8)
      >>> tokenizer = load_tokenizer(model, name="a table", advice="")
      >>> tokenizer.encode(["(NP XX )NP"]), tokenizer.pieces([6, 7])
      ([[5, 4, 6]], [')NP', '<unused_7>'])
    """
    pieces = [*SPECIAL_PIECES, *words.words, *words.classes]
    pieces += [f"<unused_{number}>" for number in range(len(pieces), size)]
    sizes = {"num_words": len(words.words), "num_classes": len(words.classes)}
    return table_file("words", pieces, **sizes, **options)


def _table_tokenizer(table: Mapping[str, Any]) -> Tokenizer:
    pieces, kind = table["pieces"], table["kind"]
    if table["version"] != _VERSION:
        raise ValueError(f"its version is {table['version']!r}, not {_VERSION}")
    if not isinstance(pieces, list) or not all(isinstance(one, str) for one in pieces):
        raise TypeError("its pieces are not a list of strings")
    if len(pieces) <= len(SPECIAL_PIECES):
        raise ValueError("it has no pieces but the special ones")
    "".join(pieces).encode()  # Half of a surrogate pair could not be written.
    if kind not in _KINDS:
        raise ValueError(f"kind {kind!r} is not known")
    # Of equal pieces the first counts.
    ids = {one: n for n, one in reversed([*enumerate(pieces)][len(SPECIAL_PIECES) :])}
    named = table.get("language_tokens")
    tags = tags_among(pieces) if named else {}
    if isinstance(named, dict):
        tags = {language: ids[piece] for language, piece in named.items()}
    if (source_tag := table.get("source_tag", "target")) not in ("source", "target"):
        raise ValueError(f"source_tag {source_tag!r} is neither source nor target")
    reads_source = source_tag == "source"
    # Where only sources have tags, a decoded line is text to translate again.
    unwritten = {PAD, BOS, EOS, *(tags.values() if reads_source else ())}
    split, join = _KINDS[kind](pieces, ids, table)

    def encode(
        lines: Sequence[str], *, add_eos: bool = False, num_threads: int = -1
    ) -> list[list[int]]:
        del num_threads  # Python's lock serialises them
        return [split(line) + [EOS] * add_eos for line in lines]

    return Tokenizer(
        len(pieces),
        tags,
        reads_source,
        encode,
        lambda every: [join([n for n in ids if n not in unwritten]) for ids in every],
        lambda ids: [pieces[number] for number in ids],
    )


def _of_sentencepiece(processor: Any) -> Tokenizer:
    """Returns a tokenizer of a SentencePiece model whose own ids are used."""
    size, piece_of = processor.get_piece_size(), processor.id_to_piece
    # Not user-defined symbols, which are pieces of the text.
    kept = list(filter(processor.is_control, range(size)))
    tags = {one: kept[n] for one, n in tags_among(map(piece_of, kept)).items()}
    encode = partial(processor.encode, out_type=int)
    return Tokenizer(
        size,
        tags,
        False,
        encode,
        processor.decode,
        lambda ids: [piece_of(int(number)) for number in ids],
    )


def tag_piece(language: str) -> str:
    """Returns the piece of a target language, as OPUS-MT writes it.

    Example:
      >>> tag_piece("de")
      '>>de<<'
    """
    return f">>{language}<<"


def tags_among(pieces: Iterable[str]) -> dict[str, int]:
    """Returns the numbers of the pieces that are tags, by language; the first counts.

    Example:
      >>> tags_among(["de", ">>de<<", ">>pt_BR<<"])
      {'de': 1, 'pt_BR': 2}
    """
    found: dict[str, int] = {}
    for number, piece in enumerate(pieces):
        if tag := _LANGUAGE.fullmatch(piece):
            found.setdefault(tag[1], number)
    return found


_SHOWN = 12  # tags in a message
# Codes of two letters, and what means the same: NLLB-200's codes of three.
_LONG_CODES = (
    "ar arb az azj bg bul bn ben ca cat cs ces da dan de deu el ell en eng eo epo es "
    "spa et est eu eus fa pes fi fin fr fra ga gle gl glg gu guj ha hau he heb hi hin "
    "hr hrv hu hun id ind is isl it ita ja jpn ka kat kk kaz ko kor lt lit lv lvs mk "
    "mkd mr mar ms zsm no nb nl nld no nob pl pol ps pbt pt por ro ron ru rus sk slk "
    "sl slv sq als sr srp sv swe sw swh ta tam te tel th tha tl tgl tr tur uk ukr ur "
    "urd vi vie zh zho"
).split()
_SHORT_CODE = dict(zip(_LONG_CODES[1::2], _LONG_CODES[::2], strict=True))


def short_code(language: str) -> str:
    """Returns the code of two letters of a language, or that before its region.

    Example:
      >>> [short_code(code) for code in ("deu_Latn", "pt-BR", "gsw")]
      ['de', 'pt', 'gsw']
    """
    first = re.split("[_-]", language.lower())[0]
    return _SHORT_CODE.get(first, first)


def near_tags(language: str, tags: Iterable[str]) -> list[str]:
    """Returns the tags that someone may mean by a language that has none.

    Example:
      >>> near_tags("zh", ["zho_Hans", "zho_Hant", "deu_Latn"])
      ['zho_Hans', 'zho_Hant']
      >>> near_tags("deu_Latin", ["zho_Hans", "deu_Latn"])
      ['deu_Latn']
    """
    known, short = list(tags), short_code(language)
    same = [one for one in known if short_code(one) == short]
    near = difflib.get_close_matches(language, known, n=1)
    return near + [one for one in same if one not in near][: _SHOWN - 1]


def shown_tags(tags: Iterable[str], language: str = "") -> str:
    """Lists tags for a message: of many a dozen, those near a language first.

    Example:
      >>> shown_tags(["de", "fr"])
      'de, fr'
      >>> shown_tags([f"x{number:02}" for number in range(200)] + ["deu_Latn"], "de")
      'deu_Latn, x00, x01, x02, x03, x04, x05, x06, x07, x08, x09, x10 and 189 more'
    """
    if len(known := list(tags)) <= _SHOWN:
        return ", ".join(known)
    first = dict.fromkeys([*near_tags(language, known), *known])
    return f"{', '.join([*first][:_SHOWN])} and {len(known) - _SHOWN} more"


def split_tag(line: str, tags: Mapping[str, int]) -> tuple[str, str, str]:
    """Splits off the known languages that a line begins with: source, target, rest.

    Example:
      >>> split_tag(">>de<< A dog", {"de": 4}), split_tag(">>fr<< A dog", {"de": 4})
      (('', 'de', ' A dog'), ('', '', '>>fr<< A dog'))
      >>> split_tag(">>en-de<< A dog", {"de": 4, "en": 5})
      ('en', 'de', ' A dog')
    """
    if found := _LANGUAGE.match(line):
        rest, (source, _, target) = line[found.end() :], found[1].rpartition("-")
        if found[1] in tags:
            return "", found[1], rest
        if source and target in tags:
            return source if source in tags else "", target, rest
    return "", "", line


def tags_of(tagged: Tagged, source: str, target: str) -> tuple[list[int], list[int]]:
    """Returns the tags that a source and its target begin with.

    Args:
      source: its language; "" for no tag, as `target`.

    Example:
      >>> from types import SimpleNamespace
      >>> tags = {"de": 4, "en": 5}
      >>> tags_of(SimpleNamespace(tags=tags, reads_source=False), "en", "de")
      ([4], [])
      >>> tags_of(SimpleNamespace(tags=tags, reads_source=True), "en", "de")
      ([5], [4])
    """
    if not tagged.reads_source:
        return [tagged.tags[target]] if target else [], []
    own, to = ([tagged.tags[one]] if one else [] for one in (source, target))
    return own, to


def known_languages(
    tagged: Tagged, *, source_language: str | None, target_language: str | None
) -> dict[str, str | None]:
    """Returns the languages that are named by tags; "" for one that is not.

    Example:
      >>> from types import SimpleNamespace
      >>> vocabulary = SimpleNamespace(tags={"de": 4}, reads_source=False)
      >>> known_languages(vocabulary, source_language="en", target_language="de")
      {'source_language': '', 'target_language': 'de'}
    """
    return {
        "source_language": source_language if tagged.reads_source else "",
        "target_language": target_language if tagged.tags else "",
    }


def _sentencepiece_table(
    pieces: list[str], ids: _Ids, table: _Json
) -> tuple[_Split, _Join]:
    """Pieces of a SentencePiece model, with the ids of a table."""
    processor = _open(base64.b64decode(table["sentencepiece"], validate=True))
    normalize = _moses(table.get("moses", ""))
    has_languages = table.get("language_tokens") is True

    def split(line: str) -> list[int]:
        found = _LANGUAGE.match(line) if has_languages else None
        start, rest = (found[0], line[found.end() :]) if found else ("", line)
        cut = processor.encode(normalize(rest), out_type=str)
        return [ids.get(piece, UNK) for piece in ([start] if start else []) + cut]

    def join(numbers: list[int]) -> str:
        # It leaves pieces that only the other side's model has as they are.
        line: str = processor.decode_pieces([pieces[number] for number in numbers])
        return line.replace(_SPACE, " ").strip()

    return split, join


def _subwords(pieces: list[str], ids: _Ids, table: _Json) -> tuple[_Split, _Join]:
    """Subwords of tensor2tensor."""
    encoder = SubwordEncoder(pieces, num_reserved=len(SPECIAL_PIECES))
    return encoder.encode, encoder.decode


def _byte_pairs(pieces: list[str], ids: _Ids, table: _Json) -> tuple[_Split, _Join]:
    """Words, split by merges, or given in pieces."""
    merges = table.get("merges")
    cut: Callable[[str], list[str]] = str.split
    if merges is not None:
        cut = BytePairEncoder(list(map(tuple, merges))).split
    return (
        lambda line: [ids.get(piece, UNK) for piece in cut(line)],
        lambda numbers: join_pieces(pieces[number] for number in numbers),
    )


def _words(pieces: list[str], ids: _Ids, table: _Json) -> tuple[_Split, _Join]:
    """Words with spaces between them; unknown ones by their class, if there are any."""
    first = len(SPECIAL_PIECES)
    end = first + int(table["num_words"])
    last = end + int(table["num_classes"])  # of the pieces that are used
    words = {piece: ids[piece] for piece in pieces[first:end]}
    classes = {piece: number for number, piece in enumerate(pieces[end:last], end)}

    def id_of(word: str) -> int:
        if word in words or not classes:
            return words.get(word, UNK)
        known = (classes[name] for name in word_classes(word) if name in classes)
        return next(known, UNK)

    def join(numbers: list[int]) -> str:
        return " ".join(pieces[number if number < last else UNK] for number in numbers)

    return lambda line: list(map(id_of, line.split())), join


_KINDS = {"sentencepiece_table": _sentencepiece_table, "subwords": _subwords}
_KINDS |= {"byte_pairs": _byte_pairs, "words": _words}


def _processor(model: bytes, *, name: str, advice: str) -> Any:
    """Loads a SentencePiece model that has our special ids."""
    try:
        processor = _open(model)
    except ValueError as error:
        fault = f"{name}: is not a SentencePiece model: {error}. {advice}"
        raise DataError(fault) from error
    names = ("pad", "bos", "eos", "unk")
    ids = [getattr(processor, f"{piece}_id")() for piece in names]
    if ids != [PAD, BOS, EOS, UNK]:
        has = ", ".join(map("{} {}".format, names, ids))
        raise DataError(
            f"{name}: must have ids pad 0, bos 1, eos 2, unk 3, and has {has}. "
            f"{advice}\nspm_train --input=TEXT --model_prefix=NAME --model_type=bpe "
            f"--vocab_size={processor.get_piece_size()} --pad_id=0 --bos_id=1 "
            "--eos_id=2 --unk_id=3 trains one that fits."
        )
    return processor


def _open(model: bytes) -> Any:
    import sentencepiece

    try:
        if not model:  # SentencePiece would accept it as a model without pieces
            raise ValueError("it is empty")
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        ids = list(range(processor.get_piece_size()))
        # The pieces, and what they are in a line: unk has a text of its own.
        processor.id_to_piece(ids), processor.decode(ids)
    except RuntimeError as error:
        raise ValueError("it has no SentencePiece model") from error
    except UnicodeDecodeError as error:
        raise ValueError("a piece of it is not UTF-8") from error
    return processor


def _moses(language: str) -> Callable[[str], str]:
    """Returns Moses's normalization of punctuation; none without a language."""
    if not language:
        return str
    try:
        from sacremoses import MosesPunctNormalizer
    except ImportError as error:
        fault = "This vocabulary normalizes punctuation as Moses does, but sacremoses"
        run = f"cannot be imported: {error}. Run: pip install 't2t-jax[exchange]'"
        raise UserError(f"{fault} {run}") from error
    return MosesPunctNormalizer(language).normalize  # type: ignore[no-any-return]
