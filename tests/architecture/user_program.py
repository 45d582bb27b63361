"""A user's program with every public name, for a strict type checker; never run."""

from pathlib import Path

import jax
import numpy as np
import optax
from jax.sharding import Mesh

import t2t_jax


def loss(
    module: object, params: object, batch: t2t_jax.Batch, key: jax.Array
) -> jax.Array:
    network = t2t_jax.Transformer(t2t_jax.TransformerConfig(vocab_size=11))
    logits: jax.Array = t2t_jax.batch_logits(network, params, batch, dropout_key=key)
    return logits.sum()


def own_loop(pairs: list[tuple[str, str]], folder: Path) -> t2t_jax.TrainState:
    lines = (line for pair in pairs for line in pair)
    vocabulary: t2t_jax.Vocabulary = t2t_jax.Vocabulary.train(lines, 2_000, seed=1)
    vocabulary = t2t_jax.Vocabulary.load(folder / "vocab.model")
    module = t2t_jax.Transformer(t2t_jax.TransformerConfig(vocab_size=vocabulary.size))
    optimizer, key = optax.adam(1e-4), jax.random.key(0)
    mesh: Mesh = t2t_jax.make_mesh(jax.devices(), fsdp=2)
    config = t2t_jax.TrainingConfig(micro_batches=2, ema_decay=0.999)
    state = t2t_jax.init_state(module, optimizer, 0, mesh=mesh, ema=True)
    step = t2t_jax.make_train_step(
        module, optimizer, mesh=mesh, config=config, loss=loss
    )
    with (
        t2t_jax.Checkpoints(folder, keep=3) as checkpoints,
        t2t_jax.batches(pairs, vocabulary, mesh=mesh, layout="packed") as batches,
    ):
        if saved := checkpoints.restore(state):
            state = saved.state
        for batch in batches:
            state, output = step(state, batch, key)
            position: tuple[int, int] = batches.position
            if bool(output.applied):
                meta = {"position": position}
                checkpoints.save(int(state.step), state, meta=meta, score=1.0)
    model = t2t_jax.TranslationModel.of(module, state.params, vocabulary)
    bleu: float = t2t_jax.evaluate(model, ["A dog."], ["Ein Hund."])["bleu"]
    print(f"{t2t_jax.__version__}: {bleu:.1f}")
    return state


def search(model: t2t_jax.StepModel, source: jax.Array) -> t2t_jax.BeamResult:
    network = t2t_jax.Transformer(t2t_jax.TransformerConfig(vocab_size=11))
    params = network.init(jax.random.key(0), source, source)["params"]
    model = t2t_jax.step_model(network, params)
    constraint: t2t_jax.Constraint | None = None
    drawn: t2t_jax.BeamResult = t2t_jax.sample(
        model,
        source,
        jax.random.key(1),
        sampling_params=t2t_jax.SamplingParams(temperature=0.7),
    )
    print(drawn.lengths_BxW)
    beam = t2t_jax.BeamParams(beam_size=8)
    return t2t_jax.beam_search(model, source, params=beam, constraint=constraint)


def trained(folder: Path) -> t2t_jax.TranslationModel:
    config = t2t_jax.default_config()
    config = t2t_jax.load_config("phrasebook")
    parsed = t2t_jax.Config(steps=3)
    try:
        model = t2t_jax.train(parsed, folder, train=[("A dog.", "Ein Hund.")])
        model = t2t_jax.train(config, folder)
        model = t2t_jax.import_model(folder / "marian", to=folder / "imported")
    except t2t_jax.UserError as error:
        print(error.problems)
    decoding = t2t_jax.DecodingConfig(beam_size=2)
    model = t2t_jax.load(folder, decoding=decoding)
    found: list[t2t_jax.Translation] = model.translations(["A dog."], n_best=2)
    best: t2t_jax.Hypothesis = found[0].hypotheses[0]
    pair: t2t_jax.PairScore = model.score(["A dog."], [best.text])[0]
    print(pair.log_probability, t2t_jax.translate(folder, ["A dog."]))
    net = t2t_jax.to_nnx(model)
    path: Path = t2t_jax.save_model(
        folder / "new", t2t_jax.from_nnx(net, model), like=folder
    )
    return t2t_jax.load(path)


def rows(batch: t2t_jax.Batch) -> int:
    return int(np.asarray(batch.rows).max())
