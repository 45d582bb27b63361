"""What `--mode=prepare` says of a text, in this process."""

import pytest

from t2t_jax.main import main
from tests.integration import tiny


@pytest.fixture
def prepared(tmp_path, capsys):
    """Prepares 60 pairs for a model, and returns what was said."""
    for side in ("en", "de"):
        lines = (f"{side} sentence number {n} of this text" for n in range(60))
        (tmp_path / side).write_text("\n".join(lines) + "\n")

    def prepare(**changed):
        text = {
            "data__train": f"text:{tmp_path}/en,{tmp_path}/de",
            "data__dev": "",
            "data__dev_pairs": 7,
            "vocabulary__size": 40,
        }
        argv = tiny.arguments(tmp_path / "run", **text, **changed)
        assert main(["--mode=prepare", *argv]) == 0
        return capsys.readouterr().err

    return prepare


def test_a_model_that_is_far_too_large_for_the_text_is_told_of(prepared):
    said = prepared(model__d_model=512, model__d_ff=2048, model__num_layers=6)
    assert "] 53 pairs are few for a model of this size (" in said
    assert "--config=own_text:small suits 50,000 pairs or fewer;" in said


def test_one_that_suits_it_is_not_and_the_held_out_pairs_are_told(prepared):
    said = prepared()
    assert "own_text" not in said
    assert "53 pairs read, 53 kept" in said
    assert "7 pairs read, 7 kept" in said
