"""Formats an inspected corpus: a summary, a table of all pairs, and a page."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from t2t_jax.data.corpora.corpus import PairLocation
from t2t_jax.report.inspection.findings import KINDS
from t2t_jax.report.inspection.inspector import Indices, Inspection
from t2t_jax.report.page import Block, Note, Section, Table, render
from t2t_jax.report.run_page import page_data

COLUMNS = (
    *("rank", "corpus", "line", "loss", "gain", "source_tokens", "target_tokens"),
    *("findings", "source", "target"),
)
"""Columns of the table; `loss` and `gain` in nats a token."""

_ESCAPED = re.compile("[\\\\\x00-\x1f\x7f-\x9f\u2028\u2029]|^[=+@-]")
_NAMED = {"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"}
_WORST, _EXAMPLES = 200, 20


def escape_field(text: str) -> str:
    r"""Escapes what would end a field or a line or begin a formula, and the backslash.

    Example:
      >>> print(escape_field("a\tb\\ c\u2028d"))
      a\tb\\ c\u2028d
      >>> print(escape_field("=1+1"))
      \u003d1+1
    """
    return _ESCAPED.sub(lambda m: _NAMED.get(m[0], f"\\u{ord(m[0]):04x}"), text)


class Report(NamedTuple):
    """An inspected corpus, to be formatted.

    Attributes:
      title: the corpus's name.
      read: pairs of the corpus, inspected or not.
      locate: from `locator` of the corpus.
    """

    title: str
    read: int
    found: Inspection
    locate: Callable[[int], PairLocation]

    def summary(self, *, examples: int = 5) -> Iterator[str]:
        """Yields lines: counts of findings, and the pairs of the highest loss."""
        found = self.found
        scored, losses = found.is_scored, found.losses
        yield (
            f"{self.title}: {self.read:,} pairs read, {len(losses):,} inspected, "
            f"{int(scored.sum()):,} scored"
        )
        if scored.any():
            marks = np.percentile(losses[scored], (50, 95, 99, 100))
            yield (
                "loss in nats a target token: median {:.2f}, 95 % below {:.2f}, 99 % "
                "below {:.2f}, highest {:.2f}".format(*marks)
            )
        for kind, count in found.counts().items():
            yield f"  {count:>11,}  {kind:<15}  {KINDS[kind]}"
        yield from found.notes
        worst = found.ranking()[: min(examples, int(scored.sum()))]
        if len(worst):
            yield "The pairs of the highest loss:"
        for index in map(int, worst):
            place = self.locate(int(found.numbers[index]) + 1)
            kinds = ", ".join(found.kinds(index))
            line = f"  {losses[index]:.2f}  line {place.line:,} of {place.corpus}"
            yield f"{line}  {kinds}".rstrip()
            yield from (f"        {escape_field(side)}" for side in found.pairs[index])

    def table(self) -> Iterator[str]:
        """Yields all pairs as tab-separated lines, the highest loss first."""
        yield "\t".join(COLUMNS)
        for rank, index in enumerate(map(int, self.found.ranking()), start=1):
            corpus, line, *others, source, target = self._cells(index)
            texts = map(escape_field, (corpus, source, target))
            yield "\t".join((str(rank), next(texts), line, *others, *texts))

    def _cells(self, index: int) -> tuple[str, ...]:
        found = self.found
        place = self.locate(int(found.numbers[index]) + 1)
        return (
            place.corpus,
            str(place.line),
            _number(found.losses[index]),
            _number(found.gains[index]),
            *(str(length) for length in found.lengths[index]),
            ",".join(found.kinds(index)),
            *found.pairs[index],
        )

    def page(self) -> str:
        """Returns an HTML page: summary, worst pairs, examples by kind."""
        ranking = self.found.ranking()
        notes = [Note(line, "") for line in self.summary(examples=0)]
        sections = [Section("summary", "Summary", notes)]
        sections.append(self._section("worst", "The highest loss", ranking[:_WORST]))
        for kind, count in self.found.counts().items():
            if count:
                has = self.found.findings[kind][ranking]
                title = f"{kind}: {KINDS[kind]} ({count:,})"
                sections.append(self._section(kind, title, ranking[has][:_EXAMPLES]))
        about = f"{self.read:,} pairs read, {len(self.found.losses):,} inspected"
        header = Block("names_header.html", {"about": about, "names": [self.title]})
        data = page_data([])
        return render(title=self.title, header=header, sections=sections, data=data)

    def _section(self, name: str, title: str, indices: np.ndarray) -> Section:
        rows = [self._cells(index) for index in map(int, indices)]
        header, text = COLUMNS[1:], (0, len(COLUMNS) - 3, len(COLUMNS) - 2)
        table = Table(title, header, rows, range(1, 6), text=text)
        return Section(name, title, [table])


def _number(value: float) -> str:
    return "" if np.isnan(value) else f"{value:.4f}"


def kept_lines(
    found: Inspection, dropped: Indices, side: int, direction: str = ""
) -> Iterator[str]:
    """Yields the lines of a side, 0 for the source, without those of dropped pairs.

    Args:
      direction: of the pairs, as the inspection names it.
    """
    for index in np.setdiff1d(np.arange(len(found.pairs)), dropped):
        if found.directions[index] == direction:
            # A line end, which text files cannot contain, would misalign the sides.
            yield found.pairs[int(index)][side].replace("\n", " ")


def dropped_summary(found: Inspection, dropped: Indices) -> Iterator[str]:
    """Yields lines with the counts before and after dropping pairs."""
    before, gone = len(found.pairs), len(dropped)
    yield f"dropped {gone:,} of {before:,} pairs, kept {before - gone:,}"
    if gone:
        least = float(found.losses[dropped].min())
        yield f"  each has a loss of at least {least:.2f} nats a token"
    fewer = found.counts(dropped)
    for kind, count in found.counts().items():
        if count:
            yield f"  {kind}: {count:,} before, {count - fewer[kind]:,} after"
