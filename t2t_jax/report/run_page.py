"""The page of one run: everything that its directory holds, in one HTML file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from t2t_jax.config import Config
from t2t_jax.data.corpora.open import reads_trees
from t2t_jax.data.token_cache.statistics import short_name
from t2t_jax.errors import UserError
from t2t_jax.model.architectures import count_parameters
from t2t_jax.report import setup_sections
from t2t_jax.report.curves import CHARTS, curves, number, steps_of
from t2t_jax.report.markup import Markup, join, page, table, tag, text
from t2t_jax.report.samples import read_samples
from t2t_jax.report.standing import Standing, standing
from t2t_jax.report.trees import describe_trees
from t2t_jax.run.workdir import Workdir
from t2t_jax.training.progress import Record, best_by
from t2t_jax.training.reporting.metrics_writer import read_metrics
from t2t_jax.training.reporting.timestamps import format_duration, utc
from t2t_jax.version import __version__

_MAX_EVALUATIONS = 200
_NONE = "\N{EM DASH}"
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
      scores: of the best evaluation, from `scores.scores_of`; None to leave out
        intervals, which take seconds.
      attention: from `attention.attention_of`.
      is_over: whether the training of this process has ended.

    Raises:
      UserError: not a run, or its configuration is damaged.
    """
    config = workdir.read_config()
    records = steps_of(read_metrics(workdir.path / "metrics.jsonl"))
    stands = standing(workdir, config, records, is_over=is_over)
    best = [stands.best["step"]] if stands.best else []
    samples = read_samples(workdir, keep=best)
    drawn = curves(records)
    name = workdir.path.resolve().name
    sections = [
        ("curves", "Curves", curves_section(drawn["curves"], drawn["thinned"])),
        ("samples", "Samples", _samples(samples)),
        *_trees(config, samples),
        ("attention", "Attention", _attention(config, attention)),
        ("scores", "Scores", _scores(records, stands, scores)),
        ("setup", "Setup", _shown(lambda: setup_sections.describe_setup(config))),
        ("data", "Data", _shown(lambda: setup_sections.describe_data(workdir))),
        (
            "environment",
            "Environment",
            _shown(lambda: setup_sections.describe_environment(workdir)),
        ),
        ("files", "Files", _shown(lambda: setup_sections.describe_files(workdir))),
    ]
    return page(
        title=f"{name} · t2t_jax",
        header=_header(name, config, stands),
        main=sections_of(sections),
        data={
            "charts": [chart._asdict() for chart in CHARTS],
            "runs": [{"name": name, **drawn}],
            "samples": samples,
            "attention": list(attention),
        },
        about=about_line(),
    )


def about_line() -> str:
    """Returns the last line of a page."""
    return f"Written by t2t_jax {__version__} at {utc('%Y-%m-%d %H:%M UTC')}."


def sections_of(sections: Sequence[tuple[str, str, Markup]]) -> Markup:
    """Returns sections with links to them.

    Args:
      sections: id, title and content of each.
    """
    links = [tag("a", title, href=f"#{name}") for name, title, _ in sections]
    return join(
        [
            tag("nav", *links, aria_label="Sections"),
            *(
                tag(
                    "section",
                    tag("h2", title, id=f"{name}-title"),
                    content,
                    id=name,
                    aria_labelledby=f"{name}-title",
                )
                for name, title, content in sections
            ),
        ]
    )


def _shown(make: Callable[[], Markup]) -> Markup:
    """Returns a section, or why it cannot be shown."""
    try:
        return make()
    except FileNotFoundError as error:
        return tag("p", f"{error.filename} is missing.", class_="muted")
    except _UNREADABLE as error:
        reason = str(error) if isinstance(error, UserError) else repr(error)
        return tag("p", f"Not shown, as it cannot be read: {reason}", class_="warning")


def _header(name: str, config: Config, stands: Standing) -> Markup:
    share = min(1.0, stands.step / max(stands.steps, 1))
    parameters = count_parameters(config.network).total
    return join(
        [
            tag(
                "p",
                f"{config.architecture.capitalize()} · {parameters:,} parameters · ",
                text(short_name(config.data.train)),
                class_="eyebrow",
            ),
            text(name, "h1"),
            tag(
                "p",
                tag("span", stands.state, class_=f"state {stands.state.split()[0]}"),
                " ",
                stands.reason,
                class_="standing",
            ),
            tag(
                "progress",
                value=stands.step,
                max=max(stands.steps, 1),
                aria_label=f"step {stands.step:,} of {stands.steps:,}, {share:.0%}",
            ),
            _figures(stands),
        ]
    )


def _figures(stands: Standing) -> Markup:
    best = stands.best
    left = "without evaluations"
    if stands.seconds_left is not None and stands.done_at:
        until = stands.done_at[5:16].replace("T", " ")
        left = f"about {format_duration(stands.seconds_left)} left, until {until} UTC"
    perplexity = number(stands.last or {}, "perplexity")
    scored_at = f", step {stands.last['step']:,}" if stands.last else ""
    figures = [
        ("step", f"{stands.step:,}", f"of {stands.steps:,}"),
        (
            f"best development {'F1' if best and 'f1' in best else 'BLEU'}",
            f"{best_by(best):.2f}" if best else _NONE,
            f"step {best['step']:,}" if best else "not scored yet",
        ),
        (
            "development perplexity",
            _NONE if perplexity is None else f"{perplexity:.2f}",
            f"per subword, not smoothed{scored_at}",
        ),
        (
            "training time",
            format_duration(stands.minutes * 60),
            left,
        ),
    ]
    return tag(
        "dl",
        *(
            tag("div", tag("dt", name), tag("dd", value, tag("small", note)))
            for name, value, note in figures
        ),
        class_="figures",
    )


def curves_section(drawn: dict[str, Any], thinned: bool) -> Markup:
    """Returns the place of the charts, which the page's scripts draw."""
    if not drawn:
        return tag("p", "No step has been recorded yet.", class_="muted")
    note = "Drag over a chart to zoom, double-click to see all; with the keyboard, the "
    note += "arrows move the cursor, plus and minus zoom, and 0 shows all."
    if thinned:
        note += (
            " Long curves are thinned: of each group of neighbouring records the lowest"
            " and the highest are drawn."
        )
    return join(
        [
            tag("div", id="chart-tools", class_="tools"),
            tag("div", id="charts", class_="charts"),
            tag("p", note, class_="muted"),
            tag("noscript", tag("p", "Charts need JavaScript.")),
        ]
    )


def _samples(samples: dict[str, Any]) -> Markup:
    if not samples["sentences"]:
        return tag("p", "No evaluation has written samples yet.", class_="muted")
    rows = [
        (
            text(one["source"]),
            text(one["reference"]),
            text(next((t for t in reversed(one["translations"]) if t is not None), "")),
        )
        for one in samples["sentences"]
    ]
    note = "Underlined words are not in the reference, or not in this order."
    if samples["left_out"]:
        note += f" Samples of {samples['left_out']:,} evaluations are left out."
    return join(
        [
            tag("div", id="samples-view"),
            tag("p", note, class_="muted scripted"),
            tag(
                "noscript",
                table(
                    ("source", "reference", "newest translation"),
                    rows,
                    caption="Samples of the newest evaluation",
                ),
            ),
        ]
    )


def _trees(
    config: Config, samples: dict[str, Any]
) -> Iterator[tuple[str, str, Markup]]:
    """Yields the section of sample trees, of a run of trees."""
    if reads_trees(config.data.train):
        yield "trees", "Trees", _shown(lambda: describe_trees(samples))


def _attention(config: Config, attention: Sequence[dict[str, Any]]) -> Markup:
    if attention:
        about = (
            "Choose a head, and point at a word to see what it attends to. Weights are "
            f"those of step {attention[0]['step']:,}, rounded to 1/255; those of a "
            "target word are those with which the model predicts the word after it."
        )
        return join(
            [
                tag("p", about, class_="muted"),
                tag("div", id="attention-view"),
                tag("noscript", tag("p", "The attention viewer needs JavaScript.")),
            ]
        )
    if config.architecture != "transformer":
        why = f"A model of architecture={config.architecture} has no such attention."
    else:
        why = (
            "Not computed during training. --mode=report computes the attention of a "
            "few development sentences with the best checkpoint."
        )
    return tag("p", why, class_="muted")


def _scores(
    records: Sequence[Record], stands: Standing, scores: dict[str, Any] | None
) -> Markup:
    if stands.last is None:
        return tag("p", "No evaluation has been made yet.", class_="muted")
    parts: list[Markup] = []
    if scores:
        parts.append(_intervals(scores))
    elif stands.best:
        parts.append(
            tag(
                "p",
                "Intervals are not computed during training; --mode=report adds them.",
                class_="muted",
            )
        )
    evaluations = [record for record in records if record["kind"] == "eval"]
    return join([*parts, _evaluations(evaluations)])


def _intervals(scores: dict[str, Any]) -> Markup:
    found = scores["intervals"]
    rows = [
        (
            {"bleu": "BLEU", "chrf": "chrF"}[name],
            f"{scores[name]:.2f}",
            f"± {found[name]['half_width']:.2f}",
            tag("code", scores[f"{name}_signature"]),
        )
        for name in ("bleu", "chrf")
    ]
    about = (
        f"The best evaluation, step {scores['step']:,}: {scores['sentences']:,} "
        f"development sentences; {found['level']:.0%} intervals of "
        f"{found['resamples']:,} bootstrap samples."
    )
    header = ("score", "percent", "interval", "signature of sacreBLEU")
    return join(
        [
            tag("p", about),
            table(header, rows, caption="Scores of the best step", numbers=(1, 2)),
        ]
    )


def _evaluations(evaluations: Sequence[Record]) -> Markup:
    of_trees = any("f1" in record for record in evaluations)
    names = ("loss", "nll", "perplexity", "bleu", "chrf", *["f1"] * of_trees)

    def cell(record: Record, name: str) -> str:
        value = number(record, name)
        return _NONE if value is None else f"{value:.{3 if name in names[:2] else 2}f}"

    shown = evaluations[-_MAX_EVALUATIONS:]
    rows = [
        (f"{record['step']:,}", *(cell(record, name) for name in names))
        for record in reversed(shown)
    ]
    title = f"All evaluations: {len(evaluations)}"
    if len(shown) < len(evaluations):
        title = f"The newest {len(shown)} of {len(evaluations):,} evaluations"
    header = ("step", "loss", "NLL", "perplexity", "BLEU", "chrF", *["F1"] * of_trees)
    return setup_sections.details(
        title, table(header, rows, caption="Evaluations", numbers=range(len(header)))
    )
