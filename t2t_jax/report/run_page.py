"""The page of one run: everything that its directory holds, in one HTML file.

It is written while the run trains, without ever failing the run.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from t2t_jax.config import Config
from t2t_jax.data.corpora.corpus import short_name
from t2t_jax.data.corpora.open import reads_trees
from t2t_jax.devices.processor import processor_name
from t2t_jax.errors import UserError
from t2t_jax.evaluation.protocol import installed_versions
from t2t_jax.evaluation.robustness import HEADER, robustness_rows
from t2t_jax.files import atomic_write, read_json_object
from t2t_jax.model.counting import count_parameters
from t2t_jax.quantities import format_duration, usable_processors
from t2t_jax.report import setup_sections
from t2t_jax.report.curves import CHARTS, NONE, curves, figure, steps_of
from t2t_jax.report.page import Block, Note, Part, Section, Table, render
from t2t_jax.report.samples import newest_translation, read_samples, sample_trees
from t2t_jax.run.status import goodput_line, standing
from t2t_jax.run.workdir import ROBUSTNESS, Workdir
from t2t_jax.training.progress_and_patience import Record, best_by
from t2t_jax.training.reporting.metrics_writer import read_metrics
from t2t_jax.version import __version__

REPORT, ENVIRONMENT = "report.html", "environment.json"

_LISTED = "jax jaxlib flax optax orbax-checkpoint numpy sentencepiece sacrebleu".split()

MAX_SHARE = 0.01
"""Of the time that pages may take, but for the last one, which is always written."""

_MAX_EVALUATIONS = 200
# Everything in a directory may be damaged, or of another version.
_UNREADABLE = (UserError, OSError, LookupError, TypeError, ValueError, AttributeError)


def run_page(
    workdir: Workdir,
    *,
    scores: dict[str, Any] | None = None,
    attention: Sequence[dict[str, Any]] = (),
    is_over: bool = False,
) -> str:
    """Returns the page of a run; imports no JAX.

    Args:
      scores: of the best evaluation, from `comparison.scores_of`; None to leave out
        intervals, which take seconds.
      attention: from `attention_maps.attention_of`.
      is_over: whether the training of this process has ended.

    Raises:
      UserError: not a run, or its configuration is damaged.
    """
    config = workdir.read_config()
    records = steps_of(read_metrics(workdir.path / "metrics.jsonl"))
    stands = standing(workdir, config, records, is_over=is_over)
    kept = [stands["best"]["step"]] if stands["best"] else []
    samples, drawn = read_samples(workdir, keep=kept), curves(records)
    name = workdir.path.resolve().name
    sections: dict[str, Callable[[], Iterable[Part]]] = {
        "curves": lambda: [curves_part(drawn)],
        "samples": lambda: [_samples(samples)],
        "trees": lambda: sample_trees(samples),
        "attention": lambda: [_attention(config, attention)],
        "scores": lambda: _scores(records, stands, scores),
        "robustness": lambda: _robustness(workdir),
        "setup": lambda: setup_sections.setup(config),
        "data": lambda: setup_sections.data(workdir),
        "environment": lambda: setup_sections.environment(workdir),
        "files": lambda: setup_sections.files(workdir),
    }
    if not reads_trees(config.data.train):
        del sections["trees"]
    if not (workdir.path / ROBUSTNESS).exists():
        del sections["robustness"]
    shown = [Section(one, one.capitalize(), _read(sections[one])) for one in sections]
    data = page_data([(name, drawn)], samples=samples, attention=list(attention))
    return render(title=name, header=_header(config, stands), sections=shown, data=data)


def page_data(
    runs: Iterable[tuple[str, Mapping[str, Any]]],
    *,
    samples: Mapping[str, Any] | None = None,
    attention: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Returns what the scripts of a page draw.

    Args:
      runs: name and result of `curves` of each.
    """
    return {
        "charts": [chart._asdict() for chart in CHARTS],
        "runs": [{"name": name, **drawn} for name, drawn in runs],
        "samples": samples,
        "attention": attention,
    }


def curves_part(*drawn: Mapping[str, Any]) -> Part:
    """Returns the place of the charts, which the page's scripts draw.

    Args:
      drawn: results of `curves`.
    """
    if not any(one["curves"] for one in drawn):
        return Note("No step has been recorded yet.")
    return Block("curves.html", {"thinned": any(one["thinned"] for one in drawn)})


def _read(parts: Callable[[], Iterable[Part]]) -> list[Part]:
    """Returns the parts of a section, or why it cannot be shown."""
    try:
        return list(parts())
    except FileNotFoundError as error:
        return [Note(f"{error.filename} is missing.")]
    except _UNREADABLE as error:
        reason = str(error) if isinstance(error, UserError) else repr(error)
        return [Note(f"Not shown, as it cannot be read: {reason}", "warning")]


def _header(config: Config, stands: Mapping[str, Any]) -> Block:
    parameters = f"{count_parameters(config.network).total:,} parameters"
    usual = f"{config.architecture.capitalize()} · {parameters}"
    shown = {
        **{name: stands[name] for name in ("state", "reason", "step")},
        "model": config.python.module or usual,
        "corpus": short_name(config.data.train),
        "steps": max(stands["steps"], 1),
        "figures": _figures(stands),
    }
    return Block("run_header.html", shown)


def _figures(stands: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Returns name, value and note of the figures at the head of a page."""
    best, last = stands["best"], stands["evaluation"] or {}
    left = goodput_line(stands) or "without evaluations"
    if stands["seconds_left"] is not None:
        until = stands["done_at"][5:16].replace("T", " ")
        duration = format_duration(stands["seconds_left"])
        left = f"about {duration} left, until {until} UTC"
    scored_at = f", step {last['step']:,}" if last else ""
    perplexity = figure(last, "perplexity")
    scored = ("best development BLEU", NONE, "not scored yet")
    if best:
        name = "best development F1" if "f1" in best else scored[0]
        scored = (name, f"{best_by(best).score:.2f}", f"step {best['step']:,}")
    return [
        ("step", f"{stands['step']:,}", f"of {stands['steps']:,}"),
        scored,
        ("development perplexity", perplexity, f"per subword, not smoothed{scored_at}"),
        ("training time", format_duration(stands["minutes"] * 60), left),
    ]


def _samples(samples: Mapping[str, Any]) -> Part:
    if not (found := samples["sentences"]):
        return Note("No evaluation has written samples yet.")
    rows = [(s["source"], s["reference"], newest_translation(s)) for s in found]
    header = ("source", "reference", "newest translation")
    table = Table("Samples of the newest evaluation", header, rows, text=(0, 1, 2))
    return Block("samples.html", {"left_out": samples["left_out"], "table": table})


def _attention(config: Config, attention: Sequence[Mapping[str, Any]]) -> Part:
    if attention:
        return Block("attention.html", {"step": attention[0]["step"]})
    if config.architecture != "transformer":
        return Note(f"architecture={config.architecture} has no such attention.")
    return Note(
        "Not computed during training. --mode=report computes the attention of a few "
        "development sentences with the best checkpoint."
    )


def _scores(
    records: Sequence[Record], stands: Mapping[str, Any], scores: dict[str, Any] | None
) -> Iterator[Part]:
    if stands["evaluation"] is None:
        yield Note("No evaluation has been made yet.")
        return
    best = (stands["best"] or {}).get("step")
    for record in records:
        if record["step"] == best and (each := record.get("bleu_by_direction")):
            rows = [(name, f"{bleu:.2f}") for name, bleu in each.items()]
            rows.append(("mean", f"{record['bleu']:.2f}"))
            title = "BLEU of the best step by direction"
            yield Table(title, ("direction", "percent"), rows, numbers=(1,))
    if scores:
        yield from _intervals(scores)
    elif stands["best"]:
        yield Note("Intervals are not computed in training; --mode=report adds them.")
    yield _evaluations([record for record in records if record["kind"] == "eval"])


def _intervals(scores: Mapping[str, Any]) -> Iterator[Part]:
    intervals = scores["intervals"]
    yield Note(
        f"The best evaluation, step {scores['step']:,}: {scores['sentences']:,} "
        f"development sentences; {intervals['level']:.0%} intervals of "
        f"{intervals['resamples']:,} bootstrap samples.",
        "",
    )
    rows = []
    for name, title in (("bleu", "BLEU"), ("chrf", "chrF")):
        interval = f"± {intervals[name]['half_width']:.2f}"
        signature = scores[f"{name}_signature"]
        rows.append((title, f"{scores[name]:.2f}", interval, signature))
    header = ("score", "percent", "interval", "signature of sacreBLEU")
    yield Table("Scores of the best step", header, rows, numbers=(1, 2), code=(3,))


def _robustness(workdir: Workdir) -> Iterator[Part]:
    found = read_json_object(workdir.path / ROBUSTNESS, advice="")
    yield Note(
        f"{found['sentences']:,} sentences of {found['source']}, with the checkpoint "
        f"of step {found['checkpoint_step']:,}; each change is one of data.modifiers.",
        "",
    )
    rows = robustness_rows(found["robustness"])
    yield Table("Scores of changed test sets", HEADER, rows, numbers=(1, 2, 3))


def _evaluations(evaluations: Sequence[Record]) -> Table:
    columns = [
        *(("loss", "loss", 3), ("nll", "NLL", 3), ("perplexity", "perplexity", 2)),
        *(("bleu", "BLEU", 2), ("chrf", "chrF", 2)),
        *[("f1", "F1", 2)] * any("f1" in record for record in evaluations),
    ]

    newest = evaluations[-_MAX_EVALUATIONS:]
    rows = [
        (f"{record['step']:,}", *(figure(record, name, n) for name, _, n in columns))
        for record in reversed(newest)
    ]
    title = f"All evaluations: {len(evaluations)}"
    if len(newest) < len(evaluations):
        title = f"The newest {len(newest)} of {len(evaluations):,} evaluations"
    header = ("step", *(title for _, title, _ in columns))
    return Table(title, header, rows, numbers=range(len(header)), folded=True)


@dataclass
class ReportWriter:
    """Writes report.html, and before it environment.json, of the run that trains here.

    An error is logged as a warning, once, and training continues. A page of many
    records takes seconds: evaluations that come too soon after it are left to the next.

    Args:
      processes: of the run.
      clock: seconds.
    """

    workdir: Workdir
    log: Callable[[str], None]
    processes: int = 1
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self._has_environment = self._has_warned = False
        self._not_before = self.clock()

    def __call__(self, is_over: bool) -> None:
        """Writes the page.

        Args:
          is_over: whether the training of this process has ended.
        """
        if (start := self.clock()) < self._not_before and not is_over:
            return
        try:
            if not self._has_environment:
                found = describe_environment(processes=self.processes)
                self.workdir.write_json(ENVIRONMENT, found)
                self._has_environment = True
            start = self.clock()
            page = run_page(self.workdir, is_over=is_over)
            atomic_write(self.workdir.path / REPORT, page)
        except Exception as error:  # A page is not worth a run.
            if not self._has_warned:
                self._has_warned = True
                self.log(
                    f"WARNING: {REPORT} cannot be written: {error or repr(error)}. "
                    "Training continues. Write it with --mode=report later."
                )
        end = self.clock()
        self._not_before = end + (end - start) / MAX_SHARE


def describe_environment(*, processes: int = 1) -> dict[str, Any]:
    """Describes this machine, its devices, and the packages that matter.

    Imports JAX, and initializes its devices.

    Args:
      processes: of the run.
    """
    import jax

    devices = jax.devices()
    return {
        "t2t_jax": __version__,
        "python": platform.python_version(),
        "packages": installed_versions(_LISTED),
        "system": platform.platform(),
        "processor": processor_name(),
        "cores": usable_processors(),
        "devices": f"{len(devices)} x {devices[0].device_kind}",
        "platform": devices[0].platform,
        "processes": processes,
    }
