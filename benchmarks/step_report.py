"""Prints the report of `train_step.py` for people."""

from __future__ import annotations

from typing import Any

_WIDTH = 24
_RATE = "target_tokens_per_second"
_IDLE = 0.5  # a larger load is another program


def show(report: dict[str, Any]) -> None:
    """Prints everything in a report that `train_step.measure` has made."""
    show_machine(report)
    ours, variants = report["ours"], report["variants"]
    contestants = {"ours": ours, **variants, **report["peers"]}
    if "text" in report:
        _show_text(report["text"], contestants)
    else:
        print(f"{report['pairs']} pairs x {report['length']} tokens of each side")
        _show_steps(contestants)
    facts = {k: f"{x['parameters']:,} parameters" for k, x in contestants.items()}
    show_contestants(report, contestants, facts)
    for name, figures in variants.items():
        ratio = figures[_RATE] / ours[_RATE]
        print(f"with {name}: {ratio:.3f} times ours as it is")


def show_machine(report: dict[str, Any], search: str = "") -> None:
    """Prints what was measured on, and whether it was idle."""
    hardware = report["hardware"]
    threads = f", {report['threads']} threads" if report["threads"] else ""
    print(
        f"{report['size']} on {report['ours']['device']}{threads}{search}; "
        f"{hardware['cpu']}, {hardware['cores']} cores, load {hardware['load']}, "
        f"{hardware['date']}"
    )
    if hardware["load"] > _IDLE:
        print("The machine was not idle when this began: look at the rounds.")


def show_contestants(
    report: dict[str, Any], contestants: dict[str, Any], facts: dict[str, str]
) -> None:
    """Prints the versions of each, and the ratios."""
    for name, figures in contestants.items():
        told = ", ".join(f"{key} {value}" for key, value in figures["versions"].items())
        print(f"{name}: {facts[name]}; {told}")
    for name, ratio in report["ratios"].items():
        print(f"ratio to {name}: {ratio:.2f}")


def _show_steps(contestants: dict[str, dict[str, Any]]) -> None:
    print(
        f"{'':{_WIDTH}}tokens/s  median ms    best ms   TFLOP/s  of peak  compile s"
        "  first s  peak MB"
    )
    for name, figures in contestants.items():
        share = figures.get("share_of_peak")
        compiling = figures.get("compile_seconds")
        print(
            f"{name:{_WIDTH}}{figures[_RATE]:8,.0f}"
            f"{figures['median_ms']:11,.1f}{figures['best_ms']:11,.1f}"
            f"{figures['tflops']:10.3f}{'-' if share is None else f'{share:.0%}':>9}"
            f"{'-' if compiling is None else f'{compiling:.1f}':>11}"
            f"{figures['first_step_seconds']:9.1f}{figures['peak_memory_mb']:9,.0f}"
        )


def _show_text(text: dict[str, Any], contestants: dict[str, dict[str, Any]]) -> None:
    rows = f" of {text['row_length']}" if text["layout"] == "packed" else ""
    print(
        f"{text['source']}: {text['pairs']:,} pairs, {text['tokens']:,} slots a side, "
        f"our rows {text['layout']}{rows}"
    )
    print(f"{'':{_WIDTH}}real tokens/s      best   overall   steps  peak MB")
    for name, figures in contestants.items():
        print(
            f"{name:{_WIDTH}}{figures[_RATE]:13,.0f}"
            f"{figures['best_target_tokens_per_second']:10,.0f}"
            f"{figures['overall_target_tokens_per_second']:10,.0f}"
            f"{figures['steps']:8,}{figures['peak_memory_mb']:9,.0f}"
        )
