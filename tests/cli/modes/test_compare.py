from t2t_jax.main import main
from tests.report.made_up_run import write_run


def test_the_text_is_on_stdout_and_the_page_in_its_file(tmp_path, capsys):
    to = tmp_path / "page.html"
    for name, steps in (("a", 100), ("b", 60)):
        write_run(tmp_path / name, steps=steps)
    runs = f"--workdirs={tmp_path / 'a'},{tmp_path / 'b'}"
    assert main(["--mode=compare", runs, f"--to={to}"]) == 0
    said = capsys.readouterr()
    for title in ("Runs", "Settings that differ", "Paired tests", "Translations"):
        assert title in said.out
    assert said.out.endswith(f"\n{to}\n")
    assert "Comparing the translations" in said.err
    assert to.read_text(encoding="utf-8").startswith("<!doctype html>")
