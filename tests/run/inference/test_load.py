"""What loading a model leaves undone. Seen to fail: with `init` given arrays."""

import jax

from t2t_jax.model.architectures import make_module
from t2t_jax.model.config import TransformerConfig
from t2t_jax.run.inference.load import abstract_params


def test_the_shapes_of_parameters_need_no_program(caplog):
    config = TransformerConfig(vocab_size=31, num_layers=1, d_model=8, d_ff=5)
    jax.clear_caches()
    with jax.log_compiles():
        shapes = abstract_params(make_module(config, platform="cpu"))
    assert shapes["embedding"]["table"].shape == (31, 8)
    assert "Finished tracing" in caplog.text
    assert "Finished XLA compilation" not in caplog.text
