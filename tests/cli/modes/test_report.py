from t2t_jax.main import main
from tests.report.made_up_run import write_run


def test_a_run_without_checkpoints_gets_a_page_without_attention(tmp_path, capsys):
    page = write_run(tmp_path / "made_up").path / "report.html"
    assert main(["--mode=report", f"--workdir={page.parent}"]) == 0
    said = capsys.readouterr()
    assert said.out == f"{page}\n"
    assert "WARNING: The page has no attention: " in said.err
    assert "bootstrap samples" in page.read_text("utf-8")
