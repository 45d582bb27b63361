"""Trains subwords with SentencePiece.

Paper: §5.1 and its reference [31] (Sennrich et al.).
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence

from t2t_jax.data.config import VocabularyConfig
from t2t_jax.errors import DataError
from t2t_jax.types import BOS, EOS, PAD, UNK

MAX_LINE_LENGTH = 4096
"""Longer lines add no subwords and cost quadratic time."""

NO_TEXT = (
    "Cannot train the vocabulary: every line of the text is blank or too long. Change "
    "config.data.train."
)


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
            pad_id=PAD,
            bos_id=BOS,
            eos_id=EOS,
            unk_id=UNK,
            max_sentence_length=4 * MAX_LINE_LENGTH,
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
        return (
            f"{key}={config.size} must be at most {largest[1]} for this "
            f"text, which has no more pieces. Change config.{key}."
        )
    if needed := re.search(r"smaller than required_chars\. \d+ vs (\d+)", reason):
        return (
            f"{key}={config.size} must be at least {needed[1]} for this "
            f"text, to cover its characters. Change config.{key}, or lower "
            "config.vocabulary.character_coverage."
        )
    if "all_chars_count" in reason:  # Invisible characters, which are normalised away.
        return NO_TEXT
    return f"Cannot train a vocabulary on this text: {reason}"
