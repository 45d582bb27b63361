"""A vocabulary: subwords by byte-pair encoding, with SentencePiece, or words.

Paper: §5.1 and its reference [31] (Sennrich et al.): a shared source-target vocabulary.
Departs: SentencePiece marks the beginning of a word (U+2581) instead of its end, and
  normalises text (NFKC, runs of spaces) first.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from t2t_jax.data.config import VocabularyConfig
from t2t_jax.data.files.lines import require_files
from t2t_jax.data.line_arguments import as_lines, require_lines
from t2t_jax.data.vocabulary.sentencepiece_training import (
    MAX_LINE_LENGTH,
    NO_TEXT,
    train_sentencepiece,
)
from t2t_jax.data.vocabulary.tokenizers import (
    SPECIAL_PIECES,
    load_tokenizer,
    split_tag,
    tag_piece,
    tags_among,
    word_table,
)
from t2t_jax.data.vocabulary.words import learn_words
from t2t_jax.errors import DataError, UserError, write_error
from t2t_jax.files import MAX_VOCABULARY_BYTES, atomic_write, read_limited, write_once
from t2t_jax.types import BOS, EOS, PAD, UNK

# All line ends that some reader recognises; byte fallback can produce them.
_LINE_ENDS = re.compile("[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]")

DEFAULT = VocabularyConfig()

_ADVICE = "Change config.vocabulary.file."
_OTHER = "Pass another workdir."


class Vocabulary:
    """Subwords and their ids.

    Args:
      model: content of a SentencePiece model or a table of pieces
        (`tokenizers.table_file`), whose special ids are ours.
      name: origin of the model, for messages.
      advice: what to do if the model is invalid, a sentence.

    Attributes:
      size: number of pieces, the four special ones included.
      tags: by target language, such as `de`, the id of `>>de<<`, with which a source
        begins that is to be translated into it; empty if there are none.

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
        tags = [tag_piece(language) for language in target_languages]
        if tags:
            tags = list(map(tag_piece, tags_among([*tags, *config.symbol_list])))
        require_lines(lines, caller="train")
        sample = _sample(lines, config.sample_sentences, seed=seed)
        if not sample:
            raise DataError(NO_TEXT)
        if config.unit == "words":
            room, symbols = config.size - len(SPECIAL_PIECES), config.symbol_list
            symbols = tuple(dict.fromkeys((*tags, *symbols)))
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
        description = {
            "size": self.size,
            "ids": {"pad": PAD, "bos": BOS, "eos": EOS, "unk": UNK},
            "fingerprint": self.fingerprint,
            "pieces": self.pieces(range(self.size)),
        }
        text = json.dumps(description, ensure_ascii=False, indent=1) + "\n"
        try:
            Path(directory).mkdir(parents=True, exist_ok=True)
            # The model first: it never changes, and the JSON can be rewritten from it.
            write_once(Path(directory) / f"{name}.model", self.model, advice=_OTHER)
            atomic_write(Path(directory) / f"{name}.json", text)
        except OSError as error:
            raise write_error(
                directory,
                error,
                problem="the vocabulary cannot be written",
                advice="choose another workdir",
            ) from error

    def encode(self, lines: Iterable[str]) -> list[list[int]]:
        """Encodes sentences into ids without bos and eos.

        SentencePiece models do so on all cores, tables of pieces on one. Text that
        looks like a special piece is encoded as ordinary text.

        Raises:
          TypeError: `lines` is a single string, or holds something other than strings.
        """
        return self._tokenizer.encode(as_lines(lines, caller="encode"))

    def split_tags(
        self, lines: Sequence[str], target_language: str | None = ""
    ) -> tuple[list[str], list[list[int]]]:
        """Splits off the tag that a source begins with; one way for all models.

        Args:
          target_language: of all lines, whatever tags they begin with; "" for those of
            the lines, and of other lines the only one that there is; None for those of
            the lines alone.

        Returns:
          The text of each line, and the ids with which its encoding begins: of its tag,
          or none if the vocabulary has no tags.

        Raises:
          UserError: there is no tag of the language; or there are several, and a line
            that is not blank begins with none of them.

        Example:
          >>> words = ["a dog barks", "ein Hund bellt"] * 9
          >>> words = Vocabulary.train(words, 40, target_languages=["de", "fr"])
          >>> words.split_tags([">>fr<< a dog", "a dog"], "de")
          ([' a dog', 'a dog'], [[4], [4]])
        """
        known = ", ".join(self.tags)
        if target_language and target_language not in self.tags:
            has = f"tags of {known}. Choose one" if known else "none. Leave it out"
            raise UserError(
                f"target_language={target_language} must be a language that the model "
                f"has a tag of, and it has {has}."
            )
        usual = target_language or ""
        if target_language == "" and len(self.tags) == 1:
            (usual,) = self.tags
        split = [split_tag(line, self.tags) for line in lines]
        languages = [target_language or tag or usual for tag, _ in split]
        may_miss = target_language is None or not self.tags
        for language, line in zip(languages, lines, strict=True):
            if not (language or may_miss) and line.strip():
                raise UserError(
                    "The model translates into several languages, and a line names "
                    f"none. Pass target_language, one of {known}, or begin the line "
                    f"with a tag, such as {tag_piece(next(iter(self.tags)))}."
                )
        ids = [[self.tags[one]] if one else [] for one in languages]
        return [text for _, text in split], ids

    def encode_sources(
        self, lines: Iterable[str], target_language: str | None = ""
    ) -> list[list[int]]:
        """Encodes sources as a model reads them, with their tags, without eos.

        Args:
          target_language: as in `split_tags`.

        Raises:
          TypeError, UserError: as in `encode` and `split_tags`.
        """
        texts, tags = self.split_tags([*lines], target_language)
        encoded = zip(tags, self.encode(texts), strict=True)
        return [[*tag, *ids] for tag, ids in encoded]

    def decode(self, sequences: Iterable[Iterable[int]]) -> list[str]:
        """Decodes ids into lines, without pad, bos and eos; line ends become spaces."""
        ids = [[int(piece) for piece in sequence] for sequence in sequences]
        return [_LINE_ENDS.sub(" ", line) for line in self._tokenizer.decode(ids)]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Returns the pieces as stored, with U+2581 for a space."""
        return self._tokenizer.pieces(ids)


def _sample(lines: Iterable[str], most: int, *, seed: int) -> list[str]:
    """Samples `most` lines uniformly from a stream of unknown length."""
    rng = random.Random(seed)
    kept: list[str] = []
    usable = (line for line in lines if len(line) <= MAX_LINE_LENGTH and line.strip())
    for seen, line in enumerate(usable):
        if seen < most:
            kept.append(line)
        elif (index := rng.randrange(seen + 1)) < most:
            kept[index] = line
    return kept
