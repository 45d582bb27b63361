import subprocess
import sys

import pytest

from t2t_jax.errors import UserError
from t2t_jax.evaluation.plots import figure as canvas

PROGRAM = """
import sys
from t2t_jax.evaluation.plots.attention import plot_lines
from t2t_jax.evaluation.plots.curves import plot_positions
from t2t_jax.evaluation.plots.figure import render_png
print("matplotlib" in sys.modules)
render_png(plot_lines([[[1.0]]], queries=["a"], keys=["b"], heads=[0], title="t"))
print("matplotlib.pyplot" in sys.modules)
"""


def test_matplotlib_is_imported_by_plotting_and_pyplot_never():
    pytest.importorskip("matplotlib")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\nFalse\n"


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UserError, match=r"pip install 't2t-jax\[plots\]'"):
        canvas.require_matplotlib()
    with pytest.raises(UserError, match="Plots need matplotlib"):
        canvas.new_figure(1.0, 1.0)
