import dataclasses
import io

import pytest

from t2t_jax.cli.flags.parser import parse_argv
from t2t_jax.config import Config
from t2t_jax.data.config import DataConfig
from t2t_jax.model.counting import count_parameters
from t2t_jax.run.size_advice import ROWS, size_advice
from t2t_jax.run.start import make_console, open_run
from tests.integration import tiny
from tests.integration.tiny import ROOT


def config_of(row, tmp_path):
    config = f"--config={ROOT / 'configs' / 'own_text.py'}:{row}"
    return parse_argv([config, f"--workdir={tmp_path}"]).config


@pytest.mark.parametrize(
    ("row", "pairs", "advised"),
    [
        ("small", 9_000, ""),
        ("small", 110_000, "medium"),
        ("medium", 24_000, "small"),
        ("medium", 26_000, ""),
        ("medium", 1_100_000, "large"),
        ("large", 20_000, "small"),
        ("large", 200_000, "medium"),
        ("large", 40_000_000, ""),
    ],
)
def test_the_row_that_fits_is_named_where_the_size_is_far_off(
    row, pairs, advised, tmp_path
):
    published = size_advice(config_of(row, tmp_path), pairs)
    assert (f"--config=own_text:{advised} suits" in published) == bool(advised)
    assert published.startswith(f"{pairs:,} pairs are" if advised else "")
    assert bool(published) == bool(advised)


def test_a_model_belongs_to_the_row_that_it_is_nearest_to(tmp_path):
    counts = [count_parameters(config_of(row.name, tmp_path).model) for row in ROWS]
    sizes = [count.encoder + count.decoder for count in counts]
    for k in (1, 2):
        between = (sizes[k - 1] * sizes[k]) ** 0.5
        assert ROWS[k].parameters == pytest.approx(between, rel=0.02)


def test_the_baseline_and_the_embedded_corpus_get_no_advice():
    assert size_advice(Config(architecture="rnn"), 7) == ""
    data = DataConfig(train="phrasebook:train:120000")
    assert size_advice(dataclasses.replace(Config(), data=data), 7) == ""


@pytest.mark.parametrize("steps", [7, 8])
def test_steps_within_the_warm_up_are_warned_of(tmp_path, steps):
    changed = {"steps": steps, "optimizer.warmup_steps": 7}
    options = parse_argv(tiny.arguments(tmp_path / "run", **changed))
    stream = io.StringIO()
    console = make_console(options.config, stream=stream)
    with open_run(
        options.config, workdir=options.workdir, overrides={}, console=console
    ):
        said = stream.getvalue()
    assert ("warning: steps=7 is not above optimizer.warmup_steps=7" in said) == (
        steps == 7
    )
