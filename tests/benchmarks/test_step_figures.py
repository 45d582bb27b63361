"""The arithmetic between a stopwatch and a report.

Seen to fail: with the mean for the median, the best for the median in TFLOP/s, the
ratio upside down, source and target both counted, and without the least of one step.
"""

import pytest
from contest import Work
from step_figures import compare, machine, step_figures, steps_for, text_figures

from t2t_jax.model.config import TransformerConfig

BASE = Work(config=TransformerConfig(), device="cpu", rows=32, length=28)


def test_a_step_costs_what_the_formula_says():
    # 381.0 MFLOP for each pair of a source and a target token, at length 28.
    assert BASE.target_tokens == 896
    assert BASE.flops == pytest.approx(896 * 381.0e6, rel=1e-4)


def test_figures_are_of_the_median_round_and_say_what_the_best_was():
    figures = step_figures([2.0, 0.5, 1.0], BASE, peak_tflops=0.0)
    assert figures == {
        "median_ms": 1000.0,
        "best_ms": 500.0,
        "target_tokens_per_second": 896.0,
        "best_target_tokens_per_second": 1792.0,
        "tflops": pytest.approx(0.341376, rel=1e-4),
        "rounds_ms": [2000.0, 500.0, 1000.0],
    }


def test_the_share_of_a_peak_is_told_where_there_is_a_peak():
    figures = step_figures([1.0], BASE, peak_tflops=3.41376)
    assert figures["share_of_peak"] == pytest.approx(0.1, rel=1e-4)


@pytest.mark.parametrize(
    ("seconds", "step", "steps"), [(5.0, 1.0, 5), (5.0, 60.0, 1), (1.0, 0.4, 2)]
)
def test_a_round_is_whole_steps_and_at_least_one(seconds, step, steps):
    assert steps_for(seconds, step) == steps


def test_a_rate_on_text_is_the_median_of_those_of_the_rounds():
    figures = text_figures([(2.0, 200), (1.0, 400), (1.0, 150)])
    assert figures == {
        "target_tokens_per_second": 150.0,
        "best_target_tokens_per_second": 400.0,
        "overall_target_tokens_per_second": 187.5,
        "target_tokens": 750,
        "seconds": 4.0,
    }


def test_a_ratio_is_ours_to_theirs_and_the_first_peer_counts():
    ours, first, second = ({"target_tokens_per_second": x} for x in (6.0, 4.0, 3.0))
    assert compare(ours, {"x": first, "y": second}) == {
        "ours": ours,
        "peers": {"x": first, "y": second},
        "peer": first,
        "ratios": {"x": 1.5, "y": 2.0},
        "ratio": 1.5,
    }


def test_without_a_peer_there_is_no_ratio():
    report = compare({"target_tokens_per_second": 6.0}, {})
    assert (report["peer"], report["ratio"], report["peers"]) == (None, None, {})


def test_the_machine_is_described():
    told = machine()
    assert told["cpu"]
    assert told["cores"] >= 1
    assert told["load"] >= 0
    assert told["date"].endswith("+00:00")
