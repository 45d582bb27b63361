"""What a command imports, as counts of modules: times would depend on the machine."""

import json

import pytest

from tests.docs.commands import run_python

_TRANSLATE = """
import t2t_jax.cli.modes.translate, t2t_jax.run.inference.load
from t2t_jax.cli.translation.job import load_job
"""
_HELP = 'import t2t_jax.main; t2t_jax.main.main(["--help"])'
# What only training, evaluation and other modes need.
_UNNEEDED = {
    *("optax", "sacrebleu", "tensorboardX", "torch", "tensorflow", "matplotlib"),
    *("tensorflow_datasets", "starlette", "uvicorn", "safetensors", "transformers"),
    *("sacremoses", "pandas", "scipy", "IPython", "orbax"),
}


def modules_after(program):
    """Runs a program, and returns the names of the modules that it imports."""
    program += "\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    return json.loads(run_python(program).splitlines()[-1])


@pytest.mark.parametrize(
    ("program", "most"), [("import t2t_jax", 8), (_HELP, 270), (_TRANSLATE, 1_050)]
)
def test_commands_import_what_they_need(program, most):
    loaded = modules_after(program)
    idle = modules_after("")
    assert not {name.partition(".")[0] for name in loaded} & _UNNEEDED
    assert len(loaded) - len(idle) <= most
