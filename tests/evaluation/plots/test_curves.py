import math

import pytest
from numpy.testing import assert_allclose

from t2t_jax.errors import UserError
from t2t_jax.evaluation.plots import figure as canvas
from t2t_jax.evaluation.plots.curves import plot_positions, plot_schedule
from t2t_jax.evaluation.plots.figure import render_png

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


def test_both_curves_run_over_the_newest_steps():
    found = curves(drawn(*STEPS))
    assert found["mean of 3"] == [[30, 11], [40, 13.5], [50, 13.5], [60, 12]]
    assert found["newest checkpoint"] == [[30, 9], [40, 10], [50, 12], [60, 14]]


def test_of_equally_good_means_the_newest_is_marked_with_its_bleu():
    figure = drawn(*STEPS)
    assert curves(figure)["best mean"] == [[50, 13.5]]
    assert [text.get_text() for text in figure.axes[0].texts] == ["13.50"]


def test_the_axes_say_what_they_are():
    (axes,) = drawn(*STEPS).axes
    assert "optimizer step" in axes.get_xlabel()
    assert axes.get_ylabel() == "BLEU"
    names = {text.get_text() for text in axes.get_legend().get_texts()}
    assert names == {"mean of 3", "newest checkpoint", "best mean"}


def test_a_single_window_can_be_plotted():
    assert canvas.render_png(drawn(70)).startswith(b"\x89PNG")


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    from t2t_jax.evaluation.plots.curves import plot_averages

    monkeypatch.setattr(canvas, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install 't2t-jax\[plots\]'"):
        plot_averages([1], averages=[2.0], singles=[3.0], last=5)


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


def test_the_base_model_s_curve_is_in_both_panels():
    left, right = plot_schedule(50).axes
    base = "d_model 512, warm-up 4,000"
    assert base in [line.get_label() for line in left.lines]
    assert base in [line.get_label() for line in right.lines]


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


def test_each_pair_of_curves_is_labelled_with_its_dimensions_and_period():
    figure = plot_positions(length=13, d_model=32)
    sine, cosine = figure.axes[1].lines[:2]
    period = 2 * math.pi * 10_000 ** (4 / 32)
    assert sine.get_label() == f"dimensions 4 and 5: period {period:.0f}"
    angles = [2 * math.pi * position / period for position in range(13)]
    assert_allclose(sine.get_ydata(), [math.sin(a) for a in angles], atol=1e-6)
    assert_allclose(cosine.get_ydata(), [math.cos(a) for a in angles], atol=1e-6)


@pytest.mark.parametrize("draw", [plot_schedule, plot_positions])
def test_both_are_pictures(draw):
    assert render_png(draw()).startswith(b"\x89PNG")
