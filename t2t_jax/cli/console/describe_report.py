"""The description of a configuration, put into words and columns for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from t2t_jax.cli.console.tables import Section
from t2t_jax.config import ARCHITECTURES

# What says where text lies and how often something is told, not what is trained.
_PLACES = (
    *("data.train", "data.dev", "data.cache_dir", "data.workers"),
    *("evaluation", "logging", "profile"),
)
_PREFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""))

_Told = Mapping[str, Any]


def sections(told: _Told) -> list[Section]:
    """Puts a description into sections: what it is, then what it costs.

    Args:
      told: from `t2t_jax.description.summary.describe`.

    Returns:
      The sections from top to bottom.
    """
    return [
        _configuration(told),
        *_differences(told),
        *_exactness(told),
        _parameters(told),
        *_results(told),
        _flops(told),
        _batch(told),
        _memory(told),
        _time(told),
        _data(told),
    ]


def si_format(number: float, unit: str) -> str:
    """Writes a number of something with four digits and its unit.

    Example:
      >>> si_format(756_552_048, "B"), si_format(9.983e12, "FLOP")
      ('756.6 MB', '9.983 TFLOP')
    """
    size, prefix = next((s, p) for s, p in _PREFIXES if number >= s or s == 1)
    digits = f"{number / size:#.4g}" if prefix else f"{number:,.0f}"
    return f"{digits} {prefix}{unit}"


def _configuration(told: _Told) -> Section:
    config = told["config"]
    unused = set(ARCHITECTURES.values()) - {ARCHITECTURES[config["architecture"]]}
    plain = {k: v for k, v in config.items() if not isinstance(v, Mapping)}
    parts = {"": plain, **{k: v for k, v in config.items() if k not in plain}}
    rows = [
        (name, "  ".join(f"{key}={_value(value)}" for key, value in values.items()))
        for name, values in parts.items()
        if name not in unused
    ]
    return Section("Configuration", rows)


def _differences(told: _Told) -> Iterator[Section]:
    """Yields what is changed: as in the paper, otherwise, and in no number."""
    row, varied = told["row"], told["variations"]
    if row and not varied:
        yield Section(
            "The paper's base model", notes=["It has every number of Table 3's base."]
        )
    elif varied:
        table = 2 if row.startswith("En-Fr") else 3
        title = f"Row {row} of Table {table}" if row else "What the paper varies too"
        rows = [
            (*_changes(entry), entry["row"] or "not in the paper") for entry in varied
        ]
        yield Section(title, rows, ("key", "base", "here", "row"))
    shown = {entry["key"] for entry in varied}
    others = [entry for entry in told["differences"] if entry["key"] not in shown]
    groups = {
        "Other changes from base": [e for e in others if not _is_place(e["key"])],
        "Where the text lies, and what is reported when": [
            e for e in others if _is_place(e["key"])
        ],
    }
    for title, entries in groups.items():
        if entries:
            yield Section(title, list(map(_changes, entries)), ("key", "base", "here"))


def _changes(entry: _Told) -> tuple[str, str, str]:
    return entry["key"], _value(entry["base"]), _value(entry["here"])


def _is_place(key: str) -> bool:
    return key in _PLACES or key.partition(".")[0] in _PLACES


def _exactness(told: _Told) -> Iterator[Section]:
    """Yields what is exactly the paper's, and in two groups what is not."""
    exact = [(entry["name"], entry["paper"]) for entry in told["exact"]]
    yield Section("Exactly the paper's", exact)
    groups: dict[str, list[tuple[str, str, str]]] = {
        "Not the paper's by default": [],
        "Not the paper's by choice of this configuration": [],
    }
    for entry in told["departures"]:
        rows = list(groups.values())[bool(entry["key"])]
        rows.append((entry["name"], "paper", entry["paper"]))
        rows.append((f"  {entry['key']}".rstrip(), "here", entry["here"]))
    for title, rows in groups.items():
        yield Section(title, rows, notes=[] if rows else ["Nothing."])


def _parameters(told: _Told) -> Section:
    table, total = told["parameters_by_kind"], told["parameters"]["total"]
    kinds = list(dict.fromkeys(kind for part in table.values() for kind in part))
    rows = [
        (part, *(found.get(kind, 0) for kind in kinds), sum(found.values()))
        for part, found in table.items()
    ]
    sums = (sum(found.get(kind, 0) for found in table.values()) for kind in kinds)
    rows.append(("total", *sums, total))
    cells = [
        (name, *(f"{n:,}" if n else "-" for n in counts)) for name, *counts in rows
    ]
    header = ("", *(kind.replace("_", "-") for kind in kinds), "total")
    return Section("Parameters", cells, header, right=range(1, len(header)))


def _results(told: _Told) -> Iterator[Section]:
    """Yields what the paper prints of this model, beside what is counted here."""
    paper = told["paper_results"]
    if not paper:
        return
    millions = paper["parameters_in_millions"]
    counted = f"{told['parameters']['total'] / 1e6:,.1f} million"
    printed = f"{millions} million" if millions else "not printed"
    as_base = "those of base" if paper["parameters_as_base"] else ""
    rows = [("parameters", counted, printed, as_base)]
    if paper["perplexity"]:
        rows.append(("perplexity", "-", f"{paper['perplexity']:.2f}", "per subword"))
        rows.append(("BLEU", "-", f"{paper['dev_bleu']:.1f}", paper["dev_set"]))
    if paper["test_bleu"]:
        rows.append(("BLEU", "-", f"{paper['test_bleu']:.1f}", paper["test_set"]))
    notes = ["The paper's BLEU is of tokens, not comparable with sacreBLEU."]
    if millions:
        notes.append("Its parameters fit a vocabulary of 40,000; it says about 37,000.")
    if departs := paper["departs_here"]:
        notes.append(f"This configuration departs in {', '.join(departs)}.")
    header = ("", "here", "paper", "on")
    yield Section("Results in the paper", rows, header, right=(1, 2), notes=notes)


def _flops(told: _Told) -> Section:
    total, compiler = told["flops_per_step"], told["compiler_flops_per_step"]
    counted = {**told["flops_by_part"], "in all": total, "by the compiler": compiler}
    # One unit for all of them, or they could not be compared at a glance.
    size, prefix = next((s, p) for s, p in _PREFIXES if total >= s or s == 1)
    rows = [
        (part.replace("_", "-"), f"{flops / size:,.3f}", f"{flops / total:.1%}")
        for part, flops in counted.items()
    ]
    pair, costs = told["flops_per_token_pair"], told["paper_costs"]
    whole = f"{told['steps']:,} steps: {told['training_flops']:.2e} FLOP."
    if costs:
        whole += f" In Table 2: {costs['flops']:.1e}, from hours and hardware."
    notes = [
        f"A pair of tokens, in sentences of {pair['sentence_length']}: "
        f"{pair['flops'] / 1e6:,.1f} MFLOP.",
        whole,
    ]
    recurrent = told["config"]["architecture"] != "transformer"
    if recurrent or told["batch"]["micro_batches"] > 1:
        notes.append("The compiler counts what is repeated over time only once.")
    header = ("by formula", f"{prefix}FLOP", "share")
    return Section("Operations of a step", rows, header, right=(1, 2), notes=notes)


def _batch(told: _Told) -> Section:
    batch, rate = told["batch"], told["learning_rate"]
    shape = f"{batch['rows']:,} rows of {batch['row_length']:,}"
    if batch["layout"] == "length_groups":
        shape += ", the longest group; the others follow from the text"
    if batch["empty_rows"]:
        shape += f", {batch['empty_rows']:,} of them empty to share them evenly"
    for more, shorter in batch["shorter_rows"]:
        shape += f", or {more:,} of {shorter:,}"
    rows = [
        ("token slots", f"{batch['slots_per_side']:,} on each side"),
        ("shape", shape),
        ("devices", f"{_mesh(batch)}, rows of each: {batch['rows_per_device']:,}"),
        ("micro-batches", _micro_batches(batch)),
        (
            "activations",
            batch["compute_dtype"] + ", computed twice (model.remat)" * batch["remat"],
        ),
        ("peak learning rate", f"{rate['peak']:.3e} at step {rate['step']:,}"),
    ]
    return Section("Batch and learning rate", rows)


def _mesh(batch: _Told) -> str:
    """Writes how many devices there are, and their mesh if it is more than a row."""
    sizes = " x ".join(f"{axis} {size}" for axis, size in batch["mesh"].items())
    plain = batch["mesh"]["data"] == batch["devices"]
    return f"{batch['devices']:,}{'' if plain else f' ({sizes})'}"


def _micro_batches(batch: _Told) -> str:
    number = batch["micro_batches"]
    if not number:
        return "auto: as few as fit the devices; the figures below are of 1"
    return f"{number}{': all rows of a device at once' if number == 1 else ''}"


def _memory(told: _Told) -> Section:
    memory, compiler = told["memory"], told["memory"]["compiler"]
    keep = told["config"]["checkpoint"]["keep"]
    xla = f"XLA for {memory['platform']}:"
    rows = [
        ("parameters", memory["parameters"], "float32, what the device holds"),
        ("optimizer", memory["optimizer"], "Adam's two moments, likewise"),
        ("gradients", memory["gradients"], "during the step"),
        ("batch", memory["batch"], "this device's rows"),
        ("arguments", compiler["arguments"], f"{xla} parameters, optimizer, batch"),
        ("temporaries", compiler["temporaries"], f"{xla} activations, gradients"),
        ("all at once", compiler["total"], f"{xla} what must fit"),
        ("a checkpoint", told["checkpoint_bytes"], "on disk"),
        (
            "checkpoints",
            told["checkpoints_bytes"],
            f"on disk at most: {keep} (checkpoint.keep), the best and the last",
        ),
    ]
    cells = [(name, si_format(size, "B"), note) for name, size, note in rows]
    return Section("Memory of each device, and disk", cells, right=(1,))


def _time(told: _Told) -> Section:
    rows = [("steps", f"{told['steps']:,}")]
    if told["epochs"] is not None:
        rows.append(("epochs", f"about {told['epochs']:,.1f}"))
    estimate = told["estimate"]
    if estimate:
        hours = (
            f"about {estimate['hours']:,.2f} hours on {estimate['devices']:,} x "
            f"{estimate['peak_tflops']:g} TFLOP/s"
        )
        rows.append(("estimate, not measured", hours))
        reached = f"{estimate['mfu']:.0%} of the peak in {estimate['compute_dtype']}"
        rows.append(("  where there are reached", reached))
    else:
        rows.append(("estimate", "give --peak_tflops of one device (and --mfu)"))
    if told["paper_costs"]:
        rows.append(("in the paper", f"{told['paper_costs']['hours']:g} h on 8 P100"))
    return Section("Time", rows)


def _data(told: _Told) -> Section:
    rows = [
        (part, f"{corpus['pairs']:,} pairs", corpus["spec"])
        for part, corpus in (told["data"] or {}).items()
        if corpus["pairs"] is not None
    ]
    notes = [line for note in told["data_notes"] for line in note.splitlines()]
    if notes and not rows:
        notes.insert(0, "It is not here, and nothing above depends on it.")
    return Section("Text", rows, right=(1,), notes=notes)


def _value(value: Any) -> str:
    """Writes a value as one reads it; an empty text as two quotes."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value) or "''"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.10g}".replace("e-0", "e-")
