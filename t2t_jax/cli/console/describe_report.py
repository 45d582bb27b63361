"""Formats the description of a configuration as a human-readable report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from t2t_jax.config import ARCHITECTURES
from t2t_jax.report.page import Table

_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""))
_MICRO_BATCHES = {
    0: "auto: as few as fit the devices; the numbers below are for 1",
    1: "1: all rows of a device at once",
}
_Info = Mapping[str, Any]


def sections(info: _Info) -> list[Table]:
    """Formats a description as tables: the configuration, then its costs.

    Args:
      info: from `t2t_jax.run.description.summary.describe`.
    """
    if "topology" in info:
        return [*_topology(info)]
    return [
        _configuration(info),
        *_differences(info),
        *_exactness(info),
        _parameters(info),
        *_results(info),
        _flops(info),
        Table("Batch and learning rate", (), [*_batch(info)]),
        Table("Memory of each device, and disk", (), [*_memory(info)], numbers=(1,)),
        Table("Time", (), [*_time(info)]),
        _data(info),
    ]


def si_format(number: float, unit: str) -> str:
    """Formats a number with four digits, an SI prefix and its unit.

    Example:
      >>> si_format(756_552_048, "B"), si_format(9.983e12, "FLOP")
      ('756.6 MB', '9.983 TFLOP')
    """
    size, prefix = next((s, p) for s, p in _PREFIXES if number >= s or s == 1)
    digits = f"{number / size:#.4g}" if prefix else f"{number:,.0f}"
    return f"{digits} {prefix}{unit}"


def _configuration(info: _Info) -> Table:
    config = info["config"]
    unused = set(ARCHITECTURES.values()) - {ARCHITECTURES[config["architecture"]]}
    plain = {k: v for k, v in config.items() if not isinstance(v, Mapping)}
    rows = [
        (name, "  ".join(f"{key}={_value(value)}" for key, value in values.items()))
        for name, values in {"": plain, **config}.items()
        if name not in {*plain, *unused}
    ]
    return Table("Configuration", (), rows)


def _differences(info: _Info) -> Iterator[Table]:
    """Yields the changes from the paper's model: varied ones, then all others."""
    row, varied = info["row"], info["variations"]
    base = "§6.3" if info["parsers"] else "base"
    if info["parsers"]:
        parsers = [
            (one["name"], f"{one['tokens']:,} tokens", f"F1 {one['f1']:.1f}")
            for one in info["parsers"]
        ]
        notes = ["F1 on section 23 of the Wall Street Journal, gold trees."]
        yield Table("The paper's parsers (§6.3, Table 4)", (), parsers, notes=notes)
    elif varied:
        table = 2 if row.startswith("En-Fr") else 3
        title = f"Row {row} of Table {table}" if row else "Varied in the paper"
        cells = [(*_change(e), e["row"] or "not in the paper") for e in varied]
        yield Table(title, ("key", "base", "here", "row"), cells)
    elif row:
        notes = ["It has every number of Table 3's base."]
        yield Table("The paper's base model", notes=notes)
    shown = {entry["key"] for entry in varied}
    others = [_change(e) for e in info["differences"] if e["key"] not in shown]
    if others:
        yield Table(f"Other changes from {base}", ("key", base, "here"), others)


def _change(entry: _Info) -> tuple[str, str, str]:
    return entry["key"], _value(entry["base"]), _value(entry["here"])


def _exactness(info: _Info) -> Iterator[Table]:
    """Yields what matches the paper exactly, and two groups of departures."""
    exact = [(entry["name"], entry["paper"]) for entry in info["exact"]]
    yield Table("Exactly the paper's", (), exact)
    for by_choice, why in ((False, "default"), (True, "choice of this configuration")):
        rows = []
        for entry in info["departures"]:
            if bool(entry["key"]) == by_choice:
                rows.append((entry["name"], "paper", entry["paper"]))
                rows.append((f"  {entry['key']}".rstrip(), "here", entry["here"]))
        notes = ["Nothing."] * (not rows)
        yield Table(f"Not the paper's by {why}", (), rows, notes=notes)


def _parameters(info: _Info) -> Table:
    parts = info["parameters_by_kind"]
    total: Counter[str] = sum(map(Counter, parts.values()), Counter())
    cells = []
    for name, found in {**parts, "total": total}.items():
        counts = [*(found.get(kind, 0) for kind in total), sum(found.values())]
        cells.append((name, *(f"{n:,}" if n else "-" for n in counts)))
    header = ("", *(kind.replace("_", "-") for kind in total), "total")
    return Table("Parameters", header, cells, numbers=range(1, len(header)))


def _results(info: _Info) -> Iterator[Table]:
    paper = info["paper_results"]
    if not paper:
        return
    millions = paper["parameters_in_millions"]
    counted = f"{info['parameters']['total'] / 1e6:,.1f} million"
    printed = f"{millions} million" if millions else "not printed"
    as_base = "those of base" * bool(paper["parameters_as_base"])
    rows = [("parameters", counted, printed, as_base)]
    for name, key, digits, note in (
        ("perplexity", "perplexity", 2, "per subword"),
        ("BLEU", "dev_bleu", 1, paper["dev_set"]),
        ("BLEU", "test_bleu", 1, paper["test_set"]),
    ):
        if paper[key]:
            rows.append((name, "-", f"{paper[key]:.{digits}f}", note))
    notes = ["The paper's BLEU is of tokens, not comparable with sacreBLEU."]
    if departs := paper["departs_here"]:
        notes.append(f"This configuration departs in {', '.join(departs)}.")
    header = ("", "here", "paper", "on")
    yield Table("Results in the paper", header, rows, numbers=(1, 2), notes=notes)


def _flops(info: _Info) -> Table:
    total, compiler = info["flops_per_step"], info["compiler_flops_per_step"]
    counted = {**info["flops_by_part"], "in all": total, "by the compiler": compiler}
    # One unit for all, so that they can be compared.
    size, prefix = next((s, p) for s, p in _PREFIXES if total >= s or s == 1)
    rows = [
        (part.replace("_", "-"), f"{flops / size:,.3f}", f"{flops / total:.1%}")
        for part, flops in counted.items()
    ]
    pair, costs = info["flops_per_token_pair"], info["paper_costs"]
    training = f"{info['steps']:,} steps: {info['training_flops']:.2e} FLOP."
    if costs:
        training += f" In Table 2: {costs['flops']:.1e}, from hours and hardware."
    notes = [
        f"A pair of tokens, in sentences of {pair['sentence_length']}: "
        f"{pair['flops'] / 1e6:,.1f} MFLOP.",
        training,
    ]
    header = ("by formula", f"{prefix}FLOP", "share")
    return Table("Operations of a step", header, rows, numbers=(1, 2), notes=notes)


def _batch(info: _Info) -> Iterator[tuple[str, str]]:
    batch, rate = info["batch"], info["learning_rate"]
    shape = [f"{batch['rows']:,} rows of {batch['row_length']:,}"]
    if batch["empty_rows"]:
        shape.append(f"{batch['empty_rows']:,} of them empty to shard them evenly")
    shape += [f"or {more:,} of {shorter:,}" for more, shorter in batch["shorter_rows"]]
    sizes = " x ".join(f"{axis} {size}" for axis, size in batch["mesh"].items())
    mesh = f" ({sizes})" * (batch["mesh"]["data"] != batch["devices"])
    remat = ", computed twice (model.remat)" * batch["remat"]
    number = batch["micro_batches"]
    yield "token slots", f"{batch['slots_per_side']:,} on each side"
    yield "shape", ", ".join(shape)
    devices = f"{batch['devices']:,}{mesh}, rows of each: {batch['rows_per_device']:,}"
    yield "devices", devices
    yield "micro-batches", _MICRO_BATCHES.get(number, f"{number}")
    yield "activations", batch["compute_dtype"] + remat
    yield "peak learning rate", f"{rate['peak']:.3e} at step {rate['step']:,}"
    yield "last learning rate", f"{rate['last']:.3e}"


def _memory(info: _Info) -> Iterator[tuple[str, str, str]]:
    memory, config = info["memory"], info["config"]
    xla = f"XLA for {memory['platform']}:"
    kept = f"{config['checkpoint']['keep']} (checkpoint.keep), the best and the last"
    sizes = {**info, **memory["compiler"], **memory}
    for name, key, note in (
        ("parameters", "parameters", "float32, what the device holds"),
        ("  frozen", "frozen", "of them, without gradients and moments"),
        ("optimizer", "optimizer", f"moments of {config['optimizer']['name']}"),
        ("moving average", "ema", "of the parameters"),
        ("gradients", "gradients", "during the step"),
        ("batch", "batch", "this device's rows"),
        ("arguments", "arguments", f"{xla} parameters, optimizer, batch"),
        ("temporaries", "temporaries", f"{xla} activations, gradients"),
        ("all at once", "total", f"{xla} what must fit"),
        ("a checkpoint", "checkpoint_bytes", "on disk"),
        ("checkpoints", "checkpoints_bytes", f"on disk at most: {kept}"),
    ):
        if key not in ("ema", "frozen") or memory[key]:
            yield name, si_format(sizes[key], "B"), note


def _topology(info: _Info) -> Iterator[Table]:
    """Yields what was compiled for devices that are not here."""
    batch, search = info["batch"], info.get("decode")
    notes = [
        "Estimated from the compiled program and data sheets, of one device of "
        f"{info['devices']:,}. Nothing was run or measured."
    ]
    shape = f"{batch['rows']:,} rows of {batch['row_length']:,}"
    rows = [
        ("batch", f"{shape}, {batch['compute_dtype']}"),
        ("attention", info["attention_note"] or info["attention"] or "recurrent"),
        ("parameters", si_format(info["bytes_parameters"], "B")),
        ("optimizer", si_format(info["bytes_optimizer"], "B")),
        *_estimates(info),
        ("advice", info["advice"] or "none"),
    ]
    if (hours := info["estimated_hours"]) is not None:
        rows.insert(-1, ("the run", f"{info['steps']:,} steps in {hours:,.2f} hours"))
    yield Table(f"A step compiled for {info['topology']}", (), rows, notes=notes)
    if search:
        size = f"{search['rows']:,} of {search['source_tokens']} subwords, "
        rows = [("rows", f"{size}{search['beam_size']} beams"), *_estimates(search)]
        if rate := search["sentences_per_second"]:
            rows.append(("sentences", f"at most {rate:,.0f} a second, on all devices"))
        yield Table("One position of the search", (), rows, notes=notes)


def _estimates(info: _Info) -> Iterator[tuple[str, str]]:
    """Yields the estimates of a program on one device."""
    needed, usable = info["bytes_needed"], info["device_memory"]
    excess = f"too much by {si_format(needed - usable, 'B')}"
    yield "temporaries", si_format(info["bytes_temporary"], "B")
    of = f"{si_format(needed, 'B')} of {si_format(usable, 'B')} usable"
    yield "memory", f"{of}: {'it fits' if info['fits'] else excess}"
    if info["estimated_ms"] is None:
        return
    moved = si_format(info["bytes_accessed"], "B")
    yield "operations", f"{si_format(info['flops'], 'FLOP')}, {moved} moved"
    yield "time", f"{info['estimated_ms']:.3g} ms, bound by {info['bound_by']}"
    for part in info["parts"]:
        yield f"  {part['part']} {part['direction']}".rstrip(), f"{part['ms']:.3g} ms"
    for one in info["collectives"]:
        sent = f"{one['count']:,} x, {si_format(one['bytes'], 'B')} sent"
        hidden = "hidden" if one["hidden"] else f"{one['exposed_ms']:.3g} not hidden"
        yield f"  {one['kind']}", f"{sent}, {one['ms']:.3g} ms of links, {hidden}"


def _time(info: _Info) -> Iterator[tuple[str, str]]:
    yield "steps", f"{info['steps']:,}"
    if info["epochs"] is not None:
        yield "epochs", f"about {info['epochs']:,.1f}"
    if estimate := info["estimate"]:
        devices = f"{estimate['devices']:,} x {estimate['peak_tflops']:g} TFLOP/s"
        hours = f"about {estimate['hours']:,.2f} hours on {devices}"
        yield "estimate, not measured", hours
        reached = f"{estimate['mfu']:.0%} of the peak in {estimate['compute_dtype']}"
        yield "  assuming", reached
    else:
        yield "estimate", "pass --peak_tflops of one device (and --mfu)"
    if info["paper_costs"]:
        yield "in the paper", f"{info['paper_costs']['hours']:g} h on 8 P100"


def _data(info: _Info) -> Table:
    rows = [
        (part, f"{corpus['pairs']:,} pairs", corpus["spec"])
        for part, corpus in (info["data"] or {}).items()
        if corpus["pairs"] is not None
    ]
    notes = [line for note in info["data_notes"] for line in note.splitlines()]
    return Table("Text", (), rows, numbers=(1,), notes=notes)


def _value(value: Any) -> str:
    """Formats a value for reading; an empty string as two quotes."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value) or "''"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.10g}".replace("e-0", "e-")
