"""The report of a description; `compiled` is what the compiler would have said."""

import functools
import io
from unittest import mock

import jax
import pytest

from t2t_jax.cli.console.describe_report import sections
from t2t_jax.cli.console.tables import show
from t2t_jax.config import parse
from t2t_jax.devices.sharding.mesh import make_mesh
from t2t_jax.run.description import summary
from t2t_jax.run.description.costs import Compiled, Memory
from t2t_jax.run.description.table3 import paper_result

CONFIG = {
    "steps": 7,
    "data": {"train": "text:[a],b", "dev": "c"},
    "model": {"tying": "none"},
}
DATA = {
    "train": {"spec": "text:[a],b", "pairs": 4_500, "note": ""},
    "dev": {"spec": "c", "pairs": None, "note": "c: no such file."},
}


@functools.cache
def told():
    """Describes the base model with three matrices of embeddings, for one device."""
    memory = Memory(arguments=60_137, temporaries=3_869_900_000, outputs=5, aliased=5)
    compiled = Compiled(flops=4.4e12, memory=memory, platform="tpu")
    with mock.patch.object(summary, "compile_costs", return_value=compiled):
        mesh = make_mesh(jax.devices()[:1])
        return summary.describe(parse(CONFIG), mesh=mesh, data=DATA)


def report(**changed):
    """Writes the report and puts one space where there are several."""
    file = io.StringIO()
    show(sections({**told(), **changed}), file=file)
    return [" ".join(line.split()) for line in file.getvalue().split("\n")]


@pytest.mark.parametrize(
    "line",
    [
        "steps=7 seed=0 init_from='' architecture=transformer",
        "steps 100,000 7 not in the paper",
        "model.tying all none",
        "data.train '' text:[a],b",
        # 3 x 37,000 x 512.
        "embedding 56,832,000 - - - 56,832,000",
        "total 56,832,000 18,874,368 25,196,544 30,720 100,933,632",
        "logits 2.793 28.0%",
        "in all 9.983 100.0%",
        "by the compiler 4.400 44.1%",
        "A pair of tokens, in sentences of 28: 381.0 MFLOP.",
        "7 steps: 6.99e+13 FLOP.",
        "token slots 24,576 on each side",
        "shape 96 rows of 256",
        "devices 1, rows of each: 96",
        "micro-batches 1: all rows of a device at once",
        "activations float32",
        # 512^-0.5 x 7 x 4,000^-1.5.
        "peak learning rate 1.223e-06 at step 7",
        # 8 bytes a parameter.
        "optimizer 807.5 MB moments of adam",
        "temporaries 3.870 GB XLA for tpu: activations, gradients",
        "a checkpoint 1.211 GB on disk",
        "train 4,500 pairs text:[a],b",
        "c: no such file.",
    ],
)
def test_what_is_told_is_said(line):
    assert line in report()


def test_the_other_model_is_not_shown():
    assert not any(line.startswith("rnn ") for line in report())
    lines = report(config={**told()["config"], "architecture": "rnn"})
    assert any(line.startswith("rnn ") for line in lines)
    assert not any(line.startswith("model num_layers") for line in lines)


def test_base_rows_and_parsers_have_their_own_titles():
    assert "The paper's base model" in report(row="base", variations=[])
    assert "Row D_drop0 of Table 3" in report(row="D_drop0")
    assert "Row En-Fr_big of Table 2" in report(row="En-Fr_big")
    assert "Varied in the paper" in report()
    assert "Other changes from base" in report()
    printed = [{"name": "WSJ only", "tokens": 16_000, "f1": 91.3}]
    lines = report(parsers=printed, variations=[])
    assert any(line.split()[-2:] == ["F1", "91.3"] for line in lines)
    assert "Changes from §6.3" in lines


def test_an_estimate_says_that_it_is_one():
    estimate = {"hours": 12.345, "devices": 3, "peak_tflops": 312.0, "mfu": 0.4}
    lines = report(estimate={**estimate, "compute_dtype": "bfloat16"})
    hours = "estimate, not measured about 12.35 hours on 3 x 312 TFLOP/s"
    assert hours in lines
    assert any("--peak_tflops" in line for line in report())


@pytest.mark.parametrize(
    ("row", "lines"),
    [
        (
            "base",
            ["parameters 100.9 million 65 million", "perplexity - 4.92 per subword"],
        ),
        ("base", ["BLEU - 27.3 newstest2014, English to German"]),
        ("A_h1", ["parameters 100.9 million 65 million those of base"]),
        ("En-Fr_big", ["parameters 100.9 million not printed"]),
        ("base", ["This configuration departs in optimizer.beta2."]),
    ],
)
def test_the_figures_that_the_paper_prints_stand_beside_the_counted_ones(row, lines):
    printed = {**paper_result(row), "departs_here": ["optimizer.beta2"]}
    assert set(lines) <= set(report(paper_results=printed))
    assert "Results in the paper" not in report()


def test_the_mesh_micro_batches_and_remat_are_said():
    mesh = {"data": 2, "fsdp": 3, "tensor": 5}
    batch = told()["batch"] | {"devices": 30, "mesh": mesh, "remat": True}
    lines = report(batch=batch | {"micro_batches": 4, "empty_rows": 1})
    assert "devices 30 (data 2 x fsdp 3 x tensor 5), rows of each: 96" in lines
    assert "micro-batches 4" in lines
    assert "shape 96 rows of 256, 1 of them empty to shard them evenly" in lines
    assert "activations float32, computed twice (model.remat)" in lines
    assert "The compiler counts the body of a loop only once." in lines
    cpu = report(batch=batch, memory=told()["memory"] | {"platform": "cpu"})
    assert "saves no memory on a CPU" in " ".join(cpu)
    auto = report(batch=batch | {"micro_batches": 0})
    assert any(line.startswith("micro-batches auto: as few as fit") for line in auto)


def test_what_is_exact_and_what_is_not_are_three_groups():
    wanted = [
        "Exactly the paper's",
        "positions sinusoids (§3.5), or learned (Table 3 (E))",
        "Not the paper's by default",
        "pad and bos paper not mentioned (§6.1)",
        "here never generated",
        "Not the paper's by choice of this configuration",
        "model.tying here model.tying=none",
    ]
    assert [line for line in report() if line in wanted] == wanted
    assert "Nothing." in report(departures=[])
    assert "Not available here; nothing above depends on it." in report(data=None)
