import pytest

from t2t_jax.main import main
from tests.report.made_up_run import write_run


@pytest.fixture
def runs(tmp_path):
    return [
        str(write_run(tmp_path / name, steps=n).path)
        for name, n in (("a", 100), ("b", 60))
    ]


def test_the_text_is_on_stdout_and_the_page_in_its_file(runs, tmp_path, capsys):
    to = tmp_path / "page.html"
    assert main(["--mode=compare", f"--workdirs={','.join(runs)}", f"--to={to}"]) == 0
    said = capsys.readouterr()
    for title in ("Runs", "Settings that differ", "Paired tests", "Translations"):
        assert title in said.out
    assert said.out.endswith(f"\n{to}\n")
    assert "Comparing the translations" in said.err
    assert to.read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("workdirs", "code", "said"),
    [
        ("", 64, "--mode=compare requires --workdirs"),
        ("{a},{b} --to={a}/data.json", 73, "it is a file of the run"),
        ("{a},{b} --to={a}/samples/x.html", 73, "it is a file of the run"),
        ("{a}", 65, "at least two different runs"),
        ("{a},{a}", 65, "at least two different runs"),
        ("{a},{none}", 66, "is not a run or a model: no such directory"),
    ],
)
def test_a_wrong_list_is_one_clear_error(runs, tmp_path, capsys, workdirs, code, said):
    given = workdirs.format(a=runs[0], b=runs[1], none=tmp_path / "none")
    argv = f"--workdirs={given}".split() if given else []
    assert main(["--mode=compare", *argv]) == code
    output = capsys.readouterr()
    assert said in output.err
    assert "Traceback" not in output.err
    assert output.out == ""
