"""Flags of `--mode=serve` that are wrong end in one error each, without JAX."""

import pytest

from t2t_jax.main import main

pytestmark = pytest.mark.usefixtures("own_signals")


@pytest.mark.parametrize(
    ("argv", "code", "message"),
    [
        (["--workdir=gone"], 66, "gone is not a run"),
        (["--workdir=en-de=gone,de-en=lost"], 66, "lost is not a run"),
        ([], 64, "requires --workdir"),
        (["--workdir=a", "--port=65536"], 64, "must be a port from 0 to 65535"),
        (["--workdir=a", "--host=0.0.0.0"], 64, "requires an API key"),
        (["--workdir=a", "--api_key_file=none"], 66, "none cannot be read"),
        (["--workdir=a", "--config.model.num_layers=3"], 64, "config.decoding only"),
        (["--workdir=a", "--beam_size=2"], 64, "does not take --beam_size"),
    ],
)
def test_a_wrong_flag(argv, code, message, empty_directory, capsys):
    assert main(["serve", *argv]) == code
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("# none\n\n", "must have an API key in a line"),
        ("key\n" * 16_385, "must have at most 65536 bytes"),
        ("\0" * 40, "must have printable API keys"),
        (None, "must have at most 65536 bytes"),
    ],
)
def test_a_wrong_file_of_keys(content, message, empty_directory, capsys):
    path = empty_directory / "keys" if content else "/dev/zero"
    if content:
        path.write_text(content)
    assert main(["serve", "--workdir=a", f"--api_key_file={path}"]) == 64
    assert message in capsys.readouterr().err
