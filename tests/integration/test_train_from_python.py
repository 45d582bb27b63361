"""`t2t_jax.train` with what only a program has: pairs, callbacks, several processes.

Seen to fail: where an exception of a callback left the loop at once; where the pairs
of a resumed run were not compared.
"""

import dataclasses
import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn

import t2t_jax
from t2t_jax.data.corpora.open import open_corpus
from t2t_jax.errors import DataError, UserError
from t2t_jax.model.feed_forward import FeedForward
from t2t_jax.training.optimizer import make_schedule
from tests.faults import running
from tests.integration import tiny

PAIRS = list(open_corpus(tiny.TINY["data.train"]))
DEV = list(open_corpus(tiny.TINY["data.dev"]))


def configured(tmp_path, **changed):
    config = t2t_jax.default_config()
    flat = {**tiny.TINY, "data.train": "", "data.dev": "", "logging.every_steps": 1}
    flat |= {"data.cache_dir": str(tmp_path / "cache"), "model.dropout": 0.3}
    changed = {key.replace("__", "."): value for key, value in changed.items()}
    config.update_from_flattened_dict(flat | changed)
    return config


def test_pairs_train_as_files_do_and_a_callback_s_error_loses_nothing(tmp_path):
    specs = {"data__train": tiny.text_of(tmp_path, "train", PAIRS)}
    specs["data__dev"] = tiny.text_of(tmp_path, "dev", DEV)
    whole, run, seen = tmp_path / "whole", tmp_path / "run", []
    few, one = (
        {"steps": 6, "evaluation__every_steps": 4},
        {"devices": jax.devices()[:1]},
    )
    t2t_jax.train(configured(tmp_path, **few, **specs), whole, quiet=True, **one)

    def fail(record, state):
        assert state.params["embedding"]["table"].shape[1] == 16
        assert record["loss"] > 0
        seen.append((record["kind"], record["step"], int(state.step)))
        if record["step"] == 2:
            raise ZeroDivisionError("mine")

    config = configured(tmp_path, **few)
    dev = [{"translation": {"en": source, "de": target}} for source, target in DEV]
    how = {"callbacks": [fail], "quiet": True, **one}
    with pytest.raises(ZeroDivisionError, match="mine"):
        t2t_jax.train(config, run, train=iter(PAIRS), dev=dev, **how)
    assert seen == [("train", 1, 1), ("train", 2, 2)]
    assert running.saved(run) == [2]
    others = [*PAIRS[:-1], ("a", "b")]
    with pytest.raises(DataError, match="other content of: train"):
        t2t_jax.train(config, run, train=others, dev=dev)
    seen.clear()
    callbacks = [lambda record, _: seen.append((record["kind"], record["step"]))]
    how = {"callbacks": callbacks, "quiet": True, **one}
    model = t2t_jax.train(None, run, train=iter(PAIRS), dev=iter(dev), **how)
    # The evaluation comes after the record of its step.
    kinds = [kind for kind, _ in seen]
    assert kinds == ["train", "train", "eval"] * 2
    assert [step for _, step in seen] == [3, 4, 4, 5, 6, 6]
    running.require_same(run, whole, 6)
    texts = [(one / "fingerprints.json").read_bytes() for one in (run, whole)]
    assert texts[0] == texts[1]
    other = tiny.load(whole)
    assert model.translate(["Two men."]) == other.translate(["Two men."])
    done = tiny.succeed(f"--workdir={run}", "--config.steps=7")
    assert b"Resuming from step 6" in done.stderr


PROGRAM = """
import json, sys
import jax
import t2t_jax
from t2t_jax.data.corpora.open import open_corpus

address, rank, workdir, values, text = sys.argv[1:]
jax.distributed.initialize(address, 2, int(rank), heartbeat_timeout_seconds=10)

def callback(record, state):
    if record["step"] == 3 and rank == "1":
        raise ZeroDivisionError("mine")

config = json.loads(values)
try:
    pairs = iter(open_corpus(text))
    t2t_jax.train(config, workdir, train=pairs, callbacks=[callback])
except (ZeroDivisionError, t2t_jax.UserError) as error:
    print(error)
model = t2t_jax.train(None, workdir)
again = t2t_jax.train(None, workdir)  # A complete run is only loaded.
print(model.step, again.step, model.translate(["Two men."]))
"""


def test_two_processes_end_with_a_callback_of_one_and_go_on_together(tmp_path):
    how = {"evaluation__every_steps": 0, "data__tokens_per_batch": 512, "steps": 4}
    config = configured(tmp_path, checkpoint__every_steps=2, **how)
    given = str(tmp_path / "run"), json.dumps(config.to_dict()), tiny.TINY["data.train"]
    argv = ("-c", PROGRAM, running.free_address())
    done = tiny.run_together(lambda k: tiny.succeed(*argv, str(k), *given, devices=2))
    first, second = (one.stdout for one in done)
    assert b"Resuming from step 3 " in done[0].stderr
    assert b"A callback of another process has raised" in first
    assert b"mine\n4 4 " in second
    assert first.splitlines()[-1] == second.splitlines()[-1]
    ours = running.metrics(tmp_path / "run")
    assert [one["step"] for one in ours] == [*range(1, 5), 4]


class Gated(nn.Module):
    """A model that shares nothing with the package but how it is called."""

    vocab_size: int
    width: int = 16

    @nn.compact
    def __call__(
        self, source, target_inputs, *, source_segments=None, target_segments=None,
        source_positions=None, target_positions=None, rows=None, deterministic=True,
    ):  # fmt: skip
        embed = nn.Embed(self.vocab_size, self.width, name="embedding")
        if source_segments is None:
            source_segments, target_segments = source > 0, target_inputs > -1
        same = target_segments[:, :, None] == source_segments[:, None, :]
        weights = same / jnp.maximum(same.sum(-1, keepdims=True), 1)
        x = embed(target_inputs) + weights @ embed(source)
        x = nn.Dropout(0.2, deterministic=deterministic)(x)
        return nn.Dense(self.vocab_size)(nn.swish(nn.Dense(self.width)(x)) * x)


class Doubled(t2t_jax.Transformer):
    """The Transformer with another block: what the decoder computes is doubled."""

    scale: float = 2.0

    def decode(self, *args, **kwargs):
        return self.scale * super().decode(*args, **kwargs)


class Wide(FeedForward):
    """Another class, which is another model."""


def quick(tmp_path, **changed):
    how = {"steps": 2, "evaluation__every_steps": 2, "data__dev": tiny.TINY["data.dev"]}
    how |= {"data__train": tiny.TINY["data.train"], "checkpoint__every_steps": 2}
    return configured(tmp_path, **how | changed)


def sized(config, kind, **attributes):
    names = {one.name for one in dataclasses.fields(t2t_jax.TransformerConfig)}
    keys = {key: value for key, value in config.model.items() if key in names}
    network = t2t_jax.TransformerConfig(vocab_size=150, **keys)
    return kind(network, **attributes)


def check_that_a_directory_names(module, model, *, run, to, load):
    settings = {"decoding": model.decoding, "step": model.step}
    parts = model.params, model.vocabularies.target
    own = t2t_jax.TranslationModel.of(module, *parts, **settings)
    if isinstance(module, Gated):
        with pytest.raises(TypeError, match="whose module has a TransformerConfig"):
            t2t_jax.save_model(to / "own", own)
        return
    t2t_jax.save_model(to / "own", own)
    with pytest.raises(UserError, match=r"was trained with the module .*Pass"):
        t2t_jax.load(to / "own")
    for one in (own, load(to / "own", module=module)):
        assert one.translate(["A dog."]) == model.translate(["A dog."])
    plain = t2t_jax.Transformer(module.config)
    forgotten = t2t_jax.TranslationModel.of(plain, *parts, **settings)
    with pytest.raises(ValueError, match="must have the module of"):
        t2t_jax.save_model(to / "forgotten", forgotten, like=run)
    directories = [to / "own", t2t_jax.save_model(to / "plain", forgotten)]
    for first, other in (directories, directories[::-1], directories[:1] * 2):
        both = t2t_jax.load(first, ensemble=[other], module=module)
        assert [type(one.module) for one in (both, *both.others)] == [
            {"own": Doubled, "plain": t2t_jax.Transformer}[one.name]
            for one in (first, other)
        ]
    with pytest.raises(UserError, match="No model of the ensemble was trained with"):
        t2t_jax.load(to / "plain", ensemble=[to / "plain"], module=module)
    late = dataclasses.replace(own, step=77)
    with pytest.raises(UserError, match="one of the steps"):
        t2t_jax.save_model(to / "late", late, like=run)


@pytest.mark.parametrize("kind", ["own", "changed"])
def test_a_module_of_one_s_own_trains_is_searched_resumed_and_loaded(kind, tmp_path):
    config, run = quick(tmp_path, training__frozen="embedding"), tmp_path / "run"
    module, other = Gated(150), Gated(150, width=8)
    devices = None
    if kind == "changed":
        devices = jax.devices()[:1]
        module = sized(config, Doubled)
        other = sized(config, Doubled, feed_forward=Wide)
        # What is trained is what the configuration says afterwards.
        config.model.num_layers = 5
    load = functools.partial(t2t_jax.load, devices=devices)
    how = {"module": module, "devices": devices, "quiet": True}
    model = t2t_jax.train(config, run, **how)
    saved = json.loads((run / "config.json").read_text())
    assert saved["python"]["module"].startswith(f"{__name__}.{type(module).__name__}(")
    assert kind == "own" or saved["model"]["num_layers"] == 1
    assert [one["kind"] for one in running.metrics(run)].count("eval") == 1
    assert "Parameters" in (run / "report.html").read_text("utf-8")
    # Teacher forcing gives the tokens of the search the same probability.
    lines = ["Two men.", "A dog barks."]
    for one in model.translations(lines, token_scores=True, beam_size=3):
        best = one.hypotheses[0]
        total = sum(best.token_log_probabilities)
        assert total == pytest.approx(best.log_probability, rel=1e-4)
    with pytest.raises(UserError, match=r"was trained with the module .*Pass"):
        t2t_jax.load(run)
    for wrong in (None, other):
        with pytest.raises(UserError, match=r"python\.module was .* Pass the o"):
            t2t_jax.train(None, run, module=wrong)
    assert load(run, module=module).translate(lines) == model.translate(lines)
    check_that_a_directory_names(module, model, run=run, to=tmp_path, load=load)
    config.steps = 3
    resumed = t2t_jax.train(config, run, **how)
    whole = t2t_jax.train(config, tmp_path / "whole", **how)
    jax.tree.map(np.testing.assert_array_equal, resumed.params, whole.params)
    export = ("export", "--format=model_dir", f"--to={tmp_path / 'model'}")
    for mode, *flags in (["train"], ["translate"], export, ["describe"]):
        done = tiny.run(f"--mode={mode}", f"--workdir={run}", *flags)
        assert done.returncode in (1, 78), done.stderr
        assert b"t2t_jax." in done.stderr
        assert type(module).__name__.encode() in done.stderr


def rates(run):
    return [record.get("learning_rate") for record in running.metrics(run)]


def test_the_configured_adam_given_as_an_object_trains_the_same(tmp_path):
    schedule = make_schedule(t2t_jax.Config().optimizer, d_model=16)
    adam = optax.adam(schedule, b1=0.9, b2=0.98, eps=1e-9)
    few = {"steps": 3, "evaluation__every_steps": 0, "checkpoint__every_steps": 3}
    config = quick(tmp_path, training__ema_decay=0.9, **few)
    theirs, how = tmp_path / "theirs", {"devices": jax.devices()[:1], "quiet": True}
    t2t_jax.train(config, theirs, **how)
    wanted = running.parameters(theirs, 3)
    for name, own, shown in (
        ("schedule", schedule, rates(theirs)),
        ("optimizer", adam, [None] * 4),
    ):
        ours = tmp_path / name
        t2t_jax.train(config, ours, optimizer=own, **how)
        running.require_bit_equal(running.parameters(ours, 3), wanted)
        assert rates(ours) == shown
        with pytest.raises(UserError, match=r"python\.optimizer was '.+' when"):
            t2t_jax.train(None, ours, optimizer=optax.sgd(0.1))


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"module": Gated}, TypeError, "an object of a Flax Linen module, not 'the cl"),
        ({"module": Gated(151)}, TypeError, r"\[2, 3, 150\] .* returns float32\[2, 3"),
        ({"module": nn.Dense(3)}, TypeError, "takes 2 positional arguments but 3"),
        ({"optimizer": "adam"}, TypeError, "GradientTransformation of Optax, .* 'ada"),
        ({"optimizer": abs}, UserError, "schedule_free takes no schedule"),
        ({"callbacks": [7]}, TypeError, "train takes callbacks .* not an int"),
        ({"callbacks": 7}, TypeError, "train takes callbacks .* not an int"),
    ],
)
def test_what_cannot_be_trained_is_refused_at_once(given, error, message, tmp_path):
    name = "schedule_free" if given.get("optimizer") is abs else "adam"
    config = quick(tmp_path, optimizer__name=name)
    with pytest.raises(error, match=message):
        t2t_jax.train(config, tmp_path / "run", **given)
    assert not (tmp_path / "run").exists()
