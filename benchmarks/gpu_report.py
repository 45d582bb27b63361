"""Rows and plots of what `gpu.sh` has measured."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from t2t_jax.evaluation.plots.figure import new_figure, render_png

_RATE = "target_tokens_per_second"

Rows = list[Sequence[str]]


def markdown(content: dict[str, Any]) -> str:
    """Formats all results as Markdown tables, with what is missing below."""
    parts, texts = content["parts"], []
    done = {name: p["report"] for name, p in parts.items() if p["state"] == "done"}
    if content["rehearsal"]:
        texts.append(
            "A rehearsal on the CPU with tiny sizes: no figure means anything."
        )
    texts += list(_about(done))
    for title, rows in _tables(done):
        if len(rows) > 1:
            texts.append(f"## {title}\n\n{_table(rows)}")
    rest = [
        f"- {name}: {p['state']}. {_last_line(p.get('reason', ''))}"
        for name, p in parts.items()
        if p["state"] != "done"
    ]
    if rest:
        texts.append("## Not measured\n\n" + "\n".join(rest))
    return "\n\n".join(texts) + "\n"


def _about(done: dict[str, Any]) -> Iterator[str]:
    for report in done.values():
        if "hardware" in report and "versions" in report:
            versions = ", ".join(f"{k} {v}" for k, v in report["versions"].items())
            date = report["hardware"]["date"]
            yield f"{report['device']}; {versions}; {date}."
            return


def _tables(done: dict[str, Any]) -> Iterator[tuple[str, Rows]]:
    yield "Correctness", list(_checks(done))
    yield "Attention alone, forwards and backwards", list(_kernels(done))
    yield "Training step", list(_steps(done))
    yield "Decoding", list(_decoding(done))
    yield "Multi30k's recipe", list(_recipes(done))
    yield "Time to a score", list(_scores(done))


def _checks(done: dict[str, Any]) -> Iterator[Sequence[str]]:
    yield ("check", "largest error", "tolerance")
    if found := done.get("loss_float32"):
        yield (
            f"loss of {found['steps']} steps in float32, against the CPU",
            f"{found['largest_relative_difference']:.1e}",
            f"{found['tolerance']:.0e}",
        )
    if found := done.get("attention_kernels"):
        for use in ("encoder", "decoder"):
            for name, one in found[use].items():
                if "errors" in one:
                    worst = max(one["errors"].values())
                    tolerance = f"{found['tolerance']:.0e}"
                    yield (f"{name}, {use}, bfloat16", f"{worst:.1e}", tolerance)


def _kernels(done: dict[str, Any]) -> Iterator[Sequence[str]]:
    yield ("kernel", "encoder, ms", "decoder, ms", "remark")
    found = done.get("attention_kernels", {})
    for name, one in found.get("encoder", {}).items():
        other = found["decoder"][name]
        if "median_ms" in one and "median_ms" in other:
            yield (name, f"{one['median_ms']:.2f}", f"{other['median_ms']:.2f}", "")
        else:
            yield (name, "-", "-", one.get("missing", one.get("failed", "")))


def _steps(done: dict[str, Any]) -> Iterator[Sequence[str]]:
    yield (
        *("size", "contestant", "target tokens/s", "ms", "of peak", "peak MB"),
        *("ratio of ours", "waiting for input"),
    )
    for name, report in done.items():
        if not name.startswith("step_"):
            continue
        rows = {"ours": report["ours"], **report["variants"], **report["peers"]}
        for contestant, figures in rows.items():
            ms, share = figures.get("median_ms"), figures.get("share_of_peak")
            idle = figures.get("share_waiting_for_input")
            yield (
                f"{report['size']}{', text' if 'text' in report else ''}"
                f"{', packed' if report['pairs_per_row'] > 1 else ''}",
                contestant,
                f"{figures[_RATE]:,.0f}",
                "-" if ms is None else f"{ms:.2f}",
                "-" if share is None else f"{share:.0%}",
                f"{figures['peak_memory_mb']:,.0f}",
                f"{report['ours'][_RATE] / figures[_RATE]:.2f}",
                "-" if idle is None else f"{idle:.1%}",
            )


def _decoding(done: dict[str, Any]) -> Iterator[Sequence[str]]:
    yield ("waiting", "contestant", "sentences/s", "ratio of ours")
    if report := done.get("decode"):
        for rows, name, rate, own in _decoding_rates(report):
            yield (rows, name, f"{rate:,.1f}", f"{own / rate:.2f}")


def _decoding_rates(
    report: dict[str, Any],
) -> Iterator[tuple[str, str, float, float]]:
    """Yields (sentences waiting, contestant, sentences a second, ours)."""
    ours = report["ours"]["batches"]
    for name, figures in {"ours": report["ours"], **report["peers"]}.items():
        for rows, one in figures["batches"].items():
            rate = one["sentences_per_second"]
            yield rows, name, rate, ours[rows]["sentences_per_second"]


def _recipes(done: dict[str, Any]) -> Iterator[Sequence[str]]:
    yield ("row", "steps", "minutes of training", "BLEU", "signature")
    for name, report in done.items():
        if name.startswith("recipe_"):
            yield (
                report["row"],
                f"{report['steps']:,}",
                f"{report['training_minutes']:.2f}",
                *_bleu(report["scores"]),
            )


def _bleu(scores: dict[str, Any]) -> tuple[str, str]:
    """Returns the BLEU of a recipe's own protocol, and its signature."""
    of_tokens = scores.get("tokenized_bleu")
    if of_tokens:
        return f"{of_tokens['score']:.2f}", f"of tokens: {of_tokens['signature']}"
    return f"{scores['bleu']:.2f}", scores["bleu_signature"]


def _scores(done: dict[str, Any]) -> Iterator[Sequence[str]]:
    yield ("variant", "best BLEU", "steps", "s", "reached")
    for row in done.get("time_to_score", []):
        if not row["seeds"]:
            continue
        reached = (
            f"{target} in {one['seconds']:.0f} s"
            for target, one in row["reached"].items()
            if one["runs"]
        )
        best = max(row["best_bleu"])
        steps, seconds = f"{row['steps']:,.0f}", f"{row['seconds']:.1f}"
        yield (row["variant"], f"{best:.2f}", steps, seconds, "; ".join(reached) or "-")


def plot(content: dict[str, Any]) -> bytes:
    """Plots rates of training and decoding, and times of attention, as PNG.

    Raises:
      UserError: matplotlib is not installed.
    """
    parts = content["parts"]
    done = {name: p["report"] for name, p in parts.items() if p["state"] == "done"}
    figure = new_figure(13.0, 5.0)
    panels = figure.subplots(1, 3)
    steps = [row for row in _steps(done)][1:]
    _bars(
        panels[0],
        {f"{row[0]}: {row[1]}": float(row[2].replace(",", "")) for row in steps},
        label="training, target tokens/s",
    )
    rates = {}
    if "decode" in done:
        rates = {f"{r}: {n}": rate for r, n, rate, _ in _decoding_rates(done["decode"])}
    _bars(panels[1], rates, label="decoding, sentences/s (waiting: who)")
    kernels = [row for row in _kernels(done)][1:]
    times = {row[0]: float(row[1]) for row in kernels if row[1] != "-"}
    _bars(panels[2], times, label="attention of an encoder layer, ms")
    if content["rehearsal"]:
        figure.suptitle("A rehearsal on the CPU with tiny sizes")
    return render_png(figure)


def _bars(panel: Any, values: dict[str, float], *, label: str) -> None:
    panel.barh(list(values), list(values.values()), color="0.5")
    panel.invert_yaxis()
    panel.set_xlabel(label)
    panel.tick_params(axis="y", labelsize=6)


def _table(rows: Rows) -> str:
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""
