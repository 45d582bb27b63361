"""The vocabularies of both sides: one shared, or one for each.

Paper: §5.1, "a shared source-target vocabulary".
Departs: each side may have its own, for languages that share no script.
"""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from t2t_jax.data.config import VocabularyConfig
from t2t_jax.data.files.progress_bar import Log, ProgressBar
from t2t_jax.data.vocabulary.tokenizers import tags_among
from t2t_jax.data.vocabulary.vocabulary import Vocabulary, has_piece
from t2t_jax.errors import DataError, InputMissingError

FILES = ("vocab.model", "vocab_source.model")
"""The files of a workdir: the target or shared vocabulary, and the source's own."""

_MODE = "python -m t2t_jax.main --mode=recover, which restores it from a checkpoint"
_RECOVER = f"Run {_MODE}, or restore it from a copy."
_RESTORE = f"Restore it from a copy; or move it away, and run {_MODE}."


class VocabularyPair(NamedTuple):
    """The vocabularies of source and target; the same object if shared."""

    source: Vocabulary
    target: Vocabulary

    @property
    def shared(self) -> bool:
        """Whether both sides have the same pieces with the same ids."""
        return self.source is self.target

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the model, or of both models' SHA-256 if there are two."""
        if self.shared:
            return self.target.fingerprint
        return joint_fingerprint(self.source.fingerprint, self.target.fingerprint)

    @property
    def files(self) -> dict[str, bytes]:
        """The SentencePiece models by their file names in a workdir."""
        models = self[1:] if self.shared else self[::-1]
        return {name: one.model for name, one in zip(FILES, models, strict=False)}

    def save(self, directory: str | Path) -> None:
        """Writes `vocab.model` and `vocab.json`; a source's own as `vocab_source.*`.

        Raises:
          DataError: the directory holds other vocabularies, which are never replaced.
          OutputError: the directory cannot be written.
        """
        self.target.save(directory)
        if not self.shared:
            self.source.save(directory, name="vocab_source")

    @classmethod
    def load(cls, directory: str | Path, *, config: VocabularyConfig) -> VocabularyPair:
        """Loads what `save` wrote, of the configured sizes.

        Raises:
          DataError: a file is not a SentencePiece model, has other special ids, or
            another size than configured.
          InputMissingError: a file is missing.
        """
        names = FILES if config.source_size else FILES[:1]
        paths = [Path(directory) / name for name in names]
        for path in paths:
            if not path.exists():
                raise InputMissingError(f"{path}: no such file. {_RECOVER}")
        target, *own = [Vocabulary.load(path, advice=_RESTORE) for path in paths]
        both = cls(own[0] if own else target, target)
        both.check(config, name=str(directory), advice=_RESTORE)
        return both

    @classmethod
    def load_or_train(
        cls,
        pairs: Iterable[tuple[str, str]],
        *,
        config: VocabularyConfig,
        seed: int,
        log: Log,
        target_languages: Sequence[str] = (),
    ) -> VocabularyPair:
        """Loads the configured files, and trains the vocabularies without one.

        Args:
          pairs: the training corpus; read once for each vocabulary to be trained.
          target_languages: whose tags each trained vocabulary has.

        Raises:
          DataError: the text is too small or too varied for a size.
            Or both sides shall have the same ids, which no training gives.
          InputMissingError: a file does not exist.
        """
        if config.shared_ids and not (config.file and config.source_file):
            raise DataError(
                "vocabulary.shared_ids requires vocabulary.file and "
                "vocabulary.source_file: two vocabularies that are trained have "
                "different pieces. Set both, or vocabulary.source_size=0 to train one."
            )
        how: Any = {"seed": seed, "log": log, "target_languages": target_languages}
        if not config.source_size:
            shared = _prepare(chain.from_iterable(pairs), config, side="", **how)
            return cls(shared, shared)
        own: Any = {"size": config.source_size, "file": config.source_file}
        for_source = dataclasses.replace(config, **own, unit=config.source_unit)
        sources, targets = (one for one, _ in pairs), (one for _, one in pairs)
        source = _prepare(sources, for_source, side="source_", **how)
        return cls(source, _prepare(targets, config, side="", **how))

    def check(self, config: VocabularyConfig, *, name: str, advice: str = "") -> None:
        """Checks that the vocabularies are as configured.

        Args:
          name: origin of the vocabularies, for the message.
          advice: a sentence; "" is to change the size.

        Raises:
          DataError: the sizes differ, or the pieces of sides with shared ids.
        """
        keys = ("source_size" if config.source_size else "size", "size")
        for vocabulary, key in zip(self, keys, strict=True):
            if (size := vocabulary.size) != (wanted := getattr(config, key)):
                what = f"{name} has {size} subwords and vocabulary.{key}={wanted}"
                change = advice or f"Set config.vocabulary.{key}={size}."
                raise DataError(f"{what}. {change}")
            for symbol in config.symbol_list:
                is_tag = tags_among([symbol]).keys() & vocabulary.tags
                if not (is_tag or has_piece(vocabulary, symbol)):
                    what = f"{symbol!r} of vocabulary.symbols as a piece"
                    change = advice or "Change config.vocabulary.symbols."
                    raise DataError(
                        f"{name} must have {what} that is not split. {change}"
                    )
        every = range(config.size)
        if config.shared_ids and self.source.pieces(every) != self.target.pieces(every):
            rule = "vocabulary.shared_ids requires the same with the same ids"
            change = advice or "Change config.vocabulary.shared_ids."
            raise DataError(
                f"{name} has sides of different pieces, and {rule}. {change}"
            )


def joint_fingerprint(*sides: str) -> str:
    """Returns the fingerprint of a pair from that of each vocabulary, or of one."""
    if len(sides) == 1:
        return sides[0]
    return hashlib.sha256("".join(sides).encode()).hexdigest()


def _prepare(
    lines: Iterable[str], config: VocabularyConfig, *, side: str, log: Log, **how: Any
) -> Vocabulary:
    if config.file:
        advice = f"Change config.vocabulary.{side}file."
        return Vocabulary.load(config.file, advice=advice)
    log(f"Training a vocabulary of {config.size:,} {config.unit} …")
    began = time.monotonic()
    how |= {"config": config, "key": f"vocabulary.{side}size"}
    with ProgressBar(log).heartbeat("Training the vocabulary"):
        trained = Vocabulary.train(lines, config.size, classes=side == "source_", **how)
    log(f"Trained the vocabulary in {time.monotonic() - began:,.1f} s.")
    return trained
