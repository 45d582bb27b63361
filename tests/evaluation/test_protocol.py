import hashlib

import jax
import numpy as np

from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.evaluation.bleu import METRICS, corpus_scores
from t2t_jax.evaluation.protocol import (
    fingerprint_lines,
    fingerprint_params,
    protocol_decoding,
)
from t2t_jax.evaluation.significance import scores_and_tests
from tests.evaluation.test_significance import GOOD, POOR, REFERENCES


def test_the_search_is_the_paper_s_whatever_the_run_s_own_is():
    own = DecodingConfig(
        beam_size=1,
        length_penalty=0.0,
        max_extra_tokens=7,
        max_source_length=64,
        tokens_per_batch=71,
    )
    used = protocol_decoding(own)
    assert (used.beam_size, used.length_penalty, used.max_extra_tokens) == (4, 0.6, 50)
    assert used.max_source_length == 64  # what the model can read does not change
    assert used.tokens_per_batch == 64 + 50  # a batch must hold one longest output
    large = protocol_decoding(DecodingConfig(tokens_per_batch=9973))
    assert large.tokens_per_batch == 9973


def test_every_score_is_what_it_is_alone():
    found = scores_and_tests(GOOD, REFERENCES, metrics=METRICS, baseline=POOR)
    alone = corpus_scores(GOOD, REFERENCES, metrics=["ter", "bleu", "chrf"])
    assert alone.items() <= found.items()
    for name in ("bleu", "chrf", "ter"):
        interval = found["intervals"][name]
        assert abs(interval["mean"] - found[name]) < interval["half_width"]
        assert found["paired_test"][name]["system"] == found[name]
        assert found["paired_test"][name]["better"] == "system"


def test_the_fingerprint_is_over_path_dtype_shape_and_bytes_wherever_they_lie():
    kernel = {"layer_0": {"kernel": np.arange(6, dtype=np.float32).reshape(2, 3)}}
    params = {"encoder": kernel, "embedding": np.ones((5, 2), np.float32)}
    on_device = {name: jax.device_put(params[name]) for name in sorted(params)}
    digest = hashlib.sha256()
    digest.update(b"embedding\0float32\0(5, 2)\0")
    digest.update(np.ones(10, "<f4").tobytes())
    digest.update(b"encoder/layer_0/kernel\0float32\0(2, 3)\0")
    digest.update(np.arange(6, dtype="<f4").tobytes())
    assert fingerprint_params(params) == digest.hexdigest()
    assert fingerprint_params(on_device) == digest.hexdigest()


def test_the_fingerprint_of_lines_is_that_of_the_plain_file(tmp_path):
    lines = ["Größe: 3 m", "", "a\u2028b\x85c", "  "]
    (tmp_path / "plain").write_text("Größe: 3 m\n\na\u2028b\x85c\n  \n", "utf-8")
    wanted = hashlib.sha256((tmp_path / "plain").read_bytes()).hexdigest()
    assert fingerprint_lines(lines) == wanted
