import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

pytest.importorskip("matplotlib", reason="needs the extra plots")

from t2t_jax.evaluation.plots.attention import label_of, plot_heat_maps, plot_lines

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
