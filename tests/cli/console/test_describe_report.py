"""The report of a description; `compiled` is what the compiler would have said."""

import functools
import io
from unittest import mock

import jax
import pytest

from t2t_jax.cli.console.describe_report import sections
from t2t_jax.cli.console.tables import show
from t2t_jax.config import parse
from t2t_jax.devices.sharding.mesh import make_mesh
from t2t_jax.run.description import summary
from t2t_jax.run.description.costs import Compiled, Memory
from t2t_jax.run.description.table3_rows import paper_result

CONFIG = {
    "steps": 7,
    "data": {"train": "text:[a],b", "dev": "c"},
    "model": {"tying": "none"},
}
DATA = {
    "train": {"spec": "text:[a],b", "pairs": 4_500, "note": ""},
    "dev": {"spec": "c", "pairs": None, "note": "c: no such file."},
}


@functools.cache
def told():
    """Describes the base model with three matrices of embeddings, for one device."""
    memory = Memory(arguments=60_137, temporaries=3_869_900_000, outputs=5, aliased=5)
    compiled = Compiled(flops=4.4e12, memory=memory, platform="tpu")
    with mock.patch.object(summary, "compile_costs", return_value=compiled):
        mesh = make_mesh(jax.devices()[:1])
        return summary.describe(parse(CONFIG), mesh=mesh, data=DATA)


def report(**changed):
    """Writes the report and puts one space where there are several."""
    file = io.StringIO()
    show(sections({**told(), **changed}), file=file)
    return [" ".join(line.split()) for line in file.getvalue().split("\n")]


@pytest.mark.parametrize(
    "line",
    [
        "model.tying all none",
        # 3 x 37,000 x 512.
        "embedding 56,832,000 - - - 56,832,000",
        "total 56,832,000 18,874,368 25,196,544 30,720 100,933,632",
        "A pair of tokens, in sentences of 28: 381.0 MFLOP.",
        # 512^-0.5 x 7 x 4,000^-1.5.
        "peak learning rate 1.223e-06 at step 7",
        "last learning rate 1.223e-06",
        # 8 bytes a parameter.
        "optimizer 807.5 MB moments of adam",
        "train 4,500 pairs text:[a],b",
    ],
)
def test_what_is_told_is_said(line):
    assert line in report()


def test_the_figures_that_the_paper_prints_stand_beside_the_counted_ones():
    printed = {**paper_result("base"), "departs_here": ["optimizer.beta2"]}
    assert {
        "parameters 100.9 million 65 million",
        "perplexity - 4.92 per subword",
        "This configuration departs in optimizer.beta2.",
    } <= set(report(paper_results=printed))
    assert "Results in the paper" not in report()
