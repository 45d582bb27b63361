import math
import subprocess
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("matplotlib", reason="needs the extra plots")

from t2t_jax.errors import UserError
from t2t_jax.evaluation import plots
from t2t_jax.evaluation.plots import (
    label_of,
    plot_averages,
    plot_heat_maps,
    plot_lines,
    plot_positions,
    plot_schedule,
)

QUERIES = ["Zwei", "Männer", "$x$"]
KEYS = ["two", "m_e_n", "·s", ".", "</s>"]
# Five heads, Q = 3, K = 5; the last query of every head may not look at the last key.
WEIGHTS = np.random.default_rng(0).dirichlet(np.ones(5), size=(5, 3))
WEIGHTS[:, 2, 4] = 0.0
WEIGHTS[1, 0] = [0.9, 0.06, 0.04, 0.0, 0.0]


def heat_maps(heads=(0, 1, 3), weights=WEIGHTS, queries=QUERIES, keys=KEYS):
    return plot_heat_maps(
        weights, queries=queries, keys=keys, heads=heads, title="Cross"
    )


def lines(heads=(0, 1, 3), weights=WEIGHTS, queries=QUERIES, keys=KEYS):
    return plot_lines(weights, queries=queries, keys=keys, heads=heads, title="Cross")


def panels_of(figure):
    return [axes for axes in figure.axes if axes.images]


@pytest.mark.parametrize(
    ("piece", "label"),
    [
        ("▁Hund", "Hund"),
        ("chen", "·chen"),
        ("▁", "␣"),
        ("▁a▁b", "a␣b"),
    ],
)
def test_labels_show_where_words_begin(piece, label):
    assert label_of(piece) == label


def test_every_head_has_a_panel_that_holds_its_weights():
    figure = heat_maps()
    panels = panels_of(figure)
    assert [panel.get_title() for panel in panels] == ["head 0", "head 1", "head 3"]
    assert figure.get_suptitle() == "Cross"
    for panel, head in zip(panels, (0, 1, 3), strict=True):
        assert_array_equal(panel.images[0].get_array().filled(0.0), WEIGHTS[head])


def test_masked_keys_are_left_white():
    image = panels_of(heat_maps((0,)))[0].images[0]
    assert_array_equal(image.get_array().mask, WEIGHTS[0] == 0)
    assert image.get_array().mask[2, 4]


def test_a_line_joins_query_and_key_and_is_as_opaque_as_its_weight():
    [drawn] = lines(heads=(1,)).axes[0].collections
    worth = [(q, k) for q in range(3) for k in range(5) if WEIGHTS[1, q, k] >= 0.05]
    # Three rows stretched over five: their middles are 5/6, 15/6 and 25/6.
    wanted = [[[0, (2 * q + 1) * 5 / 6], [1, k + 0.5]] for q, k in worth]
    assert_allclose(drawn.get_segments(), wanted)
    opacities = [WEIGHTS[1, q, k] for q, k in worth]
    assert_allclose(drawn.get_colors()[:, 3], opacities)
    assert (0, 0) in worth
    assert (0, 2) not in worth  # 0.04


STEPS, AVERAGES, SINGLES = [30, 40, 50, 60], [11.0, 13.5, 13.5, 12.0], [9.0, 10, 12, 14]


def drawn(*steps):
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


PROGRAM = """
import sys
from t2t_jax.evaluation.plots import plot_lines, render_png
print("matplotlib" in sys.modules)
render_png(plot_lines([[[1.0]]], queries=["a"], keys=["b"], heads=[0], title="t"))
print("matplotlib.pyplot" in sys.modules)
"""


def test_matplotlib_is_imported_by_plotting_and_pyplot_never():
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\nFalse\n"


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match=r"pip install 't2t-jax\[plots\]'"):
        plots.require_matplotlib()
    with pytest.raises(UserError, match="Plots need matplotlib"):
        plots.new_figure(1.0, 1.0)
