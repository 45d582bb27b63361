"""Models loaded from Python, as the documentation shows."""

import asyncio
import dataclasses
import io
import json
import math
import signal
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import numpy as np
import pytest
from ml_collections import ConfigDict

import t2t_jax
from t2t_jax.checkpointing.safetensors_io import open_parameters
from t2t_jax.errors import DataError, InputMissingError, UserError
from tests.integration import tiny

PACKAGE = str(Path(t2t_jax.__file__).parent)
LINES = ["The old teacher reads a book.", "", "Two men."]


@pytest.fixture(scope="module")
def workdir(tiny_run):
    return tiny_run


@pytest.fixture(scope="module")
def model(workdir):
    return tiny.load(workdir)


def test_a_loaded_model_translates_line_by_line(workdir, model):
    lines = model.translate(LINES)
    assert len(lines) == 3
    assert lines[1] == ""
    assert t2t_jax.translate(workdir, LINES) == lines


def test_a_line_passes_at_most_12_files_and_the_last_translator_is_kept(model):
    before = model.translate(LINES[:1], beam_size=2)
    files = set()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            files.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        assert model.translate(LINES[:1], beam_size=2) == before
    finally:
        sys.setprofile(None)
    assert 5 < len(files) <= 12, files
    beams = [model.translator(beam_size=n).config.beam_size for n in (2, 1, 2)]
    assert beams == [2, 1, 2]
    assert model.translator() is model.translator()


def test_all_that_is_known_of_a_translation_is_told(model):
    texts, attention = model.translate(LINES, n_best=2, return_attention=True)
    assert [len(hypotheses) for hypotheses in texts] == [2, 1, 2]
    found = model.translations(LINES, n_best=2, attention=True)
    for one, weights in zip(found, attention, strict=True):
        if not one.num_parts:
            assert weights is None
            continue
        assert weights.shape == (one.num_tokens, len(one.source_tokens))
        assert weights.sum(axis=1) == pytest.approx(1, abs=1e-5)
        np.testing.assert_allclose(weights, one.hypotheses[0].attention_TxS, atol=1e-6)


def test_the_beam_s_size_is_the_number_of_samples_to_choose_among(model):
    chosen = {"sample": True, "mbr": "chrf", "beam_size": 3}
    assert model.translate(LINES, **chosen) == model.translate(LINES, **chosen)
    with pytest.raises(UserError, match="beam_size requires sample=False"):
        model.translate(LINES, sample=True, beam_size=3)


def test_models_together_translate_and_do_not_score(workdir, model):
    line = LINES[:1]
    both = tiny.load(workdir, checkpoint=5, ensemble=[workdir])
    assert both.translations(line)[0].score != model.translations(line)[0].score
    twice = tiny.load(workdir, ensemble=[workdir]).translations(line)[0]
    assert twice.text == model.translate(line)[0]
    assert math.isclose(twice.score, model.translations(line)[0].score, rel_tol=1e-5)
    with pytest.raises(UserError, match="scored by one model, not by an ensemble of 2"):
        both.score(line, line)


def test_a_model_of_float32_searches_in_bfloat16(workdir, model):
    exact = model.translations(LINES)[0].hypotheses[0]
    near = model.translations(LINES, compute_dtype="bfloat16")[0].hypotheses[0]
    assert near.score != exact.score
    assert math.isclose(near.score, exact.score, rel_tol=0.05)  # 8 bits of mantissa
    decoding = dataclasses.replace(model.decoding, compute_dtype="bfloat16")
    configured = tiny.load(workdir, decoding=decoding, ensemble=[workdir])
    assert {x.dtype.name for x in jax.tree.leaves(configured.params)} == {"float32"}
    both = configured.translations(LINES)[0].hypotheses[0]
    assert math.isclose(both.score, near.score, rel_tol=1e-5)  # the mean of two equals


def test_a_model_is_made_of_parts_that_fit(workdir, model, newspaper):
    other = t2t_jax.load(newspaper).vocabularies
    with pytest.raises(UserError, match=r"must have \(150, 150\) .* have \("):
        t2t_jax.TranslationModel.of(model.module, model.params, other)
    on_host = dataclasses.replace(model, params=jax.device_get(model.params))
    assert repr(model).startswith(repr(on_host)[:-1] + ", on ")


def test_models_of_other_vocabularies_do_not_go_together(workdir, newspaper):
    with pytest.raises(DataError, match="must have the vocabularies of the first"):
        t2t_jax.load(workdir, ensemble=[newspaper])


@pytest.mark.parametrize("checkpoint", ["best", "last", "5", 5])
def test_what_is_chosen_is_what_is_loaded(workdir, checkpoint):
    step = t2t_jax.load(workdir, checkpoint=checkpoint).step
    assert step == open_parameters(workdir).resolve_step(checkpoint)
    assert step in {"best": (8, 12), "last": (12,)}.get(checkpoint, (5,))


@pytest.mark.parametrize("checkpoint", [7, "newest"])
def test_an_unknown_checkpoint_names_those_that_are_there(workdir, checkpoint):
    with pytest.raises(DataError, match=r"best, last, or one of .*: 5, "):
        t2t_jax.load(workdir, checkpoint=checkpoint)


@pytest.mark.parametrize("ensemble", [False, True])
def test_the_search_functions_take_a_model_and_text_through_arrays(workdir, ensemble):
    model = tiny.load(workdir, ensemble=[workdir] * ensemble)
    lines = ["Two men.", "The old teacher reads a book."]
    source_BxS = model.encode(lines)
    assert source_BxS.dtype == np.int32
    assert source_BxS[0].tolist()[-1] == 0  # pad, behind the eos
    assert [2 in row for row in source_BxS.tolist()] == [True, True]
    how = {"params": t2t_jax.BeamParams(beam_size=2), "max_extra_tokens": 5}
    search = jax.jit(t2t_jax.beam_search, static_argnames=(*how,))
    result = search(model.step_model, source_BxS, **how)
    assert model.decode(result.tokens_BxWxT[:, 0]) == model.translate(lines)
    draw = jax.jit(t2t_jax.sample, static_argnames="max_length")
    drawn = draw(model.step_model, source_BxS, jax.random.key(0), max_length=3)
    assert len(model.decode(drawn.tokens_BxWxT[:, 0])) == 2


def test_encoding_and_decoding_are_inverse_and_check_their_arguments(model):
    assert model.decode(model.encode(LINES)) == LINES
    assert model.encode([]).shape == (0, 0)
    assert model.encode(["", "\ud800"]).shape[0] == 2
    with pytest.raises(UserError, match=r"shape \(1, 1, 2\) .* tokens_BxWxT\[:, 0\]"):
        model.decode(np.ones((1, 1, 2), int))
    with pytest.raises(UserError, match="integers"):
        model.decode(np.ones((1, 2)))
    with pytest.raises(UserError, match=r"from 3 to 150 must lie in \[0, 150\)"):
        model.decode(np.array([[3, 150]]))


def test_a_model_translates_in_threads_and_in_an_event_loop(model):
    expected = model.translate(LINES)
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(model.translate, [LINES] * 3)) == [expected] * 3

    async def translate():
        return await asyncio.to_thread(model.translate, LINES), model.translate(LINES)

    assert asyncio.run(translate()) == (expected, expected)


class _InterruptedLog(io.StringIO):
    """A log where Ctrl-C comes as soon as a text is written to it."""

    def __init__(self, text):
        super().__init__()
        self._text = text

    def write(self, written):
        if self._text and self._text in written:
            self._text = ""
            signal.raise_signal(signal.SIGINT)
        return super().write(written)


def test_training_from_python_is_interrupted_and_resumed_as_on_the_command_line(
    workdir, tmp_path, capfd
):
    other, device = tmp_path / "run", jax.devices()[:1]
    config = ConfigDict(json.loads((workdir / "config.json").read_text("utf-8")))
    config.logging.every_seconds = 0.001
    log, before = _InterruptedLog("step 2/12"), signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt, match=r"Stopped at step [23], which"):
        t2t_jax.train(config, other, log=log, devices=device)
    assert "saving a checkpoint, then stopping" in log.getvalue()
    assert signal.getsignal(signal.SIGINT) is before
    with ThreadPoolExecutor(1) as pool:  # where no handler can be set
        resumed = pool.submit(
            t2t_jax.train, config.to_dict(), other, quiet=True, devices=device
        )
        model = resumed.result()
    assert capfd.readouterr() == ("", "")
    whole = tiny.load(workdir)
    assert model.step == whole.step
    jax.tree.map(np.testing.assert_array_equal, model.params, whole.params)
    again = t2t_jax.train(None, other, log=log, devices=device)
    assert again.step == model.step
    assert "This run is complete" in log.getvalue()


@pytest.mark.parametrize(
    ("config", "error", "message"),
    [
        (7, TypeError, "takes a config that is a ConfigDict, .* not an int"),
        ({"stpes": 3}, UserError, r"config\.stpes\. Did you mean steps\?"),
        ({}, UserError, "holds another experiment: .* leave the config out"),
        ("phrasebok", InputMissingError, r"Did you mean phrasebook\? Shipped"),
        ("table3:A_h3", UserError, r"none is .A_h3.\..* Rows: base, A_h1"),
    ],
)
def test_what_cannot_be_trained_is_an_exception(workdir, config, error, message):
    with pytest.raises(error, match=message) as caught:
        t2t_jax.train(config, workdir)
    assert "--" not in str(caught.value)


def test_a_model_directory_and_an_empty_one_are_not_resumed(tmp_path):
    with pytest.raises(InputMissingError, match="holds no run to resume"):
        t2t_jax.train(None, tmp_path)
    (tmp_path / "model.json").write_text("{}")
    with pytest.raises(UserError, match="is a model and not a training run"):
        t2t_jax.train(None, tmp_path)
