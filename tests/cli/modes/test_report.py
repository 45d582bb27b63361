import pytest

from t2t_jax.main import main
from tests.report.made_up_run import write_run


@pytest.fixture
def made_up(tmp_path):
    return write_run(tmp_path / "made_up").path


def call(capsys, *argv):
    code = main(argv)
    return code, capsys.readouterr()


def test_a_run_without_checkpoints_gets_a_page_without_attention(made_up, capsys):
    code, said = call(capsys, "--mode=report", f"--workdir={made_up}")
    assert code == 0
    assert said.out == f"{made_up / 'report.html'}\n"
    assert "WARNING: The page has no attention: " in said.err
    assert "bootstrap samples" in (made_up / "report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("to", "reason"),
    [
        ("{run}/config.json", "it is a file of the run"),
        ("{run}/samples/x.html", "it is a file of the run"),
        ("{tmp}", "it is a directory"),
        ("{tmp}/no/x.html", "is not a directory"),
    ],
)
def test_a_file_that_cannot_be_written_is_named(made_up, capsys, to, reason):
    path = to.format(run=made_up, tmp=made_up.parent)
    code, said = call(capsys, "--mode=report", f"--workdir={made_up}", f"--to={path}")
    assert (code, said.out) == (73, "")
    assert reason in said.err
    assert (made_up / "config.json").read_text("utf-8").startswith("{")


def test_a_directory_that_is_no_run_is_refused(tmp_path, capsys):
    code, said = call(capsys, "--mode=report", f"--workdir={tmp_path}")
    assert code == 66
    assert "is not a run or a model" in said.err
