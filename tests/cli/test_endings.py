import pytest

from t2t_jax.cli import endings
from t2t_jax.cli.endings import report
from t2t_jax.errors import DataError
from t2t_jax.parallelism.distributed import Processes


@pytest.fixture
def as_process_3(monkeypatch):
    monkeypatch.setattr(endings, "joined", lambda: Processes(index=3, count=5))


@pytest.mark.usefixtures("as_process_3")
def test_every_line_of_one_of_several_is_marked(capsys):
    assert report(DataError(["first", "second"])) == 65
    assert capsys.readouterr().err == (
        "[rank 3] error: first\n[rank 3] error: second\n"
    )


@pytest.mark.usefixtures("as_process_3")
def test_a_mistake_of_the_program_is_fatal_and_marked(capsys):
    assert report(KeyError("lost")) == 70
    assert capsys.readouterr().err == "[rank 3] FATAL KeyError: 'lost'\n"


@pytest.mark.usefixtures("as_process_3")
def test_a_traceback_is_marked_in_every_line(capsys):
    with pytest.raises(KeyError) as raised:
        {}["lost"]
    assert report(raised.value) == 70
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "[rank 3] FATAL Traceback (most recent call last):"
    assert lines[-1] == "[rank 3] KeyError: 'lost'"
    assert all(line.startswith("[rank 3] ") for line in lines)


def test_a_process_alone_bears_no_mark(capsys):
    assert report(KeyError("lost")) == 70
    assert capsys.readouterr().err == "KeyError: 'lost'\n"
