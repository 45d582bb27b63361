"""The command line of `decode.py`, and contests of ours with nobody.

Seen to fail: without the checks of `_check_text`, without the sorting of `_several`,
without `require_installed`, with a GPU for the JAX in a peer's process, and without the
dtype among the facts of either contestant.
"""

import decode_options
import pytest
import step_options
from decode_options import parse_arguments
from decode_report import show
from decode_work import DecodeWork

from t2t_jax.model.config import TransformerConfig
from t2t_jax.model.counting import count_parameters
from tests.benchmarks.program import measured
from tests.integration import tiny


@pytest.fixture
def _peers_installed(monkeypatch):
    monkeypatch.setattr(step_options, "find_spec", lambda name: name)


@pytest.mark.usefixtures("_peers_installed")
@pytest.mark.parametrize(
    ("flags", "length", "cuts"),
    [
        ([], 16, (32, 64, 128, 256)),
        (["--size=base", "--device=gpu"], 28, (128, 256, 512)),
        (["--size=base", "--length=7", "--cuts=5,3,5"], 7, (3, 5)),
    ],
)
def test_size_and_device_decide_what_is_not_said(flags, length, cuts):
    options = parse_arguments(flags)
    assert (options.length, options.cuts) == (length, cuts)
    assert options.batches == (1, 32, 512)


@pytest.mark.usefixtures("_peers_installed")
@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (["--workdir=run"], "--workdir and --source need one another"),
        (["--first_line"], "--first_line needs text: say --workdir and"),
        (["--peer=marian", "--device=gpu"], "--peer=marian computes on a CPU"),
        (["--peer=fairseq"], "known are none, hf_marian, ctranslate2, ctranslate2_"),
    ],
)
def test_what_makes_no_sense_is_refused(flags, told, capsys):
    with pytest.raises(SystemExit):
        parse_arguments(flags)
    assert told in capsys.readouterr().err


def test_every_peer_has_a_module_and_what_it_needs():
    from decode import MODULES

    kinds = {peer.removesuffix("_int8") for peer in decode_options.PEERS}
    assert {"ours", *kinds} == set(MODULES)


@pytest.mark.parametrize(
    ("device", "asked", "dtype"),
    [
        ("cpu", "auto", "float32"),
        ("gpu", "auto", "bfloat16"),
        ("gpu", "float32", "float32"),
    ],
)
def test_all_compute_in_the_dtype_of_the_device_unless_told(device, asked, dtype):
    config = TransformerConfig(compute_dtype=asked)
    work = DecodeWork(config=config, device=device, rows=1, length=1)
    assert work.dtype == dtype


def test_our_search_is_timed_for_each_size_of_batches(capsys):
    report = measured(
        "decode.py",
        "--size=tiny", "--peer=ours_bfloat16", "--rounds=3", "--seconds=0.1",
        "--batches=1,9", "--cuts=4,9",
    )  # fmt: skip
    ours = report["ours"]
    assert list(ours["batches"]) == ["1", "9"]
    largest = ours["batches"]["9"]
    assert len(largest["rounds"]) == 3
    assert set(largest["tried"]) == {"4 x 1", "9 x 1"}
    assert ours["sentences_per_second"] == largest["sentences_per_second"] > 0
    assert ours["tokens_per_second"] == pytest.approx(8 * ours["sentences_per_second"])
    assert ours["latency_ms"] == ours["batches"]["1"]["call_ms"] > 0
    assert largest["first_seconds"] > 0
    assert ours["parameters"] == count_parameters(step_options.SIZES["tiny"]).total
    assert ours["peak_memory_mb"] > 50
    low = report["peers"]["ours_bfloat16"]
    assert (ours["dtype"], low["dtype"]) == ("float32", "bfloat16")
    assert low["sentences_per_second"] > 0
    show(report)
    assert "outputs of 8 tokens, forced" in capsys.readouterr().out


def test_our_translator_is_timed_on_text(tmp_path, capsys):
    run = tmp_path / "run"
    trained = tiny.run(*tiny.arguments(run, steps=1, evaluation__bleu_sentences=0))
    assert trained.returncode == 0, trained.stderr
    source = tmp_path / "source"
    source.write_text("one\ntwo three\n\nfour five six\n", encoding="utf-8")
    report = measured(
        "decode.py",
        f"--workdir={run}", f"--source={source}", f"--reference={source}",
        "--peer=ours_bfloat16", "--rounds=2", "--first_line", "--beam_size=2",
    )  # fmt: skip
    ours, low = report["ours"], report["peers"]["ours_bfloat16"]
    assert (ours["dtype"], low["dtype"]) == ("float32", "bfloat16")
    assert report["lines"] == 4
    assert len(ours["rounds"]) == 2
    assert ours["sentences_per_second"] > 0
    assert 0 <= ours["bleu"] < 100
    # Three lines have something to say; none can be longer than itself and 5 more.
    assert ours["tokens"] >= 3
    assert ours["first_line"]["median_ms"] > 0
    show(report)
    assert "4 lines, translated freely" in capsys.readouterr().out
