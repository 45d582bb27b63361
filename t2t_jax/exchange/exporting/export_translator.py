"""Translates lines with an export to CTranslate2, as `Translator` with the model."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from t2t_jax.config import Config
from t2t_jax.decoding.engine.batching import padded_rows
from t2t_jax.decoding.search.beam_search import BeamResult
from t2t_jax.decoding.search.length_penalty import penalty_of
from t2t_jax.decoding.text.segments import Segment
from t2t_jax.decoding.text.stages import Stage
from t2t_jax.decoding.text.translation import Translation, to_translations
from t2t_jax.decoding.text.translator import Translator
from t2t_jax.errors import DataError, require_package
from t2t_jax.exchange.exporting.ctranslate2 import CTranslate2Backend
from t2t_jax.run.workdir import Workdir
from t2t_jax.types import EOS

_SEGMENTS = 1_000  # between two reports of progress
_OTHER = (
    "is damaged, or an export of another model: its vocabulary is not that of the "
    "model. Export it again."
)


def open_export(folder: Path, config: Config) -> CTranslate2Backend:
    """Opens an export to CTranslate2 on all processors.

    Args:
      config: of the model that was exported.

    Raises:
      DataError: its vocabularies are damaged, or not of the configuration.
      UserError: CTranslate2 is not installed, or a file is missing.
    """
    require_package("ctranslate2", user=str(folder), extra="export")
    try:
        written = Workdir(folder).read_vocabularies(config.vocabulary)
    except DataError as error:
        raise DataError(f"{folder} {_OTHER}") from error
    threads = os.cpu_count() or 1
    return CTranslate2Backend(
        folder, vocabularies=written, config=config, threads=threads
    )


def with_export(
    translator: Translator, folder: Path, config: Config
) -> ExportTranslator:
    """Returns a translator that searches with an export of the model.

    Raises:
      DataError: the export has another vocabulary.
      UserError: as in `open_export`.
    """
    export = open_export(folder, config)
    if export.vocabularies.fingerprint != translator.vocabularies.fingerprint:
        raise DataError(f"{folder} {_OTHER}")
    names = [field.name for field in dataclasses.fields(translator)]
    own = {name: getattr(translator, name) for name in names}
    return ExportTranslator(**own, export=export)


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportTranslator(Translator):
    """Translates with an export of the model, and returns the best translations.

    Lines are encoded, split and joined as with the model, and translations have the
    same statuses. Scores are the export's, of the whole vocabulary. Its search divides
    log-probabilities by `n ** alpha`, whatever `config.length_normalization` is.
    """

    export: CTranslate2Backend

    def _decode(
        self, segments: Sequence[Segment], stages: Sequence[Stage]
    ) -> Iterator[tuple[Segment, Translation]]:
        """Decodes segments, the longest first."""
        ordered = sorted(segments, key=lambda one: len(one.subwords), reverse=True)
        for start in range(0, len(ordered), _SEGMENTS):
            some = ordered[start : start + _SEGMENTS]
            sources_BxS = padded_rows(
                [one.subwords for one in some], len(some), 1 + len(some[0].subwords)
            )
            yield from to_translations(
                self._search_all(some),
                sources_BxS,
                some,
                vocabularies=self.vocabularies,
            )

    def _search_all(self, segments: Sequence[Segment]) -> BeamResult:
        sources = [one.subwords for one in segments]
        outputs = self.export.outputs(sources, [one.prefix for one in segments])
        ended_B = np.array([ids[-1:] == (EOS,) for ids in outputs])
        both = zip(outputs, ended_B, strict=True)
        texts = [ids[: len(ids) - has_end] for ids, has_end in both]
        logs = self.export.score([*zip(sources, texts, strict=True)])
        lengths_B = np.array([*map(len, outputs)], np.int32)
        tokens_BxT = padded_rows(outputs, len(outputs), 1 + lengths_B.max())
        # CTranslate2 scores an eos after every output, whether it has one or not, and
        # tags, which are forced and cost nothing.
        tags = [*self.vocabularies.target.tags.values()]
        free = [~np.isin(ids, tags) for ids in outputs]
        sums_B = np.array(
            [one[: len(at)][at].sum() for one, at in zip(logs, free, strict=True)],
            np.float32,
        )
        scores_B = sums_B / penalty_of(self.config, lengths_B)
        columns: Any = (tokens_BxT, scores_B, sums_B, lengths_B, ended_B)
        return BeamResult(*(column_B[:, None] for column_B in columns))
