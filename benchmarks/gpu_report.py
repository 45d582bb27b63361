"""Prints what `gpu.sh` has measured as tables in Markdown.

python benchmarks/gpu_report.py OUT
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_RATE = "target_tokens_per_second"

Rows = list[Sequence[str]]


def markdown(out: Path) -> str:
    """Formats all results as Markdown tables, with what failed below.

    Args:
      out: has a JSON object for each part that is done, and the reason for the others.
    """
    done = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted(out.glob("*.json"))
    }
    texts = list(_about(done))
    if (out / "kind").read_text() == "rehearsal\n":
        texts.insert(
            0, "A rehearsal on the CPU, of tiny sizes: no figure means anything."
        )
    for title, rows in _tables(done):
        if len(rows) > 1:
            texts.append(f"## {title}\n\n{_table(rows)}")
    rest = [
        f"- {path.stem}: {_last_line(path.read_text(encoding='utf-8'))}"
        for path in sorted(out.glob("*.failed"))
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
    yield "Estimates of the compiler, and the device", list(_estimates(done))
    yield "Correctness", list(_checks(done))
    yield "Attention alone, forwards and backwards", list(_kernels(done))
    yield "Training step", list(_steps(done))
    yield "Decoding", list(_decoding(done))
    yield "Multi30k's recipe", list(_recipes(done))


def _estimates(done: dict[str, Any]) -> Iterator[Sequence[str]]:
    yield (
        *("configuration", "attention", "estimated ms", "bound by", "measured ms"),
        *("measured / estimated", "estimated GB", "peak GB"),
    )
    for name, one in done.get("estimate", {}).get("configs", {}).items():
        estimated, ms, peak = (
            one[key] for key in ("estimated_ms", "median_ms", "peak_bytes")
        )
        yield (
            *(name, one["attention"], f"{estimated:.1f}", one["bound_by"], f"{ms:.1f}"),
            *(f"{ms / estimated:.2f}", f"{one['bytes_needed'] / 1e9:.1f}"),
            "-" if peak is None else f"{peak / 1e9:.1f}",
        )


def _checks(done: dict[str, Any]) -> Iterator[Sequence[str]]:
    yield ("check", "largest error", "tolerance")
    if found := done.get("loss_float32"):
        yield (
            f"loss of {found['steps']} steps in float32, against the CPU",
            f"{found['largest_relative_difference']:.1e}",
            f"{found['tolerance']:.0e}",
        )
    for name, runs in done.get("repeats", {}).get("same_bits", {}).items():
        for run, same in runs.items():
            yield (
                f"a run {run}, {name} operations",
                "the same" if same else "others",
                "",
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
                f"{report['final']['step']:,}",
                f"{report['final']['minutes']:.2f}",
                *_bleu(report["scores"]),
            )


def _bleu(scores: dict[str, Any]) -> tuple[str, str]:
    """Returns the BLEU of a recipe's own protocol, and its signature."""
    of_tokens = scores.get("tokenized_bleu")
    if of_tokens:
        return f"{of_tokens['score']:.2f}", f"of tokens: {of_tokens['signature']}"
    return f"{scores['bleu']:.2f}", scores["bleu_signature"]


def _table(rows: Rows) -> str:
    lines = [rows[0], ["---"] * len(rows[0]), *rows[1:]]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""


if __name__ == "__main__":
    print(markdown(Path(sys.argv[1])), end="")
