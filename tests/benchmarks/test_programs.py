"""The programs that compare with others, in a contest of ours with nobody.

Seen to fail: without `require_installed`, the checks of `_check_text` and of unknown
peers, the shape that a device decides, and with `"ours"` left among the peers.
"""

import json
import math
import sys

import decode_options
import pytest
import scaling
import step_figures
import step_options

from t2t_jax.devices.processor import CPU_DTYPE
from t2t_jax.devices.topology import parse_topology
from t2t_jax.model.counting import count_parameters
from tests.docs.commands import run
from tests.integration.tiny import ROOT


def measured(script, *flags):
    """Returns the report that a program writes as JSON."""
    argv = [f"benchmarks/{script}.py", "--size=tiny", *flags, "--json"]
    return json.loads(run([sys.executable, *argv], ROOT, seconds=300).stdout)


@pytest.mark.parametrize(
    ("parse", "flag", "reason"),
    [
        (decode_options, "--workdir=run", "--workdir and --source need one another"),
        (decode_options, "--peer=fairseq", "known are none, hf_marian, ctranslate2,"),
        (step_options, "--pairs=0", "0 must be at least 1"),
        (step_options, "--peer=hf_marian", "pip install 't2t-jax[bench]'"),
    ],
)
def test_what_cannot_be_measured_is_refused(parse, flag, reason, capsys, monkeypatch):
    monkeypatch.setattr(step_options, "find_spec", lambda name: None)
    with pytest.raises(SystemExit):
        parse.parse_arguments([flag])
    assert reason in capsys.readouterr().err


def test_the_sizes_are_those_that_the_figures_are_of():
    for name, parameters in (("small", 7_568_384), ("base", 63_045_632)):
        assert count_parameters(step_options.SIZES[name]).total == parameters
    flags = ["--size=big", "--device=gpu", "--peer=none"]
    options = step_options.parse_arguments(flags)
    assert (options.pairs, options.length) == step_options.GPU_SHAPE == (768, 32)


def test_peers_run_in_bfloat16_too_where_ours_does_and_the_faster_counts(monkeypatch):
    monkeypatch.setattr(step_options, "find_spec", lambda name: name)
    chosen = {}
    for dtype in ("float32", "bfloat16"):
        monkeypatch.setenv(CPU_DTYPE, dtype)
        chosen[dtype] = step_options.parse_arguments(["--peer=torch,marian"]).peer
    assert chosen["float32"] == ("torch", "marian")
    assert chosen["bfloat16"] == ("torch", "marian", "torch_bfloat16")
    rates = {"torch": 2.0, "marian": 9.0, "torch_bfloat16": 4.0}
    peers = {name: {"target_tokens_per_second": rate} for name, rate in rates.items()}
    for some in (peers, dict(reversed(peers.items()))):
        report = step_figures.compare({"target_tokens_per_second": 8.0}, some)
        assert (report["ratio"], report["peer"]) == (2.0, peers["torch_bfloat16"])
    assert step_figures.compare({}, {})["ratio"] is None


@pytest.mark.parametrize("target", ["gpu:h100", "tpu:v5e", "tpu:v6e"])
def test_every_cell_of_the_table_of_many_devices_is_a_topology(target):
    for devices in (1, 8, 64, 256):
        named = parse_topology(scaling.topology(target, devices))
        assert math.prod(named.shape) == devices


def test_our_step_is_timed_and_so_is_a_variant():
    rounds = ["--peer=none", "--rounds=3", "--steps=2"]
    report = measured("train_step", *rounds, "--variant=model.d_ff=32")
    ours, (variant,) = report["ours"], report["variants"].values()
    assert len(ours["rounds_ms"]) == 3
    assert ours["parameters"] == count_parameters(step_options.SIZES["tiny"]).total
    # Two networks, of 64 and of 32: two matrices and the inner bias.
    assert ours["parameters"] - variant["parameters"] == 2 * (2 * 32 * 32 + 32)
    assert min(x["target_tokens_per_second"] for x in (ours, variant)) > 0


def test_our_search_is_timed_for_each_size_of_batches():
    sizes = ["--rounds=3", "--seconds=0.1", "--batches=4,9", "--cuts=4,9"]
    report = measured("decode", *sizes, "--peer=ours_bfloat16")
    ours, low = report["ours"], report["peers"]["ours_bfloat16"]
    assert set(ours["batches"]["9"]["tried"]) == {"4 x 1", "9 x 1"}
    assert ours["tokens_per_second"] == pytest.approx(8 * ours["sentences_per_second"])
    assert (ours["dtype"], low["dtype"]) == ("float32", "bfloat16")
    assert min(x["sentences_per_second"] for x in (ours, low)) > 0
