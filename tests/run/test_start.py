import io

import pytest

from t2t_jax.cli.flags.parser import parse_argv
from t2t_jax.run.start import make_console, open_run
from tests.integration import tiny


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
