"""Draws the state of a model as fairseq saves it: its arguments and tensors."""

import numpy as np

from t2t_jax.exchange.importing.layout import torch_name
from tests.exchange.marian_save import drawn_layers

STACKS = ("encoder", "decoder")
D_MODEL, D_FF, HEADS = 12, 10, 3
POSITIONS = 40


def arguments(**changes):
    both = {
        "embed_dim": D_MODEL,
        "ffn_embed_dim": D_FF,
        "attention_heads": HEADS,
        "normalize_before": False,
        "learned_pos": False,
    }
    args = {f"{stack}_{name}": v for stack in STACKS for name, v in both.items()}
    return args | {
        **{"arch": "transformer_iwslt_de_en", "encoder_layers": 2, "decoder_layers": 3},
        **{"activation_fn": "relu", "dropout": 0.3, "share_all_embeddings": False},
        "share_decoder_input_output_embed": True,
        **{"decoder_input_dim": D_MODEL, "decoder_output_dim": D_MODEL},
        **{"source_lang": "en", "target_lang": "de"},
        **{"adaptive_softmax_cutoff": None, "quant_noise_pq": 0},
        **changes,
    }


class State:
    """Draws the tensors of a model, with names of a new fairseq or of an old one."""

    def __init__(self, args, *, sizes, old=False, seed=0):
        self.rng = np.random.default_rng(seed)
        config = {
            **{"d_model": D_MODEL, "d_ff": D_FF, "num_heads": HEADS},
            **dict.fromkeys(("d_k", "d_v"), D_MODEL // HEADS),
            "num_layers": args["encoder_layers"],
            "num_decoder_layers": args["decoder_layers"],
            "norm_position": "pre" if args["encoder_normalize_before"] else "post",
        }
        layers = drawn_layers(config, torch_name, self.rng)
        self.tensors = {name: array.T for name, array in layers.items()}
        if old:
            self.tensors = old_names(self.tensors)
        for stack, size in zip(STACKS, sizes, strict=True):
            self.tensors[f"{stack}.version"] = np.full(1, 3, np.float32)
            self.draw(f"{stack}.embed_tokens.weight", size, D_MODEL)[1] = 0
            if args[f"{stack}_learned_pos"]:
                self.draw(f"{stack}.embed_positions.weight", POSITIONS + 2, D_MODEL)
            else:
                self.draw(f"{stack}.embed_positions._float_tensor", 1)
        target = self.tensors["decoder.embed_tokens.weight"]
        shared, logits = args["share_all_embeddings"], "output_projection.weight"
        if shared:
            self.tensors["encoder.embed_tokens.weight"] = target
        if not shared and not args["share_decoder_input_output_embed"]:
            self.draw(f"decoder.{'embed_out' if old else logits}", *target.shape)
        elif not old:
            self.tensors[f"decoder.{logits}"] = target

    def draw(self, name, *shape):
        drawn = self.rng.normal(0, 0.3, shape).astype(np.float32)
        return self.tensors.setdefault(name, drawn)


def old_names(tensors):
    """Stacks the projections of each attention, and numbers the norms of a layer."""
    found = {}
    for name, array in tensors.items():
        layer, _, rest = name.rpartition("_layer_norm.")
        if layer:
            layer, _, norm = layer.rpartition(".")
            norms = ["self_attn", *["encoder_attn"] * ("decoder" in name), "final"]
            found[f"{layer}.layer_norms.{norms.index(norm)}.{rest}"] = array
        elif ".q_proj." in name:
            parts = [tensors[name.replace(".q_", f".{kind}_")] for kind in "qkv"]
            attention, _, kind = name.partition(".q_proj.")
            found[f"{attention}.in_proj_{kind}"] = np.concatenate(parts)
        elif ".k_proj." not in name and ".v_proj." not in name:
            found[name] = array
    return found
