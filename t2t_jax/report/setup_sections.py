"""The sections of a page on what a run is: configuration, data, files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from t2t_jax.config import Config
from t2t_jax.data.report.leakage import copy_warnings, leak_warnings
from t2t_jax.data.report.page import DROP_REASONS
from t2t_jax.data.token_cache.statistics import SIDES, short_name
from t2t_jax.description.departures import departures, matches
from t2t_jax.description.parsing import is_parser, paper_model
from t2t_jax.description.table3 import paper_result, table3_row
from t2t_jax.files import read_json_object
from t2t_jax.model.architectures import count_parameters
from t2t_jax.report.environment import files_of, read_environment
from t2t_jax.report.markup import Markup, escape, join, table, tag, text
from t2t_jax.run.resume_rules import differences
from t2t_jax.run.workdir import Workdir

_MAX_EXAMPLES = 3


def describe_setup(config: Config) -> Markup:
    """Describes the model, its departures from the paper by name, and its settings."""
    found = departures(config)
    return join(
        [
            _model(config),
            tag("h3", f"Departures from the paper: {len(found)}"),
            table(
                ("what", "the paper", "here"),
                [(one.name, one.paper, one.here) for one in found],
                caption="Departures from the paper",
            ),
            details(
                f"Exactly the paper's: {len(matches(config))}",
                table(
                    ("what", "how the paper has it"),
                    [(one.name, one.paper) for one in matches(config)],
                    caption="What is exactly the paper's",
                ),
            ),
            _settings(config),
        ]
    )


def _model(config: Config) -> Markup:
    parameters = count_parameters(config.network)
    rows = [
        ("parameters", f"{parameters.total:,}"),
        ("of the embeddings", f"{parameters.embedding:,}"),
        ("of the encoder", f"{parameters.encoder:,}"),
        ("of the decoder", f"{parameters.decoder:,}"),
    ]
    row = table3_row(config)
    if printed := paper_result(row):
        about = ", ".join(
            f"{name.replace('_', ' ')} {printed[name]:g}"
            for name in ("perplexity", "dev_bleu", "test_bleu")
            if printed[name] is not None
        )
        rows.append((f"row {row} of the paper", f"prints {about}"))
    return table(("", ""), rows, caption="Parameters of the model", numbers=(1,))


def _settings(config: Config) -> Markup:
    changed = differences(paper_model(config), config)
    model = "parser (§6.3)" if is_parser(config) else "base model"
    return details(
        f"Settings that are not those of the paper's {model}: {len(changed)}",
        table(
            ("key", "paper", "here"),
            [(key, _value(base), _value(here)) for key, base, here in changed],
            caption=f"Settings that differ from the {model}",
        ),
    )


def _value(value: Any) -> str:
    return repr(value) if isinstance(value, str) else str(value)


def details(summary: str, *content: object) -> Markup:
    """Returns content that is folded away."""
    return tag("details", tag("summary", summary), *content)


def describe_data(workdir: Workdir) -> Markup:
    """Describes the text of a run: what was read, dropped, and held out.

    Raises:
      OSError: there is no data.json.
      DataError: it is damaged.
    """
    report = read_json_object(workdir.path / "data.json", advice="")
    corpora: dict[str, Any] = {
        name: report[name] for name in ("train", "dev") if name in report
    }
    names = {"train": "training", "dev": "development"}
    rows = [
        ("pairs read", *(f"{c['counts']['read']:,}" for c in corpora.values())),
        ("kept", *(f"{c['counts']['kept']:,}" for c in corpora.values())),
    ]
    for reason, words in DROP_REASONS.items():
        counts = [corpus["counts"].get(reason, 0) for corpus in corpora.values()]
        if any(counts):
            rows.append((f"dropped: {words}", *(f"{count:,}" for count in counts)))
    for label, key, form in (
        ("tokens", "tokens", "{:,}"),
        ("mean length", "mean_length", "{:.2f}"),
        ("unknown tokens", "unknown_rate", "{:.3%}"),
    ):
        for side in SIDES:
            values = (form.format(corpus[key][side]) for corpus in corpora.values())
            rows.append((f"{label}, {side}", *values))
    return join(
        [
            tag("p", _specs(corpora, names), class_="muted"),
            table(
                ("", *(names[name] for name in corpora)),
                rows,
                caption="Pairs and tokens",
                numbers=range(1, len(corpora) + 1),
            ),
            _histograms(corpora),
            _leaks(report),
            *_examples(corpora),
            _fingerprints(report, corpora),
        ]
    )


def _specs(corpora: Mapping[str, Any], names: Mapping[str, str]) -> Markup:
    parts = [
        join([f"{names[name]}: ", text(short_name(corpus["spec"]))])
        for name, corpus in corpora.items()
    ]
    return join(parts, "; ")


def _histograms(corpora: Mapping[str, Any]) -> Markup:
    """Draws how many sentences of the training text have how many tokens."""
    bins = corpora["train"]["length_histogram"]
    width, most = bins["width"], max(1, *(max(bins[side]) for side in SIDES))
    drawn = []
    for side in SIDES:
        counts = bins[side]
        bars = [
            tag(
                "rect",
                x=f"{n * 12 + 1}",
                y=f"{60 - 60 * count / most:.1f}",
                width="10",
                height=f"{60 * count / most:.1f}",
            )
            for n, count in enumerate(counts)
        ]
        longest = len(counts) * width
        about = f"Lengths of {side} sentences, 1 to {longest} tokens"
        box = f"0 0 {12 * len(counts)} 62"
        drawing = tag(
            "svg",
            *bars,
            viewBox=box,
            preserveAspectRatio="none",
            role="img",
            aria_label=about,
        )
        label = f"{side}: 1 to {longest} tokens a sentence"
        drawn.append(tag("figure", drawing, tag("figcaption", label)))
    return tag("div", *drawn, class_="histograms")


def _leaks(report: Mapping[str, Any]) -> Markup:
    leaks = report["leaks"]
    if not leaks:
        return tag("p", "No held-out text was checked against the training text.")
    rows = [
        (
            text(short_name(spec)),
            *(f"{found[name]:,}" for name in ("pairs", "both", *SIDES)),
        )
        for spec, found in leaks.items()
    ]
    warnings = [
        *leak_warnings(leaks),
        *copy_warnings(leaks),
        *copy_warnings(report["train"].get("copies", {})),
    ]
    return join(
        [
            tag("h3", "Held-out text in the training text"),
            table(
                (
                    "held-out text",
                    "pairs",
                    "both found",
                    "source found",
                    "target found",
                ),
                rows,
                caption="Held-out text that is in the training text",
                numbers=range(1, 5),
            ),
            *(tag("p", warning, class_="warning") for warning in warnings),
        ]
    )


def _examples(corpora: Mapping[str, Any]) -> Iterator[Markup]:
    rows = [
        (DROP_REASONS[reason], text(pair["source"]), text(pair["target"]))
        for corpus in corpora.values()
        for reason in DROP_REASONS
        for pair in corpus["examples"].get(reason, ())[:_MAX_EXAMPLES]
    ]
    if rows:
        yield details(
            "Examples of dropped pairs",
            table(("why", "source", "target"), rows, caption="Dropped pairs"),
        )


def _fingerprints(report: Mapping[str, Any], corpora: Mapping[str, Any]) -> Markup:
    rows = [
        (
            name.replace("_", " "),
            f"{report[name]['size']:,} subwords",
            tag("code", report[name]["fingerprint"]),
        )
        for name in ("vocabulary", "source_vocabulary", "target_vocabulary")
        if name in report
    ] + [(name, "", tag("code", one["fingerprint"])) for name, one in corpora.items()]
    return details(
        "Vocabulary and fingerprints",
        table(("of", "size", "SHA-256"), rows, caption="Fingerprints"),
    )


def describe_environment(workdir: Workdir) -> Markup:
    """Describes the machine and the packages that a run was trained with."""
    found = read_environment(workdir)
    if not found:
        return tag("p", "The training did not record its environment.")
    packages = found.pop("packages", {})
    rows = [*found.items(), *(packages.items() if isinstance(packages, dict) else ())]
    return table(
        ("", ""),
        [(name.replace("_", " "), escape(value)) for name, value in rows],
        caption="Environment of the training",
    )


def describe_files(workdir: Workdir) -> Markup:
    """Lists the files of a run with their sizes and hashes.

    Raises:
      OSError: the directory cannot be read.
    """
    rows = [
        (text(one.name), size_text(one.size), tag("code", one.sha256 or ""))
        for one in files_of(workdir)
    ]
    return table(
        ("file", "size", "SHA-256 now"), rows, caption="Files of the run", numbers=(1,)
    )


def size_text(size: float) -> str:
    """Formats a number of bytes.

    Example:
      >>> size_text(730), size_text(270_343), size_text(4.2e9)
      ('730 B', '270 kB', '4.2 GB')
    """
    if size < 1000:
        return f"{size:.0f} B"
    power = min(int(math.log10(size)) // 3, 4)
    value = size / 1000**power
    return f"{value:.{0 if value >= 10 else 1}f} {'kMGT'[power - 1]}B"
