"""Writes directories of MarianMTModels by hand: JSON, SentencePiece, tensors."""

import functools
import json

import numpy as np
import sentencepiece

from t2t_jax.exchange.importing.layout import torch_name
from tests.exchange.marian_save import drawn_layers, sentencepiece_model

WORDS = ["low"] * 5 + ["lower"] * 2 + ["newest"] * 6 + ["widest"] * 3
CONFIG = {
    **{"model_type": "marian", "architectures": ["MarianMTModel"]},
    **{"d_model": 12, "encoder_ffn_dim": 19, "decoder_ffn_dim": 19},
    **{"encoder_layers": 2, "encoder_attention_heads": 3},
    **{"decoder_layers": 1, "decoder_attention_heads": 3},
    **{"activation_function": "swish", "scale_embedding": True},
    **{"share_encoder_decoder_embeddings": True, "tie_word_embeddings": True},
    **{"max_position_embeddings": 40, "is_encoder_decoder": True},
    **{"bos_token_id": 0, "eos_token_id": 0, "forced_eos_token_id": 0},
    **{"normalize_before": False, "static_position_embeddings": True},
    **{"num_beams": 6, "max_length": 512},
}


@functools.cache
def spm(kind="unigram", size=16):
    return sentencepiece_model(size, kind=kind, sentences=WORDS)


def pieces(model):
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(number) for number in range(len(processor))]


def vocabulary():
    """Pieces and ids of `vocab.json`: not in the order of the SentencePiece model."""
    rest = sorted({*pieces(spm()), *pieces(spm("bpe", 19))} - {"</s>", "<unk>"})
    every = ["</s>", "<unk>", ">>de<<", *rest, "<pad>"]
    return {piece: number for number, piece in enumerate(every)}


def draw(config, *, seed=0):
    """Draws all tensors of a configuration, by HF's names."""
    rng = np.random.default_rng(seed)
    d_model, heads = config["d_model"], config["encoder_attention_heads"]
    ours = {
        **{"d_model": d_model, "d_ff": config["encoder_ffn_dim"], "num_heads": heads},
        **dict.fromkeys(("d_k", "d_v"), d_model // heads),
        "num_layers": config["encoder_layers"],
        "num_decoder_layers": config["decoder_layers"],
        "norm_position": "pre" if config["model_type"] == "m2m_100" else "post",
    }
    tensors = {
        f"model.{name}": np.ascontiguousarray(array.T)
        for name, array in drawn_layers(ours, torch_name, rng).items()
    }
    size, pad = config["vocab_size"], config["pad_token_id"]
    target_size = config.get("decoder_vocab_size", size)
    matrices = {"model.shared": size}
    if not config["share_encoder_decoder_embeddings"]:
        stacks = {"encoder": size, "decoder": target_size}
        matrices = {f"model.{s}.embed_tokens": rows for s, rows in stacks.items()}
    if not config["tie_word_embeddings"]:
        matrices["lm_head"] = target_size
    for name, rows in matrices.items():
        drawn = rng.normal(0, 0.3, (rows, d_model))
        tensors[f"{name}.weight"] = drawn.astype(np.float32)
    if "model.shared" in matrices:
        tensors["model.shared.weight"][pad] = 0
    if ours["norm_position"] == "post":
        bias = rng.normal(0, 0.3, (1, target_size)).astype(np.float32)
        bias[0, pad] = 0
        tensors["final_logits_bias"] = bias
    return tensors


def configuration(**changes):
    size = len(vocabulary())
    ids = {"pad_token_id": size - 1, "decoder_start_token_id": size - 1}
    return {**CONFIG, "vocab_size": size, **ids, **changes}


def write_directory(directory, config=None, tensors=None):
    """Writes a complete directory, with `model.safetensors`."""
    from safetensors.numpy import save_file

    config = configuration() if config is None else config
    tensors = draw(config) if tensors is None else tensors
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "source.spm").write_bytes(spm())
    (directory / "target.spm").write_bytes(spm("bpe", 19))
    (directory / "vocab.json").write_text(json.dumps(vocabulary()))
    tokenizer = {"source_lang": "en", "target_lang": "de"}
    (directory / "tokenizer_config.json").write_text(json.dumps(tokenizer))
    save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})
    return directory


def change_json(path, **changes):
    values = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**values, **changes}))
