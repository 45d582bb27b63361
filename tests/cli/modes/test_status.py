import json

from t2t_jax import main


def test_a_model_takes_one_line(tmp_path, capsys):
    (tmp_path / "model.json").write_text('{"step": 1700}')
    assert main.main(["status", f"--workdir={tmp_path}"]) == 0
    assert capsys.readouterr().out == (
        f"{tmp_path}: a model and not a run, exported at step 1,700; nothing trains "
        "here\n"
    )
    assert main.main(["status", f"--workdir={tmp_path}", "--format=json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "model"
