"""Wrong command lines and configurations, given to the real command line.

A workdir that cannot be one is in tests/faults/test_workdir.py. Seen to fail: without
`mistakes.unknown` in `parse_argv`, without `make_mesh` before text is prepared.
"""

import time

import pytest

from tests.faults.running import refused
from tests.integration import tiny


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["--config.modle.d_model=64"], 78, "Did you mean --config.model.d_model?"),
        (["--config.steps=many"], 78, "config.steps=many"),
        (["--config.optimizer.peak_learning_rate=nan"], 78, "peak_learning_rate=nan"),
        (["--config.mesh.data=3"], 78, "data=3 x fsdp=1 x tensor=1 must arrange 1"),
        (["--config.mesh.tensor=3"], 78, "must be divisible by mesh.tensor=3"),
        (["--config.model.num_heads=-2"], 78, "model.num_heads=-2"),
        (["--config.data.row_length=16"], 78, "data.max_length=32"),
        (["--config=no/such.py"], 66, "no/such.py"),
        (["--wrokdir=x"], 64, "Did you mean --workdir?"),
        (["--mode=trian"], 64, "Did you mean train?"),
        (["stray"], 64, "'stray'"),
        (["--source=x"], 64, "--mode=evaluate"),
        (["--workdir", "--mode=describe"], 64, "--workdir needs a value."),
        (["--config.steps=1000000000000"], 78, "must be at most 1,000,000,000"),
        (["--mode=translate", "--workdir=no/such"], 66, "no/such"),
    ],
)
def test_a_mistake_is_one_clear_message(argv, code, said, tmp_path):
    if not any(argument.startswith("--workdir") for argument in argv):
        argv = [*argv, f"--workdir={tmp_path / 'run'}"]
    began = time.monotonic()
    done = tiny.run(*argv, timeout=240)
    errors = refused(done, code, said)
    assert len(errors.strip().splitlines()) <= 3
    assert done.stdout == b""
    # A bound against starting to work, not a measurement: the answer takes 1 s.
    assert time.monotonic() - began < 120


def test_all_mistakes_are_named_at_once(tmp_path):
    workdir = f"--workdir={tmp_path / 'run'}"
    keys = ("steps=0", "model.dropout=1.5", "optimizer.warmup_steps=-1")
    keys += ("data.tokens_per_batch=3",)
    refused(tiny.run(workdir, *(f"--config.{key}" for key in keys)), 78, *keys)
    flags = ("--config.stpes=3", "--config.seed=x", "--nonsense=1", "stray")
    done = tiny.run(workdir, *flags)
    said = ("Did you mean --config.steps?", "seed=x", "--nonsense", "'stray'")
    refused(done, 64, *said)


def test_a_broken_config_file_names_its_line(tmp_path):
    path = tmp_path / "broken.py"
    path.write_text(
        "from t2t_jax.config import default\n"
        "def get_config():\n"
        "    config = default()\n"
        "    config.model.d_modle = 3\n"
        "    return config\n",
        encoding="utf-8",
    )
    done = tiny.run(f"--config={path}")
    refused(done, 78, "broken.py, line 4")
