"""Directories of version 0.1.0 load and resume; its keys are answered with new ones.

Seen to fail: with `parse` instead of `parse_saved` in `Workdir.read_config`; without
`_RENAMED` in `config_keys.suggestion`.
"""

import tarfile
from pathlib import Path

import jax
import pytest

import t2t_jax
from t2t_jax.config import parse_saved
from t2t_jax.main import main
from t2t_jax.run.workdir import Workdir
from tests.integration import tiny

WRITTEN = Path(__file__).with_name("written_by_0_1_0.tar.xz")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A run of two steps (row_halvings=1), and an exported model (length_groups)."""
    directory = tmp_path_factory.mktemp("written by 0.1.0")
    with tarfile.open(WRITTEN) as archive:
        archive.extractall(directory, filter="data")
    return directory


def test_a_run_is_resumed(written):
    run = written / "run"
    assert Workdir(run).read_config().data.row_lengths == (32, 64)
    done = tiny.run(
        f"--workdir={run}",
        "--config.steps=3",
        f"--config.data.cache_dir={written / 'cache'}",
    )
    assert done.returncode == 0, done.stderr.decode()
    assert b"from step 2" in done.stderr
    assert (run / "checkpoints" / "3").is_dir()


def test_a_model_translates(written):
    model = t2t_jax.load(written / "model", devices=jax.devices()[:1])
    assert len(model.translate(["Two men.", ""])) == 2


def test_saved_names_are_read_under_those_of_today():
    saved = {"data": {"row_halvings": 2, "layout": "length_groups", "row_length": 64}}
    with pytest.raises(t2t_jax.UserError, match="packed_row_lengths=3 requires"):
        parse_saved(saved)
    assert parse_saved({"data": {"row_halvings": 2}}).data.packed_row_lengths == 3


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "--config.data.row_halvings=2",
            "whose value is one more. Pass --config.data.packed_row_lengths=3.",
        ),
        ("--config.data.layout=length_groups", "is 'length_buckets' now. Set config."),
    ],
)
def test_an_old_name_is_answered_with_the_new_one(tmp_path, capsys, old, new):
    assert main([f"--workdir={tmp_path / 'run'}", old]) == 78
    assert new in capsys.readouterr().err
