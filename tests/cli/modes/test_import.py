"""Where another toolkit's model is given for one of ours.

Seen to fail: without `explaining_foreign` the answer to another toolkit's model is that
a file of ours is missing or damaged.
"""

import pytest

from t2t_jax.cli.flags.parse_argv import parse_argv
from t2t_jax.errors import InputMissingError
from tests.exchange import marian_save


@pytest.mark.parametrize(
    "mode", ["translate", "describe", "train", "export", "init_from"]
)
def test_another_toolkits_model_is_answered_with_the_import(tmp_path, mode):
    marian_save.save(tmp_path / "model.npz")
    (tmp_path / "my.spm").write_bytes(marian_save.sentencepiece_model())
    if mode == "translate":
        (tmp_path / "config.json").write_text('{"model_type": "marian"}')
    argv = [f"--mode={mode}", f"--workdir={tmp_path}"]
    if mode == "export":
        argv += ["--format=model_dir", "--to=x"]
    if mode == "init_from":
        argv = ["--config=fine_tune", f"--config.init_from={tmp_path}"]
    with pytest.raises(InputMissingError, match=r"--mode=import --from="):
        parse_argv(argv)
