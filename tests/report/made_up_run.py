"""A run whose files are written by hand, and whose text is as hostile as it can be."""

import json
import math

from t2t_jax.config import Config
from t2t_jax.evaluation.evaluator import Evaluator
from t2t_jax.run.dev_outputs import DevOutputs
from t2t_jax.run.workdir import Workdir

HOSTILE = "<script>alert(1)</script><!-- \u2028 </style> \u202e ' \" & \x00 \ud800 ]]>"
SOURCES = ["Ein Hund bellt.", HOSTILE, "Zwei Katzen schlafen gern sehr lange."]
REFERENCES = ["A dog barks.", HOSTILE, "Two cats like to sleep for very long."]


def train_record(step, *, every=10, **changed):
    """A record of training; its loss falls as 1/sqrt(step)."""
    nll = 7.0 / math.sqrt(step)
    clock = f"{step // 60 % 60:02}:{step % 60:02}"
    return {
        **{"step": step, "kind": "train", "loss": nll + 1.0, "nll": nll},
        **{"perplexity": math.exp(nll), "accuracy": 0.5, "padding_fraction": 0.07},
        **{"target_tokens": 1_300 * every, "target_tokens_per_second": 6_500.0},
        **{"gradient_norm": 1.1, "skipped": 0, "epoch": 0, "batch": step - 1},
        **{"learning_rate": 1e-4 * step, "time": f"2026-11-22T10:{clock}Z"},
        "elapsed": float(step),
        **changed,
    }


def eval_record(step, bleu, **changed):
    """A record of an evaluation."""
    return {
        **{"step": step, "kind": "eval", "loss": 3.0, "nll": 2.0, "perplexity": 7.389},
        **{"bleu": bleu, "chrf": bleu + 20, "bleu_signature": "nrefs:1|made:up"},
        **{"sentences": 3, "unfinished": 0, "seconds": 5.0},
        **{"time": "2026-11-22T10:32:00Z", "elapsed": 60.0},
        **changed,
    }


def records(steps=100):
    """The records of a run of so many steps: training, two evaluations, the end."""
    train = [train_record(step) for step in range(10, steps + 1, 10)]
    scores = [eval_record(steps // 2, 11.25), eval_record(steps, 17.5)]
    final = {"step": steps, "kind": "final", "best_bleu": 17.5, "minutes": 0.3}
    return [*train, *scores, final]


def _corpus(spec):
    reasons = ("empty", "too_long", "ratio", "copies", "duplicates")
    sides = {"source": 13, "target": 17}
    example = {"line": 3, "corpus": spec, "source": HOSTILE, "target": "B"}
    return {
        "spec": spec,
        "fingerprint": "ab" * 32,
        "counts": {"read": 11, "kept": 7, **dict.fromkeys(reasons, 0), "too_long": 4},
        "tokens": sides,
        "mean_length": {"source": 1.9, "target": 2.4},
        "unknown_rate": {"source": 0.0, "target": 0.25},
        "length_histogram": {"width": 2, "source": [3, 4], "target": [2, 5]},
        "examples": {**dict.fromkeys(reasons, ()), "too_long": [example]},
    }


def data_json():
    """The content of data.json, with a leak."""
    leak = {"pairs": 19, "copies": 0, "source": 3, "target": 2, "both": 1}
    return {
        "vocabulary": {"size": 150, "fingerprint": "cd" * 32},
        "train": {**_corpus(f"text:{HOSTILE}"), "copies": {}},
        "dev": _corpus("tsv:dev"),
        "leaks": {"tsv:test": {**leak, "examples": []}},
    }


def write_records(folder, records):
    """Writes metrics.jsonl."""
    lines = "".join(f"{json.dumps(record)}\n" for record in records)
    (folder / "metrics.jsonl").write_text(lines, encoding="utf-8")


def formatted(pairs, translations):
    """Formats samples as the evaluator does."""
    evaluator = Evaluator(sums=None, batches=None, translate=None, pairs=pairs)
    return evaluator.samples(translations, len(pairs))


def write_run(folder, *, steps=100, config=None, hypotheses=None):
    """Writes a complete run without checkpoints; returns its workdir."""
    folder.mkdir()
    workdir = Workdir(folder)
    workdir.write_config(config or Config(steps=steps))
    write_records(folder, records(steps))
    workdir.write_json("data.json", data_json())
    for step in (steps // 2, steps):
        texts = hypotheses or ["A dog barks.", HOSTILE, f"Two cats sleep {step}."]
        outputs, sources, references = (
            [text.replace("\ud800", "?") for text in side]
            for side in (texts, SOURCES, REFERENCES)
        )
        pairs = list(zip(sources, references, strict=True))
        workdir.write_samples(step, formatted(pairs, outputs) + "\n")
        DevOutputs(folder).write(step, outputs, sources=sources, references=references)
    return workdir
