"""Verifies that an exported model translates like the original.

On some lines of text it compares greedy search and a beam, the log-probabilities of the
model's outputs, and BLEU.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import jax
import numpy as np

from t2t_jax.data.vocabulary.tokenizers import split_tag, tag_piece
from t2t_jax.data.vocabulary.vocabulary import Vocabulary
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.scoring.scorer import Logs, Subwords
from t2t_jax.decoding.text.translator import Translator
from t2t_jax.devices.sharding.rules import leaves_by_path
from t2t_jax.errors import DataError
from t2t_jax.evaluation.bleu import corpus_scores
from t2t_jax.run.inference.model import TranslationModel
from t2t_jax.types import EOS, Params

_Pairs: TypeAlias = Sequence[tuple[str, str]]


class Output(NamedTuple):
    """One translation; its token ids include eos unless it was truncated."""

    text: str
    tokens: tuple[int, ...]

    @property
    def subwords(self) -> tuple[int, ...]:
        """The ids without the eos."""
        return self.tokens[:-1] if self.tokens[-1:] == (EOS,) else self.tokens


class Backend(Protocol):
    """A model that can be compared."""

    def search(self, lines: Sequence[str], *, greedy: bool) -> list[Output]:
        """Translates lines by the beam search of the configuration, or greedily."""

    def score(self, pairs: Sequence[Subwords]) -> list[Logs]:
        """Returns the log-probability of each target, token by token."""


class JaxBackend:
    """A model of this package, on one device, with the length limits of a config.

    Attributes:
      model: with that config.
    """

    def __init__(self, model: TranslationModel, config: DecodingConfig):
        self.model = dataclasses.replace(model, decoding=config)
        pieces = model.vocabularies.target.pieces(range(model.vocabularies.target.size))
        self._ids = {piece: id_ for id_, piece in enumerate(pieces)}

    def search(self, lines: Sequence[str], *, greedy: bool) -> list[Output]:
        """Translates as `--mode=translate` does, in the dtype of the model."""
        config = search_config(self.model.decoding, greedy=greedy)
        model = dataclasses.replace(self.model, decoding=config)
        # One thread: the caller's, as its matmul precision is thread-local.
        found = Translator(
            model.step_model, model.vocabularies, config, max_concurrent=1
        ).translations(lines, target_language="")
        best = [one.hypotheses[0] for one in found]
        return [
            Output(one.text, tuple(self._ids[piece] for piece in one.tokens))
            for one in best
        ]

    def score(self, pairs: Sequence[Subwords]) -> list[Logs]:
        """Scores all positions of a target at once."""
        found = dict(self.model.scorer().iter_logs(pairs))
        return [found[number] for number in range(len(pairs))]


def search_config(config: DecodingConfig, *, greedy: bool) -> DecodingConfig:
    """Returns the search of a comparison: that of a configuration, or a greedy one."""
    changes: dict[str, Any] = {"n_best": 1, "mbr": "none", "sample": False}
    changes |= {"shortlist": "", "compute_dtype": "auto", "segment": "lines"}
    if greedy:
        changes |= {"beam_size": 1, "length_penalty": 0.0, "beam_rule": "fixed"}
    return dataclasses.replace(config, **changes)


class VerificationText(NamedTuple):
    """Lines that both models translate, without empty and too long ones."""

    name: str
    sources: tuple[str, ...]
    references: tuple[str, ...]
    num_left_out: int = 0


def choose_lines(
    name: str, pairs: _Pairs, *, vocabulary: Vocabulary, longest: int, most: int
) -> VerificationText:
    """Selects the first lines that the model can translate without truncation.

    Args:
      longest: subwords of a source, eos included.

    Raises:
      DataError: there is none.
    """
    encoded = vocabulary.encode_sources([pair[0] for pair in pairs], target_language="")
    fitting = [
        number
        for number, ids in enumerate(encoded)
        if pairs[number][0].strip() and 0 < len(ids) < longest
    ]
    if not fitting:
        raise DataError(
            f"{name} has no line of 1 to {longest - 1} subwords to verify the export "
            "with. Choose other files with --source and --reference."
        )
    kept = fitting[:most]
    sources, references = zip(*(pairs[number] for number in kept), strict=True)
    num_read = kept[-1] + 1 if len(kept) == most else len(pairs)
    return VerificationText(name, sources, references, num_read - len(kept))


def of_language(pairs: _Pairs, vocabulary: Vocabulary, language: str) -> _Pairs:
    """Selects the pairs of a target language, and gives sources without a tag its own.

    Args:
      language: "" for all pairs as they are, as with a vocabulary without its tag.
    """
    if language not in vocabulary.tags or vocabulary.reads_source:
        return pairs
    named = [(split_tag(source, vocabulary.tags), target) for source, target in pairs]
    return [
        (f"{tag_piece(language)} {text.strip()}", target)
        for (_, tag, text), target in named
        if tag in ("", language)
    ]


def check_equal(params: Params, written: Params) -> None:
    """Checks that parameters were written bit by bit.

    Args:
      written: may have zeros beside them, such as biases that a format must have.

    Raises:
      DataError: they were not.
    """
    trees = (jax.tree.map(np.asarray, tree) for tree in (params, written))
    ours, theirs = map(leaves_by_path, trees)
    none = np.zeros(0)
    differing = [n for n in ours if ours[n].tobytes() != theirs.get(n, none).tobytes()]
    differing += [one for one in theirs.keys() - ours if theirs[one].any()]
    if differing:
        raise DataError(
            f"{len(differing)} of {len(ours)} arrays differ after writing and "
            "reading them: the disk or the memory is failing. Nothing was kept."
        )


TIE = 1e-4  # tokens whose log-probabilities differ by at most this may swap


class Tolerance(NamedTuple):
    """Accepted differences between an export and its model.

    Attributes:
      unequal_beam: share of lines whose outputs of a beam may differ.
      unequal: share of lines whose greedy outputs may differ; each must be a tie,
        unless all lines may differ.
      largest: difference of a token's log-probability, in nats.
    """

    unequal: float
    largest: float
    mean: float
    bleu: float
    unequal_beam: float = 1.0


EXACT = Tolerance(unequal=0.0, largest=0.0, mean=0.0, bleu=0.0, unequal_beam=0.0)
"""For the same numbers in the same program."""

FLOAT32 = Tolerance(unequal=0.01, largest=TIE, mean=TIE, bleu=1.0)
"""For the same numbers in another program, with another order of summation."""

SAME_SEARCH = FLOAT32._replace(unequal_beam=0.02)
"""As FLOAT32, with the search of this package."""

FLOAT16 = Tolerance(unequal=1.0, largest=1.0, mean=0.005, bleu=0.5)
"""For numbers with 11 significant bits; the measured mean is 0.0003."""

INT8 = Tolerance(unequal=1.0, largest=3.0, mean=0.05, bleu=1.0)
"""For numbers of 8 bits; the measured mean is 0.009."""

INT8_WITHOUT_VNNI = INT8._replace(largest=10.0, mean=1.0)
"""There BLEU decides: means of 0.07 and 0.1 were measured, and losses of 0.1 to 0.4."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparison:
    """Result of the comparison.

    Attributes:
      equal: greedy outputs with equal tokens.
      ties: of the others, those whose first differing tokens have the same
        log-probability under the model, within `TIE`.
      largest_gap: largest difference between such tokens.
      length_penalty: alpha of the beam; greedy search has none.
      same_penalty: whether alpha is the exponent of the same divisor in both beam
        searches; if not, there is no bound on the BLEU of their outputs.
      largest_difference: of a token's log-probability, over the model's outputs.
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
    length_penalty: float
    beam_equal: int
    beam_bleu: float
    exported_beam_bleu: float
    bleu_signature: str
    same_penalty: bool = True

    def problems(self, tolerance: Tolerance) -> list[str]:
        """Lists what exceeds a tolerance, one clause each."""
        unequal, beams = self.lines - self.equal, self.lines - self.beam_equal
        largest, mean = self.largest_difference, self.mean_difference
        untied = unequal - self.ties if tolerance.unequal < 1 else 0
        # At least one line, however few there are.
        shares = (tolerance.unequal, tolerance.unequal_beam)
        most, of_beams = (max(share * self.lines, bool(share)) for share in shares)
        lower = self.bleu - self.exported_bleu
        if self.same_penalty:
            lower = max(lower, self.beam_bleu - self.exported_beam_bleu)
        gaps = f"with gaps of up to {self.largest_gap:.2g}"
        of_one = f"a token's log-probability differs by {largest:.2g}"
        of_all = f"log-probabilities differ by {mean:.2g} on average"
        checks = (
            (unequal, most, f"{unequal} of {self.lines} greedy outputs differ"),
            (untied, 0, f"{untied} of them, {gaps}, are not ties"),
            (beams, of_beams, f"{beams} outputs of a beam of {self.beam_size} differ"),
            (largest, tolerance.largest, of_one),
            (mean, tolerance.mean, of_all),
            (lower, tolerance.bleu, f"BLEU is lower by {lower:.2f}"),
        )
        return [
            f"{clause} (at most {limit:g})"
            for found, limit, clause in checks
            if not found <= limit  # of NaN, too
        ]

    def require(self, tolerance: Tolerance, *, advice: str) -> None:
        """Checks that the export translates like its model.

        Raises:
          DataError: it does not.
        """
        if problems := self.problems(tolerance):
            raise DataError(
                f"The export differs from the model on {self.lines} lines of "
                f"{self.text}: {'; '.join(problems)}.\nNothing was kept. {advice}"
            )


def compare(
    own: JaxBackend, exported: Backend, text: VerificationText, *, same_penalty: bool
) -> Comparison:
    """Translates and scores the lines with both models, greedily and with a beam.

    Args:
      same_penalty: see `Comparison`.
    """
    decoding, vocabulary = own.model.decoding, own.model.vocabularies.source
    ours, theirs = (side.search(text.sources, greedy=True) for side in (own, exported))
    beams = [side.search(text.sources, greedy=False) for side in (own, exported)]
    subwords = vocabulary.encode_sources(text.sources, target_language="")
    pairs = [(ids, one.subwords) for ids, one in zip(subwords, ours, strict=True)]
    logs = own.score(pairs)
    both = zip(logs, exported.score(pairs), strict=True)
    differences = [np.subtract(*one, dtype=np.float64) for one in both]
    errors = np.abs(np.concatenate(differences))
    unequal = _unequal(ours, theirs)
    others = own.score([(subwords[n], theirs[n].subwords) for n in unequal])
    gaps = [
        _gap(ours[n].tokens, theirs[n].tokens, logs[n], other)
        for n, other in zip(unequal, others, strict=True)
    ]
    scores = [
        corpus_scores([one.text for one in found], text.references, metrics=("bleu",))
        for found in (ours, theirs, *beams)
    ]
    return Comparison(
        text=text.name,
        lines=len(text.sources),
        left_out=text.num_left_out,
        equal=len(text.sources) - len(gaps),
        ties=sum(gap <= TIE for gap in gaps),
        largest_gap=max(gaps, default=0.0),
        largest_difference=float(errors.max()),
        mean_difference=float(errors.mean()),
        bleu=scores[0]["bleu"],
        exported_bleu=scores[1]["bleu"],
        beam_size=decoding.beam_size,
        length_penalty=decoding.length_penalty,
        beam_equal=len(text.sources) - len(_unequal(*beams)),
        beam_bleu=scores[2]["bleu"],
        exported_beam_bleu=scores[3]["bleu"],
        bleu_signature=scores[0]["bleu_signature"],
        same_penalty=same_penalty,
    )


def _unequal(ours: Sequence[Output], theirs: Sequence[Output]) -> list[int]:
    """Returns the numbers of the lines whose outputs differ."""
    pairs = enumerate(zip(ours, theirs, strict=True))
    return [number for number, (a, b) in pairs if a.tokens != b.tokens]


def _gap(a: Sequence[int], b: Sequence[int], logs: Logs, their_logs: Logs) -> float:
    """Returns the model's preference for its own token where outputs first differ."""
    shared = zip(a, b, strict=False)
    index = next((n for n, pair in enumerate(shared) if pair[0] != pair[1]), None)
    # One output is a prefix of the other: it reached its limit too early.
    return np.inf if index is None else abs(float(logs[index] - their_logs[index]))
