"""Writes small models of Marian: random tensors by Marian's names."""

import io

import numpy as np
import sentencepiece

from t2t_jax.exchange.importing.layout import parts_of
from t2t_jax.exchange.importing.marian import marian_name

OPTIONS = {
    "type": "transformer",
    "dim-emb": 8,
    "transformer-heads": 2,
    "transformer-dim-ffn": 12,
    "enc-depth": 2,
    "dec-depth": 1,
    "transformer-ffn-activation": "relu",
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-top": "",
    "tied-embeddings-all": True,
    "tied-embeddings": False,
    "output-omit-bias": False,
}
SENTENCES = ["low lower newest widest", "the new lid is low", "wide is new"]


def sentencepiece_model(size=24, *, kind="bpe", sentences=SENTENCES):
    """Returns a model in Marian's order of ids: </s> 0, <unk> 1."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences),
        model_writer=written,
        model_type=kind,
        vocab_size=size,
        pad_id=-1,
        bos_id=-1,
        eos_id=0,
        unk_id=1,
        minloglevel=2,
    )
    return written.getvalue()


def drawn_layers(config, name_of, rng):
    """Draws both stacks by a toolkit's names: the arrays that `config.model` asks for.

    Transcriptions of the toolkits, tests/reference, know these names by themselves.
    """
    return {
        name_of(path, kind): rng.normal(kind == "scale", 0.3, shape).astype(np.float32)
        for path, shapes in parts_of({"attention_biases": True, **config})
        for kind, shape in shapes.items()
    }


def tensors_of(rng, *, positions=0, size=24, layers=OPTIONS["enc-depth"]):
    """Returns random tensors of `OPTIONS`, for a vocabulary of both sides."""
    d_model, heads = OPTIONS["dim-emb"], OPTIONS["transformer-heads"]
    config = {
        "d_model": d_model,
        "d_ff": OPTIONS["transformer-dim-ffn"],
        **dict.fromkeys(("d_k", "d_v"), d_model // heads),
        "num_heads": heads,
        "num_layers": layers,
        "num_decoder_layers": OPTIONS["dec-depth"],
    }
    tensors = {
        name: array if array.ndim == 2 else array[None]
        for name, array in drawn_layers(config, marian_name, rng).items()
    }
    matrices = {"Wemb": (size, d_model), "decoder_ff_logit_out_b": (1, size)}
    if positions:
        matrices["Wpos"] = (positions, d_model)
    drawn = {n: rng.normal(0, 0.3, shape) for n, shape in matrices.items()}
    return {**tensors, **{name: np.float32(one) for name, one in drawn.items()}}


def save(path, *, positions=0, **options):
    """Writes `model.npz`, with the options padded by NULs as Marian pads them."""
    import yaml

    options = {**OPTIONS, **options}
    layers = options["enc-depth"]
    tensors = tensors_of(np.random.default_rng(0), positions=positions, layers=layers)
    if options["output-omit-bias"]:
        del tensors["decoder_ff_logit_out_b"]
    special = np.frombuffer(yaml.safe_dump(options).encode() + b"\0\0\0", np.int8)
    np.savez(path, **tensors, **{"special:model.yml": special})
