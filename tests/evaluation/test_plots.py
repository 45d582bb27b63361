import math
import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("matplotlib", reason="needs the extra plots")

from t2t_jax.errors import UserError
from t2t_jax.evaluation import plots
from t2t_jax.evaluation.plots import (
    LayerAttention,
    label_of,
    plot_averages,
    plot_heat_maps,
    plot_lines,
    plot_positions,
    plot_schedule,
)
from tests.docs.commands import run_python

QUERIES = ["Zwei", "Männer", "$x$"]
KEYS = ["two", "m_e_n", "·s", ".", "</s>"]
# Five heads, Q = 3, K = 5; the last query of every head may not look at the last key.
WEIGHTS = np.random.default_rng(0).dirichlet(np.ones(5), size=(5, 3))
WEIGHTS[:, 2, 4] = 0.0
WEIGHTS[1, 0] = [0.9, 0.06, 0.04, 0.0, 0.0]


LABELS = {"queries": QUERIES, "keys": KEYS, "title": "Cross"}


@pytest.mark.parametrize(
    ("piece", "label"),
    [("▁Hund", "Hund"), ("chen", "·chen"), ("▁", "␣"), ("▁a▁b", "a␣b")],
)
def test_labels_show_where_words_begin(piece, label):
    assert label_of(piece) == label


def test_every_head_has_a_panel_that_holds_its_weights_and_leaves_masked_keys_white():
    figure = plot_heat_maps(LayerAttention(WEIGHTS, heads=(0, 1, 3), **LABELS))
    panels = [axes for axes in figure.axes if axes.images]
    assert [panel.get_title() for panel in panels] == ["head 0", "head 1", "head 3"]
    assert figure.get_suptitle() == "Cross"
    for panel, head in zip(panels, (0, 1, 3), strict=True):
        drawn = panel.images[0].get_array()
        assert_array_equal(drawn.filled(0.0), WEIGHTS[head])
        assert_array_equal(drawn.mask, WEIGHTS[head] == 0)


def test_a_line_joins_query_and_key_and_is_as_opaque_as_its_weight():
    figure = plot_lines(LayerAttention(WEIGHTS, heads=(1,), **LABELS))
    [drawn] = figure.axes[0].collections
    worth = [(q, k) for q in range(3) for k in range(5) if WEIGHTS[1, q, k] >= 0.05]
    # Three rows stretched over five: their middles are 5/6, 15/6 and 25/6.
    wanted = [[[0, (2 * q + 1) * 5 / 6], [1, k + 0.5]] for q, k in worth]
    assert_allclose(drawn.get_segments(), wanted)
    assert_allclose(drawn.get_colors()[:, 3], [WEIGHTS[1, q, k] for q, k in worth])
    assert (0, 0) in worth
    assert (0, 2) not in worth  # 0.04


def test_of_equally_good_means_the_newest_is_marked_with_its_bleu():
    averages, singles = [11.0, 13.5, 13.5, 12.0], [9.0, 10, 12, 14]
    steps = [30, 40, 50, 60]
    (axes,) = plot_averages(steps, averages=averages, singles=singles, last=3).axes
    curves = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert curves["best mean"] == [[50, 13.5]]
    assert [text.get_text() for text in axes.texts] == ["13.50"]


def test_the_schedule_s_curves_are_equation_3():
    panels, steps = plot_schedule(9_000).axes, np.arange(1.0, 9_001.0)
    curves = {line.get_label(): line for panel in panels for line in panel.lines}
    sizes = [(256, 4_000), (512, 4_000), (1024, 4_000), (512, 2_000), (512, 8_000)]
    assert set(curves) == {f"d_model {d}, warm-up {n:,}" for d, n in sizes}
    for width, warmup in sizes:
        curve = curves[f"d_model {width}, warm-up {warmup:,}"]
        rates = width**-0.5 * np.minimum(steps**-0.5, steps * warmup**-1.5)
        assert_allclose(curve.get_xydata().T, [steps, rates], rtol=1e-6)  # float32


def test_positions_are_plotted_as_the_paper_writes_them():
    whole, pairs, _ = plot_positions(length=11, d_model=34).axes
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
from t2t_jax.evaluation.plots import LayerAttention, plot_lines, render_png
print("matplotlib" in sys.modules)
render_png(plot_lines(LayerAttention([[[1.0]]], ["a"], ["b"], [0], "t")))
print("matplotlib.pyplot" in sys.modules)
"""


def test_matplotlib_is_imported_by_plotting_and_pyplot_never():
    assert run_python(PROGRAM) == "False\nFalse\n"


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match=r"pip install 't2t-jax\[plots\]'"):
        plots.require_matplotlib()
    with pytest.raises(UserError, match="requires the package matplotlib"):
        plots.new_figure(1.0, 1.0)
