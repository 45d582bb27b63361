"""The vocabularies of both sides: one that they share, or one for each.

Paper: §5.1, "a shared source-target vocabulary".
Departs: each side may have its own, where the two share no script.
"""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from t2t_jax.data.config import VocabularyConfig
from t2t_jax.data.files.progress import ProgressBar
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import DataError, InputMissingError

FILES = ("vocab.model", "vocab_source.model")
"""The files of a workdir: of the target or of both sides, and of the source alone."""

_SOURCE = "vocab_source"
_RECOVER = (
    "Run python -m t2t_jax.main --mode=recover, which restores it from a checkpoint, "
    "or restore it from a copy."
)
_RESTORE = (
    "Restore it from a copy; or move it away, and run python -m t2t_jax.main "
    "--mode=recover, which restores it from a checkpoint."
)


class VocabularyPair(NamedTuple):
    """What cuts each side into subwords; one object twice where it is shared.

    Attributes:
      source: of the sentences to translate.
      target: of their translations.
    """

    source: Vocabulary
    target: Vocabulary

    @property
    def shared(self) -> bool:
        """Whether both sides have the same pieces with the same ids."""
        return self.source is self.target

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the model, or of both models' SHA-256 where there are two."""
        if self.shared:
            return self.target.fingerprint
        return joint_fingerprint(self.source.fingerprint, self.target.fingerprint)

    @property
    def files(self) -> dict[str, bytes]:
        """The SentencePiece models by the names that they have in a workdir."""
        held = self[1:] if self.shared else (self.target, self.source)
        return {name: one.model for name, one in zip(FILES, held, strict=False)}

    def save(self, directory: str | Path) -> None:
        """Writes `vocab.model` and `vocab.json`; a source's own as `vocab_source.*`.

        Raises:
          DataError: other vocabularies are there, which are never replaced.
          OutputError: the directory cannot be written.
        """
        self.target.save(directory)
        if not self.shared:
            self.source.save(directory, name=_SOURCE)

    @classmethod
    def load(cls, directory: str | Path, *, config: VocabularyConfig) -> VocabularyPair:
        """Reads what `save` has written.

        Args:
          directory: of a run or a model.
          config: says whether the source has its own, and the sizes.

        Raises:
          DataError: a file is no SentencePiece model, or has other special ids, or
            another size than is configured.
          InputMissingError: there is none.
        """
        names = FILES if config.source_size else FILES[:1]
        for place in map(Path(directory).joinpath, names):
            if not place.exists():
                raise InputMissingError(f"{place}: no such file. {_RECOVER}")
        loaded = [
            Vocabulary.load(Path(directory) / name, mend=_RESTORE) for name in names
        ]
        target, source = loaded[0], loaded[-1]
        both = cls(source, target)
        both.require_sizes(config, name=str(directory), mend=_RESTORE)
        return both

    @classmethod
    def load_or_train(
        cls,
        pairs: Iterable[tuple[str, str]],
        *,
        config: VocabularyConfig,
        seed: int,
        say: Callable[[str], None],
    ) -> VocabularyPair:
        """Loads the files that are configured, and learns from text what is not.

        Args:
          pairs: the training corpus; read once for each vocabulary to be learnt.
          config: files, sizes and how to learn.
          seed: chooses the sample, where there is more text than one needs.
          say: tells people what is being done.

        Raises:
          DataError: the text is too small or too varied for a size.
          InputMissingError: a file is not there.
        """
        if not config.source_size:
            lines = (line for pair in pairs for line in pair)
            shared = _find(lines, config, side="", seed=seed, say=say)
            return cls(shared, shared)
        for_source = dataclasses.replace(
            config, size=config.source_size, file=config.source_file
        )
        return cls(
            _find(
                (source for source, _ in pairs),
                for_source,
                side="source_",
                seed=seed,
                say=say,
            ),
            _find(
                (target for _, target in pairs),
                config,
                side="",
                seed=seed,
                say=say,
            ),
        )

    def require_sizes(
        self, config: VocabularyConfig, *, name: str, mend: str = ""
    ) -> None:
        """Checks that the sizes are those of the configuration.

        Args:
          config: says how large they must be.
          name: where these come from, for the message.
          mend: what the user may do, a sentence; "" is to change the size.

        Raises:
          DataError: they are not.
        """
        wanted = (config.source_size or config.size, config.size)
        keys = ("source_size" if config.source_size else "size", "size")
        for vocabulary, size, key in zip(self, wanted, keys, strict=True):
            if vocabulary.size != size:
                raise DataError(
                    f"{name} has {vocabulary.size} subwords and vocabulary.{key}="
                    f"{size}. {mend or f'Change config.vocabulary.{key}.'}"
                )


def joint_fingerprint(*sides: str) -> str:
    """Returns the fingerprint of the vocabularies that have these fingerprints.

    Args:
      *sides: Of the shared vocabulary, or of the source's and the target's.

    Example:
      >>> joint_fingerprint("4e07408562")
      '4e07408562'
    """
    if len(sides) == 1:
        return sides[0]
    return hashlib.sha256("".join(sides).encode()).hexdigest()


def _find(
    lines: Iterable[str],
    config: VocabularyConfig,
    *,
    side: str,
    seed: int,
    say: Callable[[str], None],
) -> Vocabulary:
    if config.file:
        mend = f"Change config.vocabulary.{side}file."
        return Vocabulary.load(config.file, mend=mend)
    say(f"Training a vocabulary of {config.size:,} subwords …")
    key, began = f"vocabulary.{side}size", time.monotonic()
    with ProgressBar(say).heartbeat("Training the vocabulary"):
        learnt = Vocabulary.train(lines, config=config, seed=seed, key=key)
    say(f"The vocabulary is learnt, in {time.monotonic() - began:,.1f} s.")
    return learnt
