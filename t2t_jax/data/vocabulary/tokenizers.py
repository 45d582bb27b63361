"""How text becomes the ids of a vocabulary, and back: one tokenizer for each kind.

A vocabulary is one file: a SentencePiece model, or a table of pieces as JSON, for words
and for the vocabularies of other toolkits. Its ids 0 to 3 are pad, bos, eos and unk.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from t2t_jax.data.vocabulary.byte_pairs import BytePairEncoder, join_pieces
from t2t_jax.data.vocabulary.tensor2tensor import SubwordEncoder
from t2t_jax.data.vocabulary.words import WordList, word_classes
from t2t_jax.errors import DataError, UserError
from t2t_jax.types import BOS, EOS, PAD, UNK

SPECIAL_PIECES = ("<pad>", "<s>", "</s>", "<unk>")
"""The pieces of the ids 0 to 3."""

_SPECIAL_IDS = (PAD, BOS, EOS)
_LANGUAGE = re.compile(r">>[^\s<>]+<<")
_SPACE = "\u2581"
_VERSION = 1


class Tokenizer(Protocol):
    """Encodes and decodes text.

    Attributes:
      size: number of pieces, the four special ones included.
    """

    size: int

    def encode(
        self, lines: Sequence[str], *, add_eos: bool = False, num_threads: int = -1
    ) -> list[list[int]]:
        """Encodes lines; text that looks like a special piece is ordinary text.

        Args:
          num_threads: at most, where the tokenizer has any; -1 for one per core.
        """

    def decode(self, sequences: Sequence[Sequence[int]]) -> list[str]:
        """Decodes ids, without pad, bos and eos."""

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Returns the pieces as the vocabulary has them."""


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
        try:
            return _table_tokenizer(json.loads(model))
        except UserError:
            raise
        except (ValueError, TypeError, AttributeError, RecursionError) as error:
            reason = f"it is not a table of pieces: {error}"
        except KeyError as error:
            reason = f"it is a table without {error}"
        raise DataError(f"{name}: {reason}. {advice}")
    return _SentencePiece(_processor(model, name=name, advice=advice))


def table_file(kind: str, pieces: Sequence[str], **options: Any) -> bytes:
    """Returns the content of a vocabulary file that is a table.

    Args:
      kind: "sentencepiece_table": a SentencePiece model makes the pieces, and the table
        gives their ids; "subwords": those of tensor2tensor; "byte_pairs": words with
        `@@` joints; "words": words and their classes, made by `word_table`.
      pieces: by id; those of the ids 0 to 3 are pad, bos, eos and unk.
      options: `sentencepiece` (bytes of the model), `language_tokens` (whether a line
        may begin with `>>xx<<`, one token) and `moses` (language of a punctuation
        normalization of the text, or "") for the first; `merges` (pairs of pieces, or
        None for text that is split already) for the third; `num_words` and
        `num_classes` for the last.

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


def word_table(words: WordList, size: int) -> bytes:
    """Returns the content of a vocabulary file of words, of exactly `size` pieces.

    Pieces that are left over are unused: `size` is chosen before the text is known.
    Text is never encoded as one, and one that is generated is decoded as `<unk>`.

    Example:
      >>> model = word_table(WordList(["XX", "(NP", ")NP"], []), size=8)
      >>> tokenizer = load_tokenizer(model, name="a table", advice="")
      >>> tokenizer.encode(["(NP XX )NP"]), tokenizer.pieces([6, 7])
      ([[5, 4, 6]], [')NP', '<unused_7>'])
    """
    pieces = [*SPECIAL_PIECES, *words.words, *words.classes]
    pieces += [f"<unused_{number}>" for number in range(len(pieces), size)]
    sizes = {"num_words": len(words.words), "num_classes": len(words.classes)}
    return table_file("words", pieces, **sizes)


def _table_tokenizer(table: Mapping[str, Any]) -> Tokenizer:
    pieces, kind = table["pieces"], table["kind"]
    if table["version"] != _VERSION:
        raise ValueError(f"its version is {table['version']!r}, not {_VERSION}")
    if not isinstance(pieces, list) or not all(isinstance(one, str) for one in pieces):
        raise TypeError("its pieces are not a list of strings")
    if len(pieces) <= len(SPECIAL_PIECES):
        raise ValueError("it has no pieces but the special ones")
    "".join(pieces).encode()  # Half of a surrogate pair could not be written.
    if kind == "sentencepiece_table":
        return _SentencePieceTable(
            pieces,
            _sentencepiece(table["sentencepiece"]),
            language_tokens=bool(table.get("language_tokens")),
            normalize=_moses(table.get("moses", "")),
        )
    if kind == "subwords":
        return _Subwords(pieces)
    if kind == "words":
        return _Words(pieces, int(table["num_words"]), int(table["num_classes"]))
    if kind == "byte_pairs":
        merges = table.get("merges")
        return _BytePairs(pieces, None if merges is None else list(map(tuple, merges)))
    raise ValueError(f"kind {kind!r} is not known")


class _SentencePiece:
    """A SentencePiece model whose own ids are used."""

    def __init__(self, processor: Any):
        self._processor = processor
        self.size: int = processor.get_piece_size()

    def encode(
        self, lines: Sequence[str], *, add_eos: bool = False, num_threads: int = -1
    ) -> list[list[int]]:
        return self._processor.encode(  # type: ignore[no-any-return]
            lines, out_type=int, add_eos=add_eos, num_threads=num_threads
        )

    def decode(self, sequences: Sequence[Sequence[int]]) -> list[str]:
        return self._processor.decode(sequences)  # type: ignore[no-any-return]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [self._processor.id_to_piece(int(piece)) for piece in ids]


class _Table(ABC):
    """Pieces and ids; what makes pieces of a line is the kind's own."""

    def __init__(self, pieces: list[str]):
        self.size = len(pieces)
        self._pieces = pieces
        first = len(SPECIAL_PIECES)
        # Of equal pieces the first counts.
        self._ids = {
            piece: number
            for number, piece in reversed([*enumerate(pieces[first:], first)])
        }

    def pieces(self, ids: Iterable[int]) -> list[str]:
        return [self._pieces[piece] for piece in ids]

    def decode(self, sequences: Sequence[Sequence[int]]) -> list[str]:
        return [
            self._join([piece for piece in ids if piece not in _SPECIAL_IDS])
            for ids in sequences
        ]

    def encode(
        self, lines: Sequence[str], *, add_eos: bool = False, num_threads: int = -1
    ) -> list[list[int]]:
        del num_threads  # Python's lock serialises them
        end = [EOS] if add_eos else []
        return [[*self._split(line), *end] for line in lines]

    @abstractmethod
    def _split(self, line: str) -> list[int]:
        """Returns the ids of a line."""

    @abstractmethod
    def _join(self, ids: list[int]) -> str:
        """Returns the line of ids."""


class _SentencePieceTable(_Table):
    """Pieces of a SentencePiece model, with the ids of a table."""

    def __init__(
        self,
        pieces: list[str],
        processor: Any,
        *,
        language_tokens: bool,
        normalize: Callable[[str], str] | None,
    ):
        super().__init__(pieces)
        self._processor, self._normalize = processor, normalize
        self._language_tokens = language_tokens

    def _split(self, line: str) -> list[int]:
        pieces = []
        if self._language_tokens and (found := _LANGUAGE.match(line)):
            pieces, line = [found[0]], line[found.end() :]
        if self._normalize is not None:
            line = self._normalize(line)
        pieces += self._processor.encode(line, out_type=str)
        return [self._ids.get(piece, UNK) for piece in pieces]

    def _join(self, ids: list[int]) -> str:
        # It leaves pieces that only the other side's model has as they are.
        line: str = self._processor.decode_pieces(self.pieces(ids))
        return line.replace(_SPACE, " ").strip()


class _Subwords(_Table):
    """Subwords of tensor2tensor."""

    def __init__(self, pieces: list[str]):
        super().__init__(pieces)
        self._encoder = SubwordEncoder(pieces, num_reserved=len(SPECIAL_PIECES))

    def _split(self, line: str) -> list[int]:
        return self._encoder.encode(line)

    def _join(self, ids: list[int]) -> str:
        return self._encoder.decode(ids)


class _BytePairs(_Table):
    """Words, split by merges, or given in pieces."""

    def __init__(self, pieces: list[str], merges: list[tuple[str, str]] | None):
        super().__init__(pieces)
        self._cut = str.split if merges is None else BytePairEncoder(merges).split

    def _split(self, line: str) -> list[int]:
        return [self._ids.get(piece, UNK) for piece in self._cut(line)]

    def _join(self, ids: list[int]) -> str:
        return join_pieces(self.pieces(ids))


class _Words(_Table):
    """Words with spaces between them; unknown ones by their class, if there are any."""

    def __init__(self, pieces: list[str], num_words: int, num_classes: int):
        super().__init__(pieces)
        end = len(SPECIAL_PIECES) + num_words
        self._words = {
            piece: self._ids[piece] for piece in pieces[len(SPECIAL_PIECES) : end]
        }
        classes = pieces[end : end + num_classes]
        self._classes = {piece: number for number, piece in enumerate(classes, end)}
        self._end = end + num_classes  # of the pieces that are used

    def _split(self, line: str) -> list[int]:
        return [self._id(word) for word in line.split()]

    def _id(self, word: str) -> int:
        if (found := self._words.get(word)) is not None:
            return found
        if not self._classes:
            return UNK
        known = filter(self._classes.__contains__, word_classes(word))
        name = next(known, None)
        return UNK if name is None else self._classes[name]

    def _join(self, ids: list[int]) -> str:
        used = [number if number < self._end else UNK for number in ids]
        return " ".join(self.pieces(used))


def _processor(model: bytes, *, name: str, advice: str) -> Any:
    """Loads a SentencePiece model that has our special ids."""
    try:
        processor = _open(model)
    except ValueError as error:
        raise DataError(
            f"{name}: is not a SentencePiece model: {error}. {advice}"
        ) from error
    ids = [
        getattr(processor, f"{piece}_id")() for piece in ("pad", "bos", "eos", "unk")
    ]
    if ids != [PAD, BOS, EOS, UNK]:
        raise DataError(
            f"{name}: must have ids pad 0, bos 1, eos 2, unk 3, and has pad {ids[0]}, "
            f"bos {ids[1]}, eos {ids[2]}, unk {ids[3]}. {advice}\nspm_train "
            "--input=TEXT --model_prefix=NAME --model_type=bpe "
            f"--vocab_size={processor.get_piece_size()} --pad_id={PAD} "
            f"--bos_id={BOS} --eos_id={EOS} --unk_id={UNK} trains one that fits."
        )
    return processor


def _sentencepiece(encoded: str) -> Any:
    try:
        return _open(base64.b64decode(encoded, validate=True))
    except binascii.Error as error:
        raise ValueError("its SentencePiece model is not base64") from error


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


def _moses(language: str) -> Callable[[str], str] | None:
    if not language:
        return None
    try:
        from sacremoses import MosesPunctNormalizer
    except ImportError as error:
        raise UserError(
            "This vocabulary normalizes punctuation as Moses does, but sacremoses "
            f"cannot be imported: {error}. Run: pip install 't2t-jax[exchange]'"
        ) from error
    return MosesPunctNormalizer(language).normalize  # type: ignore[no-any-return]
