import pytest

from t2t_jax.errors import UserError
from t2t_jax.evaluation.plots import figure as canvas

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


def test_a_single_window_can_be_drawn():
    assert canvas.png(drawn(70)).startswith(b"\x89PNG")


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    from t2t_jax.evaluation.plots.curves import plot_averages

    monkeypatch.setattr(canvas, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"pip install -e '.\[plots\]'"):
        plot_averages([1], averages=[2.0], singles=[3.0], last=5)
