import pytest

from t2t_jax.cli.processes.handshake import RunHandshake
from t2t_jax.config import Config, parse, to_dict
from t2t_jax.distributed import jax_internals
from t2t_jax.distributed.processes import Processes
from t2t_jax.errors import ConfigError, DataError, InputMissingError
from t2t_jax.run.workdir import Workdir
from tests.distributed.coordinator import Coordinator

FIRST, SECOND = (Processes(index=k, count=2) for k in (0, 1))
TEXT = {"train": "ab", "dev": "cd"}


@pytest.fixture(autouse=True)
def _coordinator(monkeypatch):
    coordinator = Coordinator()
    monkeypatch.setattr(jax_internals, "client", lambda: coordinator)


@pytest.fixture
def workdir(tmp_path):
    workdir = Workdir(tmp_path / "run")
    workdir.create()
    return workdir


def news(owner="process 7", fingerprints=TEXT, **changed):
    config = parse({**to_dict(Config()), **changed})
    return RunHandshake(config=to_dict(config), owner=owner, fingerprints=fingerprints)


def test_what_is_told_is_what_is_heard():
    news(steps=17).publish(FIRST)
    assert RunHandshake.receive(SECOND) == news(steps=17)


def test_another_configuration_is_refused_key_by_key():
    with pytest.raises(ConfigError) as raised:
        news(steps=17, seed=3).require_same_config(Config(), index=5)
    assert [problem.partition(".")[0] for problem in raised.value.problems] == [
        "Process 5 was started with steps=100000, and process 0 with 17",
        "Process 5 was started with seed=0, and process 0 with 3",
    ]


def test_the_text_may_lie_elsewhere_on_another_host():
    here = parse({"data": {"train": "text:/a.en,/a.de", "cache_dir": "/fast"}})
    news().require_same_config(here, index=1)


def test_a_workdir_that_is_shared_shows_who_holds_it(workdir):
    with workdir.locked() as owner:
        news(owner).require_same_workdir(workdir, index=1, seconds=0)


@pytest.mark.parametrize("is_held", [False, True])
def test_a_workdir_that_is_not_shared_is_named(workdir, is_held):
    if is_held:  # by another run
        with workdir.locked():
            pass
    with pytest.raises(InputMissingError, match=r"run must be on .* process 3 does"):
        news().require_same_workdir(workdir, index=3, seconds=0)


def test_other_text_is_refused_by_name():
    news().require_same_text(TEXT, index=1)
    with pytest.raises(DataError, match=r"Process 1 has other .* in: dev\."):
        news().require_same_text({**TEXT, "dev": "other"}, index=1)
