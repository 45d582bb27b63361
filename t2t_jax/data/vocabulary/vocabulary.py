"""A vocabulary: subwords by byte-pair encoding, with SentencePiece, or words.

Paper: §5.1 and its reference [31] (Sennrich et al.): a shared source-target vocabulary.
Departs: SentencePiece marks the beginning of a word (U+2581) instead of its end, and
  normalises text (NFKC, runs of spaces) first.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from t2t_jax.data.config import VocabularyConfig
from t2t_jax.data.files.lines import require_files
from t2t_jax.data.line_arguments import as_lines, require_lines
from t2t_jax.data.vocabulary.tokenizers import (
    SPECIAL_PIECES,
    Tagged,
    load_tokenizer,
    near_tags,
    shown_tags,
    split_tag,
    tag_piece,
    tags_among,
    tags_of,
    word_table,
)
from t2t_jax.data.vocabulary.words import learn_words
from t2t_jax.errors import DataError, UserError, writing
from t2t_jax.files import MAX_VOCABULARY_BYTES, atomic_write, read_limited, write_once
from t2t_jax.types import BOS, EOS, PAD, UNK

# All line ends that some reader recognises, and NUL, which readers of text refuse;
# byte fallback can produce them.
_LINE_ENDS = re.compile("[\0\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]")

DEFAULT = VocabularyConfig()

_MAX_LINE_LENGTH = 4096
"""Longer lines add no subwords and cost quadratic time."""

_NO_TEXT = "No vocabulary: every line is blank or too long. Change config.data.train."

_ADVICE = "Change config.vocabulary.file."
_OTHER = "Pass another workdir."


class TaggedLines(NamedTuple):
    """Lines whose tags are split off, and of each line the ids of its tags, or none.

    Attributes:
      source_tags: with which the encoding of its source begins.
      target_tags: with which the encoding of its translation begins.
    """

    texts: list[str]
    source_tags: list[list[int]]
    target_tags: list[list[int]]


class Vocabulary:
    """Subwords and their ids.

    Args:
      model: content of a SentencePiece model or a table of pieces
        (`tokenizers.table_file`), whose special ids are ours.
      name: origin of the model, for messages.
      advice: what to do if the model is invalid, a sentence.

    Attributes:
      size: number of pieces, the four special ones included.
      tags: by language, such as `de`, the id of its tag, such as `>>de<<`; empty if
        there are none.
      reads_source: whether a source begins with the tag of its own language, and a
        target with its own, as in M2M-100, whose vocabulary is one for both sides; else
        a source begins with that of the language that it is to become.

    Raises:
      DataError: the bytes are not such a model.
      UserError: the model needs a package that is not installed.

    Example:
      The words of the paper's reference [31]. A frequent word becomes one piece; an
      unseen word is composed of the pieces of others.

      >>> words = 5 * ["low"] + 2 * ["lower"] + 6 * ["newest"] + 3 * ["widest"]
      >>> vocabulary = Vocabulary.train(words, 22)
      >>> vocabulary.pieces(range(4, 8))
      ['es', 'est', 'lo', 'low']
      >>> vocabulary.pieces(vocabulary.encode(["lowest"])[0])
      ['▁low', 'est']
    """

    def __init__(
        self, model: bytes, *, name: str = "the vocabulary", advice: str = _ADVICE
    ):
        self.model = model
        self.fingerprint = hashlib.sha256(model).hexdigest()
        self._tokenizer = load_tokenizer(model, name=name, advice=advice)
        self.size, self.tags = self._tokenizer.size, self._tokenizer.tags
        self.reads_source = self._tokenizer.reads_source

    @classmethod
    def train(
        cls,
        lines: Iterable[str],
        size: int,
        *,
        seed: int = 0,
        config: VocabularyConfig = DEFAULT,
        key: str = "vocabulary.size",
        classes: bool = False,
        target_languages: Iterable[str] = (),
    ) -> Vocabulary:
        """Trains a vocabulary; the same text and arguments give the same bytes.

        So each of several processes may train its own.

        Args:
          lines: sentences of both languages, read once; at most
            `config.sample_sentences` of them are held in memory.
          size: number of pieces, the four special ones included. The paper has 37,000.
          seed: of the sample, if there are more lines.
          config: units, symbols and all else but the size.
          key: the configuration key of the size, for messages.
          classes: of a vocabulary of words: whether unknown words have classes.
          target_languages: whose tags it has, such as `>>de<<`: reserved pieces that no
            text is encoded as and no search generates. With any, the symbols of
            `config` of this form are tags too.

        Raises:
          ConfigError: the size is too small for any text.
          DataError: the text is too small or too varied for the size.
          TypeError: `lines` is a single string.
        """
        config = dataclasses.replace(config, size=size)
        if tags := [tag_piece(language) for language in target_languages]:
            tags = list(map(tag_piece, tags_among([*tags, *config.symbol_list])))
        require_lines(lines, caller="train")
        if not (sample := sample_lines(lines, config.sample_sentences, seed=seed)):
            raise DataError(_NO_TEXT)
        if config.unit == "words":
            room = config.size - len(SPECIAL_PIECES)
            symbols = tuple(dict.fromkeys((*tags, *config.symbol_list)))
            listed = learn_words(sample, room, classes=classes, symbols=symbols)
            has_tags = {"language_tokens": True} if tags else {}
            return cls(word_table(listed, config.size, **has_tags))
        return cls(train_sentencepiece(sample, config, key=key, tags=tags))

    @classmethod
    def load(cls, path: str | Path, *, advice: str = _ADVICE) -> Vocabulary:
        """Loads a SentencePiece model, or a table of pieces.

        Raises:
          DataError: the file is not a vocabulary, is too large, or has other
            special ids.
          InputMissingError: the file does not exist or cannot be read.

        Example:
          >>> import tempfile
          >>> words = Vocabulary.train(["a dog barks", "ein Hund bellt"] * 9, 30)
          >>> folder = tempfile.mkdtemp()
          >>> words.save(folder)
          >>> Vocabulary.load(f"{folder}/vocab.model").size
          30
        """
        require_files(path)
        model = read_limited(Path(path), max_bytes=MAX_VOCABULARY_BYTES, advice=advice)
        return cls(model, name=str(path), advice=advice)

    def save(self, directory: str | Path, *, name: str = "vocab") -> None:
        """Writes `NAME.model`, and a human-readable `NAME.json`, into `directory`.

        Raises:
          DataError: the directory holds another vocabulary, which is never replaced.
          OSError: the disk is full or fails.
          OutputError: the directory cannot be written.
        """
        ids = {"pad": PAD, "bos": BOS, "eos": EOS, "unk": UNK}
        description = {"size": self.size, "ids": ids, "fingerprint": self.fingerprint}
        description["pieces"] = self.pieces(range(self.size))
        text = json.dumps(description, ensure_ascii=False, indent=1) + "\n"
        problem = "the vocabulary cannot be written"
        with writing(directory, problem=problem, advice="choose another workdir"):
            Path(directory).mkdir(parents=True, exist_ok=True)
            # The model first: it never changes, and the JSON can be rewritten from it.
            write_once(Path(directory) / f"{name}.model", self.model, advice=_OTHER)
            atomic_write(Path(directory) / f"{name}.json", text)

    def encode(self, lines: Iterable[str]) -> list[list[int]]:
        """Encodes sentences into ids without bos and eos.

        SentencePiece models do so on all cores, tables of pieces on one. Text that
        looks like a special piece is encoded as ordinary text.

        Raises:
          TypeError: `lines` is a single string, or holds something other than strings.
        """
        return self._tokenizer.encode(as_lines(lines, caller="encode"))

    def split_tags(
        self,
        lines: Sequence[str],
        *,
        source_language: str | None = None,
        target_language: str | None = None,
    ) -> TaggedLines:
        """Splits off the tags that sources begin with; one way for all models.

        A line may begin with `>>de<<`, the language that it is to become, or with
        `>>en-de<<`, which names its own too.

        Args:
          source_language: of all lines, whatever their tags say; for vocabularies with
            `reads_source`.
          target_language: of all lines, whatever their tags say; None for that of the
            tags, and of other lines the only one that there is; "" for that of the
            tags, if there are any.

        Raises:
          UserError: there is no tag of a language; or a line that is not blank does not
            name one that the model needs.

        Example:
          >>> words = ["a dog barks", "ein Hund bellt"] * 9
          >>> words = Vocabulary.train(words, 40, target_languages=["de", "fr"])
          >>> words.split_tags([">>fr<< a dog", "a dog"], target_language="de")[:2]
          ([' a dog', 'a dog'], [[4], [4]])
        """
        _require_known(self, source_language, target_language)
        reads_source, (*known,) = self.reads_source, self.tags
        usual = known[0] if target_language is None and len(known) == 1 else ""
        found = TaggedLines([], [], [])
        for line in lines:
            source, target, text = split_tag(line, self.tags)
            target = target_language or target or usual
            own, to = tags_of(self, source_language or source, target)
            is_complete = own and (to or not reads_source)
            if known and target_language != "" and line.strip() and not is_complete:
                side, pair = "source" if target else "target", known[: 1 + reads_source]
                raise UserError(
                    f"The model has several languages, and a line names no {side}. "
                    f"Pass {side}_language, one of {shown_tags(known)}, or begin the "
                    f"line with a tag, such as {tag_piece('-'.join(pair))}."
                )
            found.texts.append(text)
            found.source_tags.append(own)
            found.target_tags.append(to)
        return found

    def encode_sources(
        self, lines: Iterable[str], **languages: str | None
    ) -> list[list[int]]:
        """Encodes sources as a model reads them, with their tags, without eos.

        Args:
          languages: `source_language` and `target_language`, as in `split_tags`.

        Raises:
          TypeError, UserError: as in `encode` and `split_tags`.
        """
        texts, tags, _ = self.split_tags([*lines], **languages)
        return [[*tag, *ids] for tag, ids in zip(tags, self.encode(texts), strict=True)]

    def decode(self, sequences: Iterable[Iterable[int]]) -> list[str]:
        """Decodes ids into lines, without pad, bos and eos; line ends become spaces."""
        ids = [[int(piece) for piece in sequence] for sequence in sequences]
        return [_LINE_ENDS.sub(" ", line) for line in self._tokenizer.decode(ids)]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Returns the pieces as stored, with U+2581 for a space."""
        return self._tokenizer.pieces(ids)


def table_of(vocabulary: Vocabulary) -> dict[str, Any]:
    """Returns the table of a vocabulary of another toolkit; {} for SentencePiece's."""
    return json.loads(vocabulary.model) if vocabulary.model.startswith(b"{") else {}


def has_piece(vocabulary: Vocabulary, text: str) -> bool:
    """Returns whether a text is encoded with itself as a piece that is not split."""
    return text in vocabulary.pieces(vocabulary.encode([text])[0])


def _require_known(tagged: Tagged, source: str | None, target: str | None) -> None:
    """Checks languages that are given for all lines."""
    for side, language in (("target", target), ("source", source)):
        if language and language not in tagged.tags:
            has = "none. Leave it out"
            if tagged.tags:
                near = near_tags(language, tagged.tags)
                meant = f"Did you mean {' or '.join(near)}? " if near else ""
                has = f"tags of {shown_tags(tagged.tags, language)}. {meant}Choose one"
            rule = "must be a language that the model has a tag of, and it has"
            raise UserError(f"{side}_language={language} {rule} {has}.")
    if source and not tagged.reads_source:
        raise UserError(
            f"source_language={source} is for models whose sources begin with the tag "
            "of their own language, and not with that of the target. Leave it out."
        )


def sample_lines(lines: Iterable[str], most: int, *, seed: int) -> list[str]:
    """Samples `most` lines uniformly from a stream of unknown length."""
    rng = random.Random(seed)
    kept: list[str] = []
    usable = (line for line in lines if len(line) <= _MAX_LINE_LENGTH and line.strip())
    for seen, line in enumerate(usable):
        if seen < most:
            kept.append(line)
        elif (index := rng.randrange(seen + 1)) < most:
            kept[index] = line
    return kept


def train_sentencepiece(
    sample: list[str],
    config: VocabularyConfig,
    *,
    key: str,
    tags: Sequence[str] = (),
    is_limit: bool = False,
) -> bytes:
    """Trains a SentencePiece model of byte pairs, and returns the content of its file.

    Args:
      sample: lines, which are removed.
      key: the configuration key of the size, for messages.
      tags: pieces that no text is encoded as.
      is_limit: whether a text with fewer pieces than the size gives these.

    Raises:
      DataError: the text is too small or too varied for the size.
    """
    import sentencepiece

    written = io.BytesIO()
    special: Any = {"pad_id": PAD, "bos_id": BOS, "eos_id": EOS, "unk_id": UNK}
    try:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=_consume(sample),
            model_writer=written,
            model_type="bpe",
            vocab_size=config.size,
            hard_vocab_limit=not is_limit,
            character_coverage=config.character_coverage,
            byte_fallback=config.byte_fallback,
            control_symbols=list(tags),
            user_defined_symbols=[s for s in config.symbol_list if s not in tags],
            **special,
            max_sentence_length=4 * _MAX_LINE_LENGTH,
            minloglevel=2,
        )
    except RuntimeError as error:
        raise DataError(_training_error(str(error), config, key=key)) from error
    return written.getvalue()


def _consume(lines: list[str]) -> Iterator[str]:
    """Yields lines in order and frees each: the trainer keeps its own copy."""
    lines.reverse()
    while lines:
        yield lines.pop()


def _training_error(reason: str, config: VocabularyConfig, *, key: str) -> str:
    if largest := re.search(r"too high.*<= (\d+)", reason):
        rule = f"must be at most {largest[1]} for this text, which has no more pieces"
        return f"{key}={config.size} {rule}. Change config.{key}."
    if needed := re.search(r"smaller than required_chars\. \d+ vs (\d+)", reason):
        rule = f"must be at least {needed[1]} for this text, to cover its characters"
        change = f"Change config.{key}, or lower config.vocabulary.character_coverage."
        return f"{key}={config.size} {rule}. {change}"
    if "all_chars_count" in reason:  # Invisible characters, which are normalised away.
        return _NO_TEXT
    return f"Cannot train a vocabulary on this text: {reason}"
