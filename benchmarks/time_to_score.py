"""Measures how many seconds and steps training takes to a development BLEU.

    python benchmarks/time_to_score.py --out=scores --targets=30,34 --seeds=0,1,2
      --variant=optimizer.name=muon --variant=training.simcut=3.0
    python benchmarks/time_to_score.py --out=scores --config=own_text:small
      --set=data.train=text:mine.en,mine.de --targets=20 --minutes=20

Every variant, and the configuration as it is, is trained with every seed in slices of
`--every` steps, each with an evaluation at its end. Runs take turns slice by slice, in
another order each time, so that a change of the machine's load meets all of them.
Seconds are those that the program counts as training: evaluation is reported apart, and
preparation, compilation and saving are not counted. A run ends with its budget of
`--steps` or `--minutes`, or once it has reached the highest target.

Interrupted, the same command goes on. `--out` gets results.json, rows.md, curves.png
and the runs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from score_curves import Curve, Point, markdown, plot, summarise
from variants import changes

import t2t_jax
from t2t_jax.config import parse
from t2t_jax.errors import ConfigError, DivergedError, OutputError, UserError
from t2t_jax.evaluation.protocol import installed_versions
from t2t_jax.files import atomic_write, read_json_object

_AS_IT_IS = "as it is"
_INTERRUPTED = 130
_PACKAGES = ("jax", "jaxlib", "flax", "optax", "sacrebleu")


@dataclass(frozen=True)
class Trial:
    """A variant trained with one seed.

    Attributes:
      values: of the configuration, nested.
    """

    variant: str
    seed: int
    values: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name of its directory."""
        return re.sub(r"[^\w.=,+-]+", "_", f"{self.variant},seed={self.seed}")


class Results:
    """What has been measured, kept in results.json after every slice.

    Args:
      settings: what the figures depend on.

    Raises:
      OutputError: the file is of other settings.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]):
        self._path, self._settings = path, dict(settings)
        self._points: dict[str, list[dict[str, Any]]] = {}
        self.failures: dict[str, str] = {}
        if not path.exists():
            return
        saved = read_json_object(path, advice="Choose another --out.")
        before = saved.get("settings", {})
        if other := sorted(k for k in settings if before.get(k) != settings[k]):
            raise OutputError(
                f"{path} must be of the same benchmark, and differs in "
                f"{', '.join(other)}. Choose another --out, or pass the same flags."
            )
        self._points, self.failures = saved["points"], saved["failures"]

    def points(self, trial: Trial) -> list[Point]:
        """Returns what a trial has reached, in the order of its steps."""
        return [Point(**point) for point in self._points.get(trial.name, [])]

    def add(self, trial: Trial, point: Point) -> None:
        """Adds the end of a slice."""
        self._points.setdefault(trial.name, []).append(point._asdict())
        self.save()

    def fail(self, trial: Trial, reason: str) -> None:
        """Ends a trial whose training has failed."""
        self.failures[trial.name] = reason
        self.save()

    def save(self, **more: Any) -> None:
        """Writes the file."""
        content = {
            "settings": self._settings,
            "points": self._points,
            "failures": self.failures,
            **more,
        }
        atomic_write(self._path, json.dumps(content, indent=1) + "\n")


def make_trials(options: argparse.Namespace) -> list[Trial]:
    """Makes a trial of each variant and seed.

    Raises:
      ConfigError: a key or a value is not valid.
    """
    base = t2t_jax.load_config(options.config).to_dict()
    fixed = {
        "steps": options.steps,
        "evaluation.every_steps": options.every,
        "evaluation.patience": 0,
        "checkpoint.every_steps": 0,
        "checkpoint.every_epochs": 0,
        "checkpoint.every_minutes": 0.0,
        "checkpoint.keep": 1,
    }
    common = {}
    for text in options.set:
        common.update(changes_of(text))
    trials = []
    for variant in dict.fromkeys(["", *options.variant]):
        for seed in options.seeds:
            own = {**common, **changes_of(variant), **fixed, "seed": seed}
            values = changed(base, own)
            parse(values)  # All errors, before anything is trained.
            trials.append(Trial(variant or _AS_IT_IS, seed, values))
    return trials


def changes_of(text: str) -> dict[str, Any]:
    """Reads KEY=VALUE,…; text of corpora may contain commas itself.

    Example:
      >>> changes_of("data.dev=text:a.en,a.de,model.d_ff=64")
      {'data.dev': 'text:a.en,a.de', 'model.d_ff': 64}
    """
    pairs = re.split(r",(?=[a-z_]+(?:\.[a-z0-9_]+)?=)", text) if text else []
    found: dict[str, Any] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"{pair!r} must be KEY=VALUE. Change --variant or --set.")
        found[key] = value if ":" in value or "/" in value else changes(pair)[key]
    return found


def changed(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Returns nested values with some of them changed, by `section.key`.

    Example:
      >>> changed({"seed": 0, "model": {"d_ff": 8}}, {"model.d_ff": 16})
      {'seed': 0, 'model': {'d_ff': 16}}
    """
    values = {k: dict(v) if isinstance(v, Mapping) else v for k, v in base.items()}
    for key, value in own.items():
        section, _, name = key.rpartition(".")
        (values.setdefault(section, {}) if section else values)[name] = value
    return values


def next_slice(points: Sequence[Point], options: argparse.Namespace) -> int:
    """Returns the step to which a trial is trained next; 0 if it has ended."""
    if not points:
        return min(options.every, options.steps)
    last, best = points[-1], max(point.bleu for point in points)
    has_ended = (
        last.step >= options.steps
        or (options.minutes and last.seconds >= 60 * options.minutes)
        or (options.targets and best >= max(options.targets))
    )
    return 0 if has_ended else min(last.step + options.every, options.steps)


def slices(
    trials: Sequence[Trial], results: Results, options: argparse.Namespace
) -> Iterator[tuple[Trial, int]]:
    """Yields the trial that is furthest behind, and the step of its next slice.

    Among equals another one begins each time.
    """
    while True:
        waiting = [
            (step, (number + -step // options.every) % len(trials), trial)
            for number, trial in enumerate(trials)
            if trial.name not in results.failures
            and (step := next_slice(results.points(trial), options))
        ]
        if not waiting:
            return
        step, _, trial = min(waiting, key=lambda one: one[:2])
        yield trial, step


def train_slice(trial: Trial, step: int, folder: Path) -> Point:
    """Trains a trial to a step, and reads its time and its scores.

    Raises:
      DivergedError: the loss is not finite any more.
      UserError: as `t2t_jax.train`.
    """
    t2t_jax.train(changed(trial.values, {"steps": step}), folder, quiet=True)
    text = (folder / "metrics.jsonl").read_text(encoding="utf-8")
    records = {
        record["kind"]: record
        for record in map(json.loads, text.splitlines())
        if record["step"] == step
    }
    scores, final = records["eval"], records["final"]
    return Point(
        step=step,
        seconds=60 * final["minutes"],
        bleu=scores.get("bleu", 0.0),  # none while translations do not end
        evaluation_seconds=scores["seconds"],
    )


def measure(
    trials: Sequence[Trial], results: Results, options: argparse.Namespace
) -> None:
    """Trains all trials in turns."""
    for trial, step in slices(trials, results, options):
        try:
            point = train_slice(trial, step, options.out / "runs" / trial.name)
        except DivergedError as error:
            results.fail(trial, str(error))
            print(f"{trial.name}: ended: {error}", file=sys.stderr, flush=True)
            continue
        results.add(trial, point)
        print(
            f"{trial.name}: step {step:,}, {point.seconds:.1f} s, BLEU "
            f"{point.bleu:.2f}",
            file=sys.stderr,
            flush=True,
        )


def write_report(
    trials: Sequence[Trial], results: Results, options: argparse.Namespace
) -> dict[str, Any]:
    """Writes rows.md, curves.png and a summary in results.json, which it returns."""
    import jax

    curves = [Curve(t.variant, t.seed, results.points(t)) for t in trials]
    summary = summarise(curves, options.targets)
    device = jax.devices()[0]
    machine = {
        "devices": f"{jax.device_count()} x {device.device_kind}",
        "cores": len(os.sched_getaffinity(0)),
        "versions": installed_versions(_PACKAGES),
    }
    results.save(summary=summary, machine=machine)
    atomic_write(options.out / "rows.md", markdown(summary, options.targets))
    try:
        image = plot(curves, options.targets)
    except UserError as error:
        print(f"no curves.png: {error}", file=sys.stderr)
    else:
        atomic_write(options.out / "curves.png", image)
    return summary


def _numbers(kind: type) -> Any:
    def parse_numbers(text: str) -> list[Any]:
        return [kind(number) for number in text.split(",") if number]

    return parse_numbers


def _positive(text: str) -> int:
    if int(text) < 1:
        raise ValueError
    return int(text)


def read_options(argv: Sequence[str] | None) -> argparse.Namespace:
    """Parses the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, help="directory of results and runs")
    add("--config", default="multi30k_en_de", help="a config file, or its name")
    add(
        *("--variant",),
        action="append",
        default=[],
        metavar="KEY=VALUE,…",
        help="the configuration with keys changed; may be given several times",
    )
    add(
        *("--set",),
        action="append",
        default=[],
        metavar="KEY=VALUE,…",
        help="keys changed in all variants",
    )
    add("--seeds", type=_numbers(int), default=[0], help="such as 0,1,2")
    add("--targets", type=_numbers(float), default=[], help="BLEU, such as 30,34")
    add("--steps", type=_positive, default=8_000, help="budget of each run")
    add("--minutes", type=float, default=0.0, help="of training, of each run")
    add("--every", type=_positive, default=250, help="steps between evaluations")
    add("--json", action="store_true", help="print the summary as JSON")
    options = parser.parse_args(argv)
    if not options.seeds or len(set(options.seeds)) < len(options.seeds):
        parser.error("--seeds must be different integers, at least one")
    return options


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the benchmark, or continues it; returns the exit code."""
    options = read_options(argv)
    try:
        trials = make_trials(options)
        settings = {
            name: getattr(options, name)
            for name in ("config", "set", "seeds", "variant", "every")
        }
        (options.out / "runs").mkdir(parents=True, exist_ok=True)
        results = Results(options.out / "results.json", settings)
        measure(trials, results, options)
        summary = write_report(trials, results, options)
    except KeyboardInterrupt:
        print("Interrupted. The same command goes on.", file=sys.stderr)
        return _INTERRUPTED
    except UserError as error:
        for problem in error.problems:
            print(f"error: {problem}", file=sys.stderr)
        return error.exit_code
    except OSError as error:
        print(f"error: {error}. Choose another --out.", file=sys.stderr)
        return OutputError.exit_code
    print(json.dumps(summary) if options.json else markdown(summary, options.targets))
    return 0


if __name__ == "__main__":
    sys.exit(main())
