"""The arithmetic of `decode.py`.

Seen to fail: with the mean for the median, with the rate of the first batch for that of
the largest, with ratios upside down, with empty lines among the short ones, and with
the first of several single lines among those of a warm process.
"""

import pytest
from decode_figures import (
    at_headline,
    batch_figures,
    compared,
    latency_figures,
    short_lines,
    text_figures,
)


def test_a_rate_is_that_of_the_median_round_and_latency_of_the_median_call():
    rounds = [[1.0, 3.0], [2.0, 4.0], [0.5, 0.5]]
    assert batch_figures(rounds, rows=6, length=7) == {
        "sentences_per_second": 3.0,
        "best_sentences_per_second": 12.0,
        "tokens_per_second": 21.0,
        "call_ms": 1500.0,
        "calls_a_round": 2,
        "rounds": [3.0, 2.0, 12.0],
    }


def batch(rate, call_ms=1.0):
    return {
        "sentences_per_second": rate,
        "tokens_per_second": 2 * rate,
        "call_ms": call_ms,
    }


def test_the_largest_batch_stands_in_front_and_one_sentence_gives_the_latency():
    by_batch = {512: batch(9.0), 1: batch(3.0, call_ms=7.0)}
    figures = at_headline(by_batch)
    assert figures["sentences_per_second"] == 9.0
    assert figures["tokens_per_second"] == 18.0
    assert figures["latency_ms"] == 7.0
    assert figures["batches"] == {"512": batch(9.0), "1": batch(3.0, call_ms=7.0)}


def test_without_single_sentences_there_is_no_latency():
    assert "latency_ms" not in at_headline({32: batch(9.0)})


def test_ratios_are_ours_to_theirs_in_all_and_batch_by_batch():
    ours = at_headline({1: batch(6.0), 32: batch(30.0)})
    peer = at_headline({1: batch(12.0), 32: batch(20.0)})
    other = at_headline({1: batch(2.0), 32: batch(10.0)})
    report = compared(ours, {"x": peer, "y": other})
    assert (report["ours"], report["peer"]) == (ours, peer)
    assert report["peers"] == {"x": peer, "y": other}
    assert report["ratio"] == 1.5
    assert report["ratios"] == {"x": 1.5, "y": 3.0}
    assert report["ratios_by_batch"] == {
        "1": {"x": 0.5, "y": 3.0},
        "32": {"x": 1.5, "y": 3.0},
    }


def test_text_has_a_ratio_and_no_batches():
    ours, peer = {"sentences_per_second": 6.0}, {"sentences_per_second": 4.0}
    report = compared(ours, {"x": peer})
    assert report["ratio"] == 1.5
    assert "ratios_by_batch" not in report


def test_figures_of_text_are_of_the_median_round():
    texts = ["ein Hund bellt sehr laut"] * 8
    figures = text_figures([(2.0, 48), (4.0, 48), (1.0, 48)], texts, [])
    assert figures == {
        "sentences_per_second": 4.0,
        "best_sentences_per_second": 8.0,
        "tokens_per_second": 24.0,
        "tokens": 48,
        "rounds": [4.0, 2.0, 8.0],
    }
    scored = text_figures([(2.0, 48)], texts, texts)
    assert scored["bleu"] == pytest.approx(100.0)
    assert "nrefs:1" in scored["bleu_signature"]


def test_the_first_single_line_is_not_of_a_warm_process():
    assert latency_figures([9.0, 0.25, 1.0, 0.5]) == {
        "very_first_ms": 9000.0,
        "median_ms": 500.0,
        "longest_ms": 1000.0,
    }
    assert latency_figures([2.0])["median_ms"] == 2000.0


def test_short_lines_are_the_shortest_twenty_and_none_is_empty_or_twice():
    lines = ["x" * (1 + n % 30) for n in range(90)] + ["", "  "]
    assert short_lines(lines) == ["x" * n for n in range(1, 21)]
