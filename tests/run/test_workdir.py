import json

import pytest

from t2t_jax.config import Config
from t2t_jax.errors import DataError, InputMissingError, OutputError
from t2t_jax.run.workdir import Workdir

pytestmark = pytest.mark.usefixtures("empty_directory")


@pytest.fixture
def workdir(tmp_path):
    made = Workdir(tmp_path / "runs" / "größe")
    made.create()
    return made


def test_a_folder_of_a_run_is_answered_with_the_run(workdir):
    workdir.write_config(Config())
    inside = workdir.path / "checkpoints/400"
    inside.mkdir(parents=True, exist_ok=True)
    with pytest.raises(InputMissingError, match=r"größe with checkpoint=400\? Train"):
        Workdir(inside).read_config()


@pytest.mark.parametrize(
    ("saved", "overrides", "least"),
    [
        ({"min_tokens": 0}, {}, 1),  # the default of runs without decoding.segment
        ({"min_tokens": 0}, {"decoding.min_tokens": 0}, 0),
        ({"min_tokens": 0, "segment": "auto"}, {}, 0),
    ],
)
def test_an_old_default_is_that_of_today(workdir, saved, overrides, least):
    (workdir.path / "config.json").write_text(json.dumps({"decoding": saved}))
    (workdir.path / "overrides.json").write_text(json.dumps(overrides))
    assert workdir.read_config().decoding.min_tokens == least


def test_a_directory_whose_name_is_not_utf_8_is_refused_before_the_work(tmp_path):
    workdir = Workdir(tmp_path / "r\udcffn")
    with pytest.raises(OutputError, match="has a name that is not UTF-8"):
        workdir.create()
    with pytest.raises(InputMissingError, match="Set PYTHONUTF8=1, or choose another"):
        workdir.require()


def _refuse(workdir, *, after=lambda: None):
    with workdir.create_locked():
        assert workdir.owner()
        after()
        raise DataError("The text is missing.")


def test_a_refused_start_leaves_nothing_that_it_has_made(tmp_path):
    refused = Workdir(tmp_path / "runs" / "one")
    with pytest.raises(DataError, match="The text"):
        _refuse(refused)
    assert list(tmp_path.iterdir()) == []
    # What was there before, or has been written, stays.
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "lock").touch()
    with pytest.raises(DataError, match="The text"):
        _refuse(Workdir(tmp_path / "runs"))
    assert (tmp_path / "runs" / "lock").exists()
    with pytest.raises(DataError, match="The text"):
        _refuse(refused, after=lambda: refused.write_json("data.json", {}))
    assert sorted(path.name for path in refused.path.iterdir()) == ["data.json", "lock"]
