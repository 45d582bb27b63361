"""What `--mode=prepare` says of a text, in this process."""

from t2t_jax.main import main
from tests.integration import tiny


def test_a_model_that_is_far_too_large_for_the_text_is_told_of(tmp_path, capsys):
    for side in ("en", "de"):
        lines = (f"{side} sentence number {n} of this text" for n in range(60))
        (tmp_path / side).write_text("\n".join(lines) + "\n")
    text = {
        "data__train": f"text:{tmp_path}/en,{tmp_path}/de",
        "data__dev": "",
        "data__dev_pairs": 7,
        "vocabulary__size": 40,
    }
    large = {"model__d_model": 512, "model__d_ff": 2048, "model__num_layers": 6}
    argv = tiny.arguments(tmp_path / "run", **text, **large)
    assert main(["--mode=prepare", *argv]) == 0
    said = capsys.readouterr().err
    assert "53 pairs read, 53 kept" in said
    assert "] 53 pairs are few for a model of this size (" in said
    assert "--config=own_text:small suits 50,000 pairs or fewer;" in said
