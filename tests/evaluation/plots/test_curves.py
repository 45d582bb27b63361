import math

import pytest
from numpy.testing import assert_allclose

from t2t_jax.evaluation.plots.curves import plot_positions, plot_schedule

STEPS, AVERAGES, SINGLES = [30, 40, 50, 60], [11.0, 13.5, 13.5, 12.0], [9.0, 10, 12, 14]


def drawn(*steps):
    pytest.importorskip("matplotlib")
    from t2t_jax.evaluation.plots.curves import plot_averages

    n = len(steps)
    return plot_averages(steps, averages=AVERAGES[:n], singles=SINGLES[:n], last=3)


def curves(figure):
    """Returns each curve's points by its name in the legend."""
    (axes,) = figure.axes
    return {line.get_label(): line.get_xydata().tolist() for line in axes.lines}


def test_of_equally_good_means_the_newest_is_marked_with_its_bleu():
    figure = drawn(*STEPS)
    assert curves(figure)["best mean"] == [[50, 13.5]]
    assert [text.get_text() for text in figure.axes[0].texts] == ["13.50"]


def test_the_schedule_s_curves_are_equation_3():
    figure = plot_schedule(9_000)
    curves = {}
    for panel in figure.axes:
        assert panel.get_xlabel() == "optimizer step"
        curves.update({line.get_label(): line for line in panel.lines})
    assert figure.axes[0].get_ylabel() == "learning rate"
    assert set(curves) == {
        "d_model 256, warm-up 4,000",
        "d_model 512, warm-up 4,000",
        "d_model 1024, warm-up 4,000",
        "d_model 512, warm-up 2,000",
        "d_model 512, warm-up 8,000",
    }
    for name, line in curves.items():
        width, warmup = (
            int(part.split()[-1].replace(",", "")) for part in name.split(", ")
        )
        steps, rates = line.get_data()
        assert (steps[0], steps[-1]) == (1, 9_000)
        for step in (1, 2_000, 4_000, 9_000):
            rate = width**-0.5 * min(step**-0.5, step * warmup**-1.5)
            assert_allclose(rates[step - 1], rate, rtol=1e-6)  # float32


def test_positions_are_plotted_as_the_paper_writes_them():
    figure = plot_positions(length=11, d_model=34)
    whole, pairs, _ = figure.axes
    image = whole.images[0]
    assert image.get_array().shape == (34, 11)  # dimensions up, positions across
    assert image.get_clim() == (-1, 1)
    for position, dimension in [(0, 0), (7, 4), (10, 33)]:
        angle = position / 10_000 ** (dimension // 2 * 2 / 34)
        wave = math.cos if dimension % 2 else math.sin
        drawn = image.get_array()[dimension, position]
        assert_allclose(drawn, wave(angle), atol=1e-6)
    assert (whole.get_ylabel(), pairs.get_xlabel()) == ("dimension", "position")
