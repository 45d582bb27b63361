"""Prints the report of `decode.py` for people."""

from __future__ import annotations

from typing import Any

from step_report import show_contestants, show_machine

_WIDTH = 18


def show(report: dict[str, Any]) -> None:
    """Prints everything that `decode.measure` has put into a report."""
    search = f", beam {report['beam_size']}, alpha {report['length_penalty']}"
    show_machine(report, search)
    contestants = {"ours": report["ours"], **report["peers"]}
    if "lines" in report:
        _show_text(report, contestants)
    else:
        _show_batches(report, contestants)
    facts = {
        name: f"{figures['dtype']}, {figures['peak_memory_mb']:,.0f} MB at the peak"
        for name, figures in contestants.items()
    }
    show_contestants(report, contestants, facts)


def _show_batches(
    report: dict[str, Any], contestants: dict[str, dict[str, Any]]
) -> None:
    print(f"outputs of {report['length']} tokens, forced")
    print(
        f"{'waiting':>7}  {'':{_WIDTH}}sentences/s      best  tokens/s   call ms"
        "  at once  workers  first s  ratio"
    )
    for rows in report["ours"]["batches"]:
        for name, figures in contestants.items():
            found = figures["batches"][rows]
            ratio = report["ratios_by_batch"][rows].get(name)
            print(
                f"{rows:>7}  {name:{_WIDTH}}{found['sentences_per_second']:11,.1f}"
                f"{found['best_sentences_per_second']:10,.1f}"
                f"{found['tokens_per_second']:10,.0f}{found['call_ms']:10,.1f}"
                f"{found['at_once']:9}{found['workers']:9}{found['first_seconds']:9.1f}"
                f"{'' if ratio is None else f'{ratio:7.2f}'}"
            )


def _show_text(report: dict[str, Any], contestants: dict[str, dict[str, Any]]) -> None:
    print(f"{report['lines']:,} lines, translated freely")
    print(
        f"{'':{_WIDTH}}  lines/s      best  tokens/s    tokens  first s  at once"
        "  workers   BLEU  one line, ms"
    )
    for name, figures in contestants.items():
        bleu = f"{figures['bleu']:.2f}" if "bleu" in figures else "-"
        line = figures.get("first_line", {}).get("median_ms")
        print(
            f"{name:{_WIDTH}}{figures['sentences_per_second']:9,.1f}"
            f"{figures['best_sentences_per_second']:10,.1f}"
            f"{figures['tokens_per_second']:10,.0f}{figures['tokens']:10,}"
            f"{figures['first_seconds']:9.1f}{figures['at_once'] or '-':>9}"
            f"{figures['workers']:9}{bleu:>7}"
            f"{'-' if line is None else f'{line:.1f}':>14}"
        )
