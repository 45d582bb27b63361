import io

import pytest

from t2t_jax.cli.console.describe_report import sections
from t2t_jax.cli.console.tables import show
from t2t_jax.config import Config, to_dict
from t2t_jax.description.table3 import paper_result

TOLD = {
    "config": to_dict(Config()),
    "row": "",
    "differences": [
        {"key": "steps", "base": 100_000, "here": 7},
        {"key": "data.train", "base": "", "here": "text:[a],b"},
        {"key": "model.tying", "base": "all", "here": "none"},
    ],
    "parsers": [],
    "variations": [{"key": "steps", "base": 100_000, "here": 7, "row": ""}],
    "exact": [{"name": "loss", "paper": "cross-entropy"}],
    "departures": [
        {"name": "scores", "paper": "tokenized", "here": "raw", "key": ""},
        {"name": "tying", "paper": "one", "here": "none", "key": "model.tying"},
    ],
    "parameters": {"embedding": 3, "encoder": 5_000, "decoder": 7, "total": 5_010},
    "parameters_by_kind": {
        "embedding": {"embedding": 3},
        "encoder": {"attention": 4_988, "norms": 12},
        "decoder": {"norms": 7},
    },
    "passes": 1,
    "flops_per_step": 4e9,
    "flops_by_part": {"scores": 1e9, "feed_forward": 3e9},
    "compiler_flops_per_step": 4.4e9,
    "flops_per_token_pair": {"sentence_length": 28, "flops": 381.04e6},
    "learning_rate": {"peak": 7e-4, "step": 4_000},
    "batch": {
        "slots_per_side": 1_020,
        "rows": 60,
        "row_length": 17,
        "devices": 3,
        "mesh": {"data": 3, "fsdp": 1, "tensor": 1},
        "rows_per_device": 20,
        "empty_rows": 1,
        "layout": "packed",
        "shorter_rows": [],
        "micro_batches": 1,
        "compute_dtype": "bfloat16",
        "remat": False,
    },
    "memory": {
        "platform": "tpu",
        "parameters": 20_040,
        "optimizer": 40_080,
        "ema": 0,
        "gradients": 20_040,
        "batch": 17,
        "compiler": {
            "arguments": 60_137,
            "temporaries": 3.8699e9,
            "outputs": 5,
            "aliased": 5,
            "total": 4.6e9,
        },
    },
    "checkpoint_bytes": 60_120,
    "checkpoints_bytes": 300_600,
    "steps": 7,
    "epochs": 2.345,
    "training_flops": 2.8e10,
    "paper_costs": None,
    "paper_results": None,
    "estimate": None,
    "data": {"train": {"spec": "text:[a],b", "pairs": 4_500, "note": ""}},
    "data_notes": ["c: no such file."],
}


def report(**changed):
    """Writes the report and puts one space where there are several."""
    file = io.StringIO()
    show(sections({**TOLD, **changed}), file=file)
    return [" ".join(line.split()) for line in file.getvalue().split("\n")]


@pytest.mark.parametrize(
    "line",
    [
        "steps=100,000 seed=0 init_from='' architecture=transformer",
        "steps 100,000 7 not in the paper",
        "model.tying all none",
        "data.train '' text:[a],b",
        "encoder - 4,988 12 5,000",
        "total 3 4,988 19 5,010",
        "feed-forward 3.000 75.0%",
        "by the compiler 4.400 110.0%",
        "A pair of tokens, in sentences of 28: 381.0 MFLOP.",
        "7 steps: 2.80e+10 FLOP.",
        "token slots 1,020 on each side",
        "shape 60 rows of 17, 1 of them empty to shard them evenly",
        "devices 3, rows of each: 20",
        "micro-batches 1: all rows of a device at once",
        "activations bfloat16",
        "peak learning rate 7.000e-04 at step 4,000",
        "batch 17 B this device's rows",
        "temporaries 3.870 GB XLA for tpu: activations, gradients",
        "a checkpoint 60.12 kB on disk",
        "epochs about 2.3",
        "train 4,500 pairs text:[a],b",
        "c: no such file.",
    ],
)
def test_what_is_told_is_said(line):
    assert line in report()


def test_the_other_model_is_not_shown():
    assert not any(line.startswith("rnn ") for line in report())
    lines = report(config={**TOLD["config"], "architecture": "rnn"})
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
            ["parameters 0.0 million 65 million", "perplexity - 4.92 per subword"],
        ),
        ("base", ["BLEU - 27.3 newstest2014, English to German"]),
        ("A_h1", ["parameters 0.0 million 65 million those of base"]),
        ("En-Fr_big", ["parameters 0.0 million not printed"]),
        ("base", ["This configuration departs in optimizer.beta2."]),
    ],
)
def test_the_figures_that_the_paper_prints_stand_beside_the_counted_ones(row, lines):
    printed = {**paper_result(row), "departs_here": ["optimizer.beta2"]}
    assert set(lines) <= set(report(paper_results=printed))
    assert "Results in the paper" not in report()


def test_the_mesh_micro_batches_and_remat_are_said():
    mesh = {"data": 2, "fsdp": 3, "tensor": 5}
    batch = TOLD["batch"] | {"devices": 30, "mesh": mesh, "remat": True}
    lines = report(batch=batch | {"micro_batches": 4})
    assert "devices 30 (data 2 x fsdp 3 x tensor 5), rows of each: 20" in lines
    assert "micro-batches 4" in lines
    assert "activations bfloat16, computed twice (model.remat)" in lines
    assert "The compiler counts the body of a loop only once." in lines
    cpu = report(batch=batch, memory=TOLD["memory"] | {"platform": "cpu"})
    assert "saves no memory on a CPU" in " ".join(cpu)
    auto = report(batch=batch | {"micro_batches": 0})
    assert any(line.startswith("micro-batches auto: as few as fit") for line in auto)


def test_what_is_exact_and_what_is_not_are_three_groups():
    wanted = [
        "Exactly the paper's",
        "loss cross-entropy",
        "Not the paper's by default",
        "scores paper tokenized",
        "Not the paper's by choice of this configuration",
        "tying paper one",
        "model.tying here none",
    ]
    assert [line for line in report() if line in wanted] == wanted
    assert "Nothing." in report(departures=[])
    assert "Not available here; nothing above depends on it." in report(data=None)
