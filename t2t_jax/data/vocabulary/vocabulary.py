"""A subword vocabulary: byte-pair encoding, as a rule over both languages at once.

Paper: §5.1 and its reference [31] (Sennrich et al.): a shared source-target vocabulary.
Departs: SentencePiece marks where a word begins (U+2581) instead of where it ends, and
  normalises text (NFKC, runs of spaces) before it looks for pieces.
"""

from __future__ import annotations

import hashlib
import io
import json
import random
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from t2t_jax.arguments import as_lines, require_lines
from t2t_jax.data.config import VocabularyConfig
from t2t_jax.data.files.lines import require_files
from t2t_jax.errors import DataError, write_error
from t2t_jax.files import MOST_VOCABULARY_BYTES, atomic_write, read_limited, write_once

PAD, BOS, EOS, UNK = 0, 1, 2, 3

# Whatever some reader takes for the end of a line: a piece spelt in bytes can be one.
_LINE_ENDS = re.compile("[\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029]")

# Longer lines teach no subwords that shorter ones do not, and cost quadratic time.
_LONGEST_LESSON = 4096

_MEND = "Change config.vocabulary.file."
_OTHER = "Pass another workdir."


class Vocabulary:
    """Pieces and their ids: text in, ids out, and back.

    Args:
      model: a serialised SentencePiece model with ids pad 0, bos 1, eos 2, unk 3.
      name: where the model comes from, for the messages.
      mend: what the user may do if it is none, a sentence.

    Attributes:
      model: those bytes.
      size: number of pieces, the four special ones included.
      fingerprint: SHA-256 of the model.

    Raises:
      DataError: the bytes are no such model.

    Example:
      The words of the paper's reference [31]. A frequent word becomes one piece, and
      one that was never seen is put together from the pieces of others.

      >>> words = 5 * ["low"] + 2 * ["lower"] + 6 * ["newest"] + 3 * ["widest"]
      >>> config = VocabularyConfig(size=22)
      >>> vocabulary = Vocabulary.train(words, config=config, seed=0)
      >>> vocabulary.pieces(range(4, 8))
      ['es', 'est', 'lo', 'low']
      >>> vocabulary.pieces(vocabulary.encode(["lowest"])[0])
      ['▁low', 'est']
    """

    def __init__(
        self,
        model: bytes,
        *,
        name: str = "the vocabulary",
        mend: str = _MEND,
    ):
        self.model = model
        self.fingerprint = hashlib.sha256(model).hexdigest()
        self._processor = _processor(model, name, mend=mend)
        self.size: int = self._processor.get_piece_size()

    @classmethod
    def train(
        cls,
        lines: Iterable[str],
        *,
        config: VocabularyConfig,
        seed: int,
        key: str = "vocabulary.size",
    ) -> Vocabulary:
        """Learns pieces from text; the same text, config and seed give the same bytes.

        Args:
          lines: sentences of both languages, read once; at most
            `config.sample_sentences` of them are held in memory.
          seed: chooses the sample, where there are more lines.
          key: what the size is called, for the messages.

        Raises:
          DataError: the text is too small or too varied for the size.
          TypeError: `lines` is a single string.
        """
        import sentencepiece

        require_lines(lines, caller="train")
        sample = _sample(lines, config.sample_sentences, seed=seed)
        if not sample:
            raise DataError(
                "The vocabulary has no text to learn from: every line is blank or too "
                "long. Change config.data.train."
            )
        written = io.BytesIO()
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=_handed_over(sample),
                model_writer=written,
                model_type="bpe",
                vocab_size=config.size,
                character_coverage=config.character_coverage,
                byte_fallback=config.byte_fallback,
                pad_id=PAD,
                bos_id=BOS,
                eos_id=EOS,
                unk_id=UNK,
                max_sentence_length=4 * _LONGEST_LESSON,
                minloglevel=2,
            )
        except RuntimeError as error:
            raise DataError(_explain(str(error), config, key=key)) from error
        return cls(written.getvalue())

    @classmethod
    def load(cls, path: str | Path, *, mend: str = _MEND) -> Vocabulary:
        """Reads a SentencePiece model.

        Raises:
          DataError: the file is no SentencePiece model, or too large for one, or has
            other special ids.
          InputMissingError: the file is not there or cannot be read.
        """
        require_files(path)
        model = read_limited(Path(path), most=MOST_VOCABULARY_BYTES, mend=mend)
        return cls(model, name=str(path), mend=mend)

    def save(self, directory: str | Path, *, name: str = "vocab") -> None:
        """Writes `NAME.model`, and `NAME.json` for people, into `directory`.

        Raises:
          DataError: another vocabulary is there, which is never replaced.
          OSError: the disk is full or fails.
          OutputError: the directory cannot be written.
        """
        told = {
            "size": self.size,
            "ids": {"pad": PAD, "bos": BOS, "eos": EOS, "unk": UNK},
            "fingerprint": self.fingerprint,
            "pieces": self.pieces(range(self.size)),
        }
        text = json.dumps(told, ensure_ascii=False, indent=1) + "\n"
        try:
            Path(directory).mkdir(parents=True, exist_ok=True)
            # First, for it never changes; what is told of it can be told again.
            write_once(Path(directory) / f"{name}.model", self.model, mend=_OTHER)
            atomic_write(Path(directory) / f"{name}.json", text)
        except OSError as error:
            raise write_error(
                directory,
                error,
                told="the vocabulary cannot be written",
                change="choose another workdir",
            ) from error

    def encode(self, lines: Iterable[str]) -> list[list[int]]:
        """Cuts sentences into subwords, on all cores.

        Args:
          lines: sentences. Text that looks like a special piece is ordinary text.

        Returns:
          The ids of each sentence, without bos and eos.

        Raises:
          TypeError: `lines` is a single string, or holds something else than strings.
        """
        texts = as_lines(lines, caller="encode")
        return self._processor.encode(texts, out_type=int)  # type: ignore[no-any-return]

    def decode(self, sequences: Iterable[Iterable[int]]) -> list[str]:
        """Joins subwords to sentences.

        Args:
          sequences: ids; pad, bos and eos are dropped wherever they stand.

        Returns:
          One line each: what could end a line becomes a space.
        """
        ids = [[int(piece) for piece in sequence] for sequence in sequences]
        return [_LINE_ENDS.sub(" ", line) for line in self._processor.decode(ids)]

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Returns the pieces as they are stored, U+2581 for a space."""
        return [self._processor.id_to_piece(int(piece)) for piece in ids]


def _processor(model: bytes, name: str, *, mend: str) -> Any:
    import sentencepiece

    refusal = f"{name}: is not a SentencePiece model. {mend}"
    if not model:  # which SentencePiece takes for a model without pieces
        raise DataError(refusal)
    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    except RuntimeError as error:
        raise DataError(refusal) from error
    ids = [
        getattr(processor, f"{piece}_id")() for piece in ("pad", "bos", "eos", "unk")
    ]
    if ids != [PAD, BOS, EOS, UNK]:
        raise DataError(
            f"{name}: must have ids pad 0, bos 1, eos 2, unk 3, and has pad {ids[0]}, "
            f"bos {ids[1]}, eos {ids[2]}, unk {ids[3]}. {mend}"
        )
    return processor


def _sample(lines: Iterable[str], most: int, *, seed: int) -> list[str]:
    """Keeps `most` lines, each with the same chance, of a stream of unknown length."""
    chance = random.Random(seed)
    kept: list[str] = []
    usable = (line for line in lines if len(line) <= _LONGEST_LESSON and line.strip())
    for seen, line in enumerate(usable):
        if seen < most:
            kept.append(line)
        elif (place := chance.randrange(seen + 1)) < most:
            kept[place] = line
    return kept


def _handed_over(lines: list[str]) -> Iterator[str]:
    """Yields lines in their order and lets go of each: the trainer has its own copy."""
    lines.reverse()
    while lines:
        yield lines.pop()


def _explain(complaint: str, config: VocabularyConfig, *, key: str) -> str:
    if largest := re.search(r"too high.*<= (\d+)", complaint):
        return (
            f"{key}={config.size} must be at most {largest[1]} for this "
            f"text, which has no more pieces. Change config.{key}."
        )
    if needed := re.search(r"smaller than required_chars\. \d+ vs (\d+)", complaint):
        return (
            f"{key}={config.size} must be at least {needed[1]} for this "
            f"text, to spell its characters. Change config.{key}, or lower "
            "config.vocabulary.character_coverage."
        )
    return f"No vocabulary can be learnt from this text: {complaint}"
