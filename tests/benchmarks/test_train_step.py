"""The command line of the benchmark, and a contest of ours with nobody.

Seen to fail: without the check of `find_spec`, the check of unknown peers, the shape
that a device decides; with `"ours"` left among the peers in `measure`.
"""

import pytest
import step_options
from step_options import parse_arguments
from step_report import show

from t2t_jax.model.counting import count_parameters
from tests.benchmarks.program import measured


@pytest.fixture
def _peers_installed(monkeypatch):
    monkeypatch.setattr(step_options, "find_spec", lambda name: name)


@pytest.mark.usefixtures("_peers_installed")
@pytest.mark.parametrize(
    ("flags", "shape"),
    [
        ([], (128, 16)),
        (["--size=base"], (32, 28)),
        (["--size=big"], (8, 28)),
        (["--size=big", "--device=gpu"], (768, 32)),
        (["--size=base", "--pairs=5", "--length=7"], (5, 7)),
    ],
)
def test_size_and_device_decide_the_batch_unless_it_is_said(flags, shape):
    options = parse_arguments(flags)
    assert (options.pairs, options.length) == shape


def test_the_paper_s_batch_on_a_gpu_is_as_large_as_the_program_s():
    pairs, length = step_options.GPU_SHAPE
    assert pairs * length == 24_576


@pytest.mark.parametrize(
    ("size", "parameters"), [("small", 7_568_384), ("base", 63_045_632)]
)
def test_the_sizes_are_those_that_the_figures_are_of(size, parameters):
    assert count_parameters(step_options.SIZES[size]).total == parameters


@pytest.mark.usefixtures("_peers_installed")
@pytest.mark.parametrize(
    ("flag", "told"),
    [
        ("--peer=flax", "'flax' is not known; known are none, hf_marian, torch, m"),
        ("--pairs=0", "0 must be at least 1"),
        ("--rounds=-1", "-1 must be at least 1"),
        ("--size=huge", "invalid choice: 'huge'"),
    ],
)
def test_what_cannot_be_measured_is_refused(flag, told, capsys):
    with pytest.raises(SystemExit):
        parse_arguments([flag])
    assert told in capsys.readouterr().err


def test_a_peer_that_is_not_installed_is_refused_before_anything_runs(
    monkeypatch, capsys
):
    monkeypatch.setattr(step_options, "find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        parse_arguments(["--peer=hf_marian"])
    told = capsys.readouterr().err
    assert "--peer=hf_marian needs torch and transformers." in told
    assert "pip install 't2t-jax[bench]'" in told


def test_our_step_is_timed_and_so_are_its_parts_and_a_variant(capsys):
    report = measured(
        "train_step.py",
        "--size=tiny",
        "--peer=none",
        "--rounds=3",
        "--steps=2",
        "--variant=training.loss_chunks=2,model.d_ff=32",
    )
    ours = report["ours"]
    assert ours["target_tokens_per_second"] == pytest.approx(
        64 / (ours["median_ms"] / 1e3)
    )
    assert len(ours["rounds_ms"]) == 3
    assert ours["best_ms"] <= ours["median_ms"]
    assert ours["parameters"] == count_parameters(step_options.SIZES["tiny"]).total
    assert ours["compile_seconds"] > 0
    assert ours["peak_memory_mb"] > 50
    assert (report["peer"], report["ratio"]) == (None, None)
    (variant,) = report["variants"].values()
    assert variant["target_tokens_per_second"] > 0
    # Two networks, of 64 and of 32: two matrices and the inner bias.
    difference = ours["parameters"] - variant["parameters"]
    assert difference == 2 * (2 * 32 * 32 + 32)
    show(report)
    told = capsys.readouterr().out
    assert "8 pairs x 8 tokens" in told
    assert "with training.loss_chunks=2,model.d_ff=32: " in told


def test_our_loop_trains_on_text(capsys):
    report = measured(
        "train_step.py",
        "--size=tiny",
        "--vocabulary=150",
        "--peer=none",
        "--rounds=2",
        "--seconds=0.5",
        "--real=phrasebook:train:300",
        "--tokens=256",
    )
    ours = report["ours"]
    assert ours["steps"] >= 3
    assert ours["target_tokens"] > ours["steps"]
    assert ours["target_tokens_per_second"] > 0
    assert 250 < report["text"]["pairs"] <= 300
    show(report)
    assert "256 slots a side, our rows packed of 64" in capsys.readouterr().out
