"""Whether an exported model does what the model does, on some lines of text.

Three questions: do both translate alike, greedily and with a beam, at alpha 0; how
probable does each find what the model says; what does the difference cost in BLEU.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.errors import DataError
from t2t_jax.evaluation.bleu import corpus_scores
from t2t_jax.exporting.backends import Backend, Output


class VerificationText(NamedTuple):
    """What is translated both ways.

    Attributes:
      name: where it comes from.
      sources: lines with something to translate, none too long for the model.
      references: of each.
      num_left_out: lines that were empty or too long.
    """

    name: str
    sources: tuple[str, ...]
    references: tuple[str, ...]
    num_left_out: int = 0


def choose_lines(
    name: str,
    pairs: Sequence[tuple[str, str]],
    *,
    vocabulary: Vocabulary,
    longest: int,
    most: int,
) -> VerificationText:
    """Takes the first lines that both sides can translate whole.

    Args:
      longest: subwords that a source may have, with its eos.

    Raises:
      DataError: none can be translated.
    """
    lengths = [len(ids) + 1 for ids in vocabulary.encode([pair[0] for pair in pairs])]
    kept: list[tuple[str, str]] = []
    num_left_out = 0
    for pair, length in zip(pairs, lengths, strict=True):
        if len(kept) == most:
            break
        if pair[0].strip() and 1 < length <= longest:
            kept.append(pair)
        else:
            num_left_out += 1
    if not kept:
        raise DataError(
            f"{name} must have a line of 1 to {longest - 1} subwords for the export to "
            "be checked, and has none. Name other files with --source and --reference."
        )
    sources, references = zip(*kept, strict=True)
    return VerificationText(name, sources, references, num_left_out)


BEAM_SIZE = 4
"""Of the second search: the paper's."""

TIE = 1e-4
"""Two words that differ by no more in log-probability may change places."""


class Tolerance(NamedTuple):
    """How far an export may be from its model.

    Attributes:
      unequal: share of lines whose greedy output may be another one; each of them must
        be a tie, unless all lines may be unequal.
      largest: of the differences of a token's log-probability.
      mean: of all of them.
      bleu: by how much the export's may be lower.
    """

    unequal: float
    largest: float
    mean: float
    bleu: float


EXACT = Tolerance(unequal=0.0, largest=0.0, mean=0.0, bleu=0.0)
"""Of the same numbers in the same program."""

FLOAT32 = Tolerance(unequal=0.01, largest=TIE, mean=TIE, bleu=1.0)
"""Of the same numbers in another program, which adds them up in another order."""

FLOAT16 = Tolerance(unequal=1.0, largest=1.0, mean=0.005, bleu=0.5)
"""Of numbers of 11 bits: 0.0003 on average is what was measured."""

INT8 = Tolerance(unequal=1.0, largest=3.0, mean=0.05, bleu=1.0)
"""Of numbers of 8 bits: 0.009 on average is what was measured."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison:
    """What the lines have shown.

    Attributes:
      text: their name.
      lines: how many.
      left_out: lines that were empty or too long.
      equal: greedy outputs that are the same tokens on both sides.
      ties: of the others, those that differ first in two words that are as probable to
        the model, within `TIE`.
      largest_gap: between two such words, whether a tie or not.
      largest_difference: of a token's log-probability, over the model's outputs.
      mean_difference: likewise.
      bleu: of the model's greedy outputs.
      exported_bleu: of the export's.
      beam_size: of the second search.
      beam_equal: its outputs that are the same tokens on both sides.
      beam_bleu: of the model's.
      exported_beam_bleu: of the export's.
      bleu_signature: of all BLEU here.
    """

    text: str
    lines: int
    left_out: int
    equal: int
    ties: int
    largest_gap: float
    largest_difference: float
    mean_difference: float
    bleu: float
    exported_bleu: float
    beam_size: int
    beam_equal: int
    beam_bleu: float
    exported_beam_bleu: float
    bleu_signature: str

    def problems(self, tolerance: Tolerance) -> list[str]:
        """Lists what goes beyond a tolerance, a clause each."""
        unequal = self.lines - self.equal
        # One tie of eleven lines is no more than one of a hundred.
        most = max(tolerance.unequal * self.lines, bool(tolerance.unequal))
        must_tie = tolerance.unequal < 1
        lower = max(
            self.bleu - self.exported_bleu, self.beam_bleu - self.exported_beam_bleu
        )
        checks = {
            f"{unequal} of {self.lines} greedy outputs differ, and {most:g} may": (
                unequal <= most
            ),
            f"{unequal - self.ties} of them are no tie, but as far apart as "
            f"{self.largest_gap:.2g}": not must_tie or unequal == self.ties,
            f"{self.lines - self.beam_equal} outputs of a beam differ": (
                tolerance.unequal > 0 or self.beam_equal == self.lines
            ),
            f"a token's log-probability differs by {self.largest_difference:.2g}, and "
            f"may by {tolerance.largest:g}": (
                self.largest_difference <= tolerance.largest
            ),
            f"log-probabilities differ by {self.mean_difference:.2g} on average, and "
            f"may by {tolerance.mean:g}": self.mean_difference <= tolerance.mean,
            f"BLEU is lower by {lower:.2f}, and may be by {tolerance.bleu:g}": (
                lower <= tolerance.bleu
            ),
        }
        return [clause for clause, holds in checks.items() if not holds]

    def require(self, tolerance: Tolerance, *, change: str) -> None:
        """Checks that the export does what its model does.

        Args:
          change: what the user may do, a sentence.

        Raises:
          DataError: it does not.
        """
        problems = self.problems(tolerance)
        if problems:
            raise DataError(
                f"The export must do what the model does, on {self.lines} lines of "
                f"{self.text}: {'; '.join(problems)}.\nNothing was kept. {change}"
            )


def compare(
    own: Backend, exported: Backend, text: VerificationText, *, vocabulary: Vocabulary
) -> Comparison:
    """Translates and scores with both sides.

    Args:
      exported: what was made of it.
    """
    greedy = [side.search(text.sources, beam_size=1) for side in (own, exported)]
    beams = [side.search(text.sources, beam_size=BEAM_SIZE) for side in (own, exported)]
    subwords = vocabulary.encode(list(text.sources))
    pairs = [(ids, one.subwords) for ids, one in zip(subwords, greedy[0], strict=True)]
    differences = np.concatenate(
        [
            np.abs(np.subtract(*logs, dtype=np.float64))
            for logs in zip(own.score(pairs), exported.score(pairs), strict=True)
        ]
    )
    gaps = list(_gaps(own, subwords, *greedy))
    scores = [
        corpus_scores([one.text for one in found], text.references, metrics=("bleu",))
        for found in (*greedy, *beams)
    ]
    return Comparison(
        text=text.name,
        lines=len(text.sources),
        left_out=text.num_left_out,
        equal=_equal(*greedy),
        ties=sum(gap <= TIE for gap in gaps),
        largest_gap=max(gaps, default=0.0),
        largest_difference=float(differences.max()),
        mean_difference=float(differences.mean()),
        bleu=scores[0]["bleu"],
        exported_bleu=scores[1]["bleu"],
        beam_size=BEAM_SIZE,
        beam_equal=_equal(*beams),
        beam_bleu=scores[2]["bleu"],
        exported_beam_bleu=scores[3]["bleu"],
        bleu_signature=scores[0]["bleu_signature"],
    )


def _equal(ours: Sequence[Output], theirs: Sequence[Output]) -> int:
    return sum(a.tokens == b.tokens for a, b in zip(ours, theirs, strict=True))


def _gaps(
    own: Backend,
    sources: Sequence[Sequence[int]],
    ours: Sequence[Output],
    theirs: Sequence[Output],
) -> Iterator[float]:
    """Finds how much the model prefers its own word, where outputs begin to differ."""
    unequal = [
        (source, (a, b))
        for source, a, b in zip(sources, ours, theirs, strict=True)
        if a.tokens != b.tokens
    ]
    sides = [
        own.score([(source, pair[side].subwords) for source, pair in unequal])
        for side in (0, 1)
    ]
    for (_, (a, b)), *logs in zip(unequal, *sides, strict=True):
        shared = zip(a.tokens, b.tokens, strict=False)
        place = next((n for n, pair in enumerate(shared) if pair[0] != pair[1]), None)
        # One that stops where the other goes on has met its limit too early.
        yield np.inf if place is None else abs(float(logs[0][place] - logs[1][place]))
