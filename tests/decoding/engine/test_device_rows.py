import dataclasses
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from t2t_jax.data.vocabulary.pair import VocabularyPair
from t2t_jax.decoding.config import DecodingConfig
from t2t_jax.decoding.engine import chunked_decode
from t2t_jax.decoding.engine.chunked_decode import chunked_search
from t2t_jax.decoding.engine.device_rows import (
    devices_of,
    gather_rows,
    shard_rows,
)
from t2t_jax.decoding.scoring.scorer import Scorer
from t2t_jax.decoding.scoring.teacher_forcing import rescore_rows
from t2t_jax.decoding.search.beam_state import BeamSearch
from t2t_jax.decoding.search.static_params import BeamParams
from t2t_jax.decoding.text.distributed_translate import Translate
from t2t_jax.decoding.text.translator import Translator
from t2t_jax.devices.distributed.gather import replicate
from t2t_jax.model.architectures import step_model
from t2t_jax.model.rnn.rnn import RNN
from t2t_jax.model.transformer import Transformer
from tests.decoding.models import recurrent
from tests.decoding.words import Numbers, numbers
from tests.model.tiny import TINY, TINY_RNN, rnn_params, tiny_params

CONFIG = DecodingConfig(
    beam_size=3, max_source_length=11, max_extra_tokens=2, tokens_per_batch=3 * 13
)


WORDS = VocabularyPair(Numbers(), Numbers())
LINES, TARGETS = (numbers(53, least=1, longest=10, seed=seed) for seed in (0, 1))


def mesh_over(devices, *shape):
    names = tuple("data fsdp tensor".split()[: len(shape)])
    placed = np.asarray(devices).reshape(shape)
    return Mesh(placed, names, axis_types=(AxisType.Auto,) * len(shape))


# --- the pieces


def test_the_devices_are_those_that_hold_the_model():
    assert devices_of({"a": np.ones(3)}).devices.tolist() == [jax.devices()[0]]
    third = jax.device_put(1.0, jax.devices()[3])
    # An array that was put nowhere follows one that was.
    assert devices_of([jnp.ones(2), third]).devices.tolist() == [jax.devices()[3]]
    backwards = jax.devices()[5:1:-1]
    held = jax.device_put(
        np.ones((2, 7)), NamedSharding(mesh_over(backwards, 2, 2), P())
    )
    assert devices_of({"kernel": held}).devices.tolist() == backwards


def test_rows_go_to_the_devices_and_come_back_in_order():
    mesh = devices_of(replicate(np.ones(3), jax.devices()[:5]))
    rows = np.arange(15 * 7).reshape(15, 7)
    parts = shard_rows(rows, mesh)
    assert parts.shape == (5, 3, 7)
    for number, device in enumerate(jax.devices()[:5]):
        (part,) = (s.data for s in parts.addressable_shards if s.device == device)
        np.testing.assert_array_equal(part[0], rows[3 * number : 3 * number + 3])
    np.testing.assert_array_equal(gather_rows({"a": parts})["a"], rows)


# --- the same translations on any number of devices


def _transformer(**changed):
    config = dataclasses.replace(TINY, num_layers=1, **changed)
    return Transformer(config), tiny_params(config)


def _rnn():
    config = dataclasses.replace(TINY_RNN, num_layers=1)
    return RNN(config), rnn_params(config)


MODELS = {
    "sinusoidal": _transformer,
    "learned": lambda: _transformer(positions="learned", max_positions=13),
    "rnn": _rnn,
}


def translator(module, params, devices):
    placed = replicate(params, jax.devices()[:devices])
    return Translator(step_model(module, placed), WORDS, CONFIG)


def scorer(module, params, devices):
    placed = {"params": replicate(params, jax.devices()[:devices])}
    return Scorer(module.apply, placed, WORDS, CONFIG, max_length=13)


@pytest.mark.parametrize("name", MODELS)
def test_eight_devices_translate_and_score_as_one_does(name):
    model = MODELS[name]()
    alone = translator(*model, 1).translations(LINES)
    assert len({translation.score for translation in alone}) > 40
    scores = scorer(*model, 1).scores(LINES, TARGETS)
    for number in (0, 1, 5, 53):
        together = translator(*model, 8).translations(LINES[:number])
        for one, eight in zip(alone[:number], together, strict=True):
            assert (one.text, one.truncated) == (eight.text, eight.truncated)
            assert math.isclose(one.score, eight.score, abs_tol=1e-5)
        found = scorer(*model, 8).scores(LINES[:number], TARGETS[:number])
        for one, eight in zip(scores[:number], found, strict=True):
            assert one.tokens == eight.tokens
            np.testing.assert_allclose(
                one.token_log_probabilities, eight.token_log_probabilities, atol=1e-5
            )


def test_devices_that_are_done_wait_for_those_that_are_not():
    # Chunks of 32: the row of the last device alone goes into the second.
    model = recurrent(3, 29, eos_bias=-60.0)
    sources = np.zeros((8, 37), np.int32)
    sources[:, 0], sources[7, 1:36] = 5, 6
    sizes = {"max_extra_tokens": 3, "search_params": BeamParams(beam_size=2)}
    alone = chunked_search(model, sources, **sizes)
    together = chunked_search(replicate(model, jax.devices()), sources, **sizes)
    assert alone.lengths_BxW[:, 0].tolist() == [4] * 7 + [39]
    for one, eight in zip(alone, together, strict=True):
        np.testing.assert_allclose(one, eight, rtol=1e-5)


def test_the_devices_exchange_nothing():
    module, params = _transformer()
    params = replicate(params, jax.devices())
    model, mesh = step_model(module, params), devices_of(params)
    source = shard_rows(np.full((24, 11), 5, np.int32), mesh)
    search = BeamSearch(model, BeamParams(beam_size=3))

    def program(function, parts, *sizes):
        return chunked_decode.on_devices.lower(function, mesh, sizes, search, parts)

    sizes = (2, 13, 13)
    parts = (source, {})
    memory, state = chunked_decode.on_devices(
        chunked_decode.start, mesh, sizes, search, parts
    )
    start = program(chunked_decode.start, parts, *sizes)
    advance = chunked_decode.advance.lower(mesh, (search, np.int32(13)), memory, state)
    grow = program(chunked_decode.grow, state, 17)
    collect = program(chunked_decode.collect, state)
    places = shard_rows(np.zeros(8, np.int32), mesh)
    take = program(chunked_decode.take, (memory, state, places))
    score = rescore_rows.lower(
        ({"params": params},), (source, source), applies=(module.apply,), mesh=mesh
    )
    collectives = re.compile("all-|reduce-scatter|collective|send|recv")
    for lowered in (start, grow, advance, collect, take, score):
        program = lowered.compile().as_text()
        assert "num_partitions=8" in program
        assert collectives.findall(program) == []


# --- while a model is trained


@pytest.mark.parametrize("shape", [(8,), (2, 2, 2)])
def test_parameters_are_translated_with_wherever_a_run_has_put_them(shape):
    module, params = _transformer()
    mesh = mesh_over(jax.devices(), *shape)
    spec = P("fsdp") if len(shape) > 1 else P()

    def put(leaf):
        even = leaf.shape[0] % 2 == 0
        return jax.device_put(leaf, NamedSharding(mesh, spec if even else P()))

    translate = Translate(
        make_model=lambda params: step_model(module, params),
        vocabularies=WORDS,
        config=CONFIG,
    )
    expected = translator(module, params, 1).translate(LINES)
    outputs = translate(jax.tree.map(put, params), LINES)
    assert [output.text for output in outputs] == expected
