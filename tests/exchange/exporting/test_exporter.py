"""What is not the model is caught before anybody can take it for the model.

Seen to fail: without the check after writing; where a failed export stays; without the
comparison of the arrays.
"""

import json

import jax
import numpy as np
import pytest

from t2t_jax.cli.flags.parse_argv import parse_argv
from t2t_jax.cli.modes import export
from t2t_jax.config import Config
from t2t_jax.data.config import DataConfig, VocabularyConfig
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.errors import DataError
from t2t_jax.exchange.exporting import ctranslate2, model_dir
from t2t_jax.exchange.exporting import huggingface as hf_marian
from t2t_jax.exchange.exporting.backends import JaxBackend, search_config
from t2t_jax.model.config import TransformerConfig
from tests.exchange.exporting.counting import write_model, write_text

pytest.importorskip("safetensors")


SHAPES = dict(num_layers=1, d_model=16, d_ff=32, num_heads=2, d_k=8, d_v=8)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """A model that was never trained, of the shapes of tests/integration/tiny.py."""
    place = tmp_path_factory.mktemp("exporter")
    corpus = write_text(place)
    config = Config(
        init_from=str(place / "first"),
        data=DataConfig(train=corpus, dev=corpus, cache_dir=str(place)),
        vocabulary=VocabularyConfig(size=44),
        model=TransformerConfig(**SHAPES, vocab_size=44, dropout=0.0),
        decoding=DecodingConfig(max_source_length=24, max_extra_tokens=5),
    )
    data = {"train": {"spec": corpus, "fingerprint": "f", "pairs": 400}}
    return write_model(place / "model", config, corpus=corpus, data=data)


@pytest.mark.parametrize(
    "form", ["model_dir", "safetensors", "ctranslate2", "hf_marian"]
)
def test_no_folder_of_the_text_leaves_with_an_export(model, tmp_path, form):
    to, own = tmp_path / "made", json.loads((model / "config.json").read_text())
    if form == "ctranslate2":
        pytest.importorskip("ctranslate2")
    flags = [f"--format={form}", f"--to={to}", "--check_lines=3"]
    export.run(parse_argv(["--mode=export", f"--workdir={model}", *flags]))
    folder = str(model.parent).encode()
    files = [path for path in to.rglob("*") if path.is_file()]
    assert [path for path in files if folder in path.read_bytes()] == []
    card = (to / "README.md").read_text()
    assert "| train text | `text:a.en,a.de`" in card
    assert "3 lines of `text:a.en,a.de`" in card
    assert "| began with | `first` |" in card
    if form in ("model_dir", "safetensors"):
        found = json.loads((to / "config.json").read_text())
        assert found["data"]["dev"] == "text:a.en,a.de"
        assert (found["init_from"], found["data"]["cache_dir"]) == ("first", "")
        data = json.loads((to / "model.json").read_text())["data"]
        assert data["train"]["spec"] == "text:a.en,a.de"
    assert own == json.loads((model / "config.json").read_text())
    assert str(model.parent) in own["data"]["dev"]


def one_matrix_turned(spec):
    matrix = spec.decoder.layer[0].attention.linear[-1]
    matrix.weight = matrix.weight.T


def one_number_changed(spec):
    spec.encoder.layer[0].ffn.linear_1.weight[3, 5] += 0.1


@pytest.mark.parametrize("spoil", [one_matrix_turned, one_number_changed])
def test_a_converter_that_is_wrong_is_caught(model, tmp_path, monkeypatch, spoil):
    pytest.importorskip("ctranslate2")
    fill = ctranslate2.fill_stacks

    def fill_and_spoil(spec, *args, **kwargs):
        fill(spec, *args, **kwargs)
        spoil(spec)

    monkeypatch.setattr(ctranslate2, "fill_stacks", fill_and_spoil)
    refused(model, "ctranslate2", tmp_path, r"differs from the model on 20")


@pytest.mark.parametrize("form", ["ctranslate2", "model_dir"])
def test_the_beam_of_the_comparison_is_that_of_the_model(
    model, tmp_path, capsys, monkeypatch, form
):
    pytest.importorskip("ctranslate2")
    own = {"beam_size": 3, "length_penalty": 1.5, "min_tokens": 2}
    asked = []

    def search(self, lines, *, greedy):
        asked.append((greedy, search_config(self._config, greedy=greedy)))
        return searched(self, lines, greedy=greedy)

    searched = JaxBackend.search
    monkeypatch.setattr(JaxBackend, "search", search)
    flags = [f"--format={form}", f"--to={tmp_path / 'x'}", "--check_lines=3"]
    flags += [f"--config.decoding.{key}={value}" for key, value in own.items()]
    export.run(parse_argv(["--mode=export", f"--workdir={model}", *flags]))
    beams = [config for greedy, config in asked if not greedy]
    assert beams
    for config in beams:
        assert {key: getattr(config, key) for key in own} == own
    result = json.loads(capsys.readouterr().out)
    assert (result["beam_size"], result["length_penalty"]) == (3, 1.5)
    card = (tmp_path / "x" / "README.md").read_text()
    assert "a beam of 3 at alpha 1.5, the exponent of (5 + n) / 6" in card


def test_a_tensor_of_hugging_face_that_is_wrong_is_caught(model, tmp_path, monkeypatch):
    write = hf_marian.to_tensors

    def write_other(*args, **kwargs):
        tensors = write(*args, **kwargs)
        tensors["model.encoder.layers.0.fc2.weight"][3, 5] += 0.1
        return tensors

    monkeypatch.setattr(hf_marian, "to_tensors", write_other)
    refused(model, "hf_marian", tmp_path, r"1 of \d+ arrays differ after writing")


@pytest.mark.parametrize("form", ["model_dir", "safetensors"])
def test_a_bit_that_changes_on_its_way_is_caught(model, tmp_path, monkeypatch, form):
    write = model_dir.save_model_dir

    def write_other(to, params, **kwargs):
        leaves, tree = jax.tree.flatten(params)
        leaves[3] = np.nextafter(leaves[3], 9, dtype=np.float32)
        write(to, jax.tree.unflatten(tree, leaves), **kwargs)

    monkeypatch.setattr(model_dir, "save_model_dir", write_other)
    refused(model, form, tmp_path, r"1 of \d+ arrays differ after writing")


def refused(model, form, tmp_path, message):
    """An export that is not the model is none: nothing of it is left."""
    flags = [f"--format={form}", f"--to={tmp_path / 'made' / 'x'}", "--check_lines=20"]
    with pytest.raises(DataError, match=message):
        export.run(parse_argv(["--mode=export", f"--workdir={model}", *flags]))
    assert list((tmp_path / "made").iterdir()) == []
