"""Draws the state of a model as fairseq saves it: its arguments and tensors."""

import numpy as np

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
        self.tensors, self.args, self.old = {}, args, old
        self.rng = np.random.default_rng(seed)
        for stack, size in zip(STACKS, sizes, strict=True):
            self.draw_stack(stack, size)
        self.tie()

    def draw(self, name, *shape, center=0.0, scale=0.3):
        self.tensors[name] = self.rng.normal(center, scale, shape).astype(np.float32)

    def draw_linear(self, name, outputs, inputs):
        self.draw(f"{name}.weight", outputs, inputs)
        self.draw(f"{name}.bias", outputs)

    def draw_norm(self, name):
        self.draw(f"{name}.weight", D_MODEL, center=1.0, scale=0.1)
        self.draw(f"{name}.bias", D_MODEL)

    def draw_stack(self, stack, size):
        self.tensors[f"{stack}.version"] = np.full(1, 3, np.float32)
        self.draw(f"{stack}.embed_tokens.weight", size, D_MODEL)
        self.tensors[f"{stack}.embed_tokens.weight"][1] = 0
        if self.args[f"{stack}_learned_pos"]:
            self.draw(f"{stack}.embed_positions.weight", POSITIONS + 2, D_MODEL)
        else:
            self.draw(f"{stack}.embed_positions._float_tensor", 1)
        names = ["self_attn", *(["encoder_attn"] if stack == "decoder" else [])]
        for number in range(self.args[f"{stack}_layers"]):
            self.draw_layer(f"{stack}.layers.{number}", names)
        if self.args[f"{stack}_normalize_before"]:
            self.draw_norm(f"{stack}.layer_norm")

    def draw_layer(self, layer, names):
        for name in names:
            if self.old:
                self.draw(f"{layer}.{name}.in_proj_weight", 3 * D_MODEL, D_MODEL)
                self.draw(f"{layer}.{name}.in_proj_bias", 3 * D_MODEL)
            for letter in "" if self.old else "qkv":
                self.draw_linear(f"{layer}.{name}.{letter}_proj", D_MODEL, D_MODEL)
            self.draw_linear(f"{layer}.{name}.out_proj", D_MODEL, D_MODEL)
        for index, name in enumerate([*names, "final"]):
            norm = f"layer_norms.{index}" if self.old else f"{name}_layer_norm"
            self.draw_norm(f"{layer}.{norm}")
        self.draw_linear(f"{layer}.fc1", D_FF, D_MODEL)
        self.draw_linear(f"{layer}.fc2", D_MODEL, D_FF)

    def tie(self):
        target = self.tensors["decoder.embed_tokens.weight"]
        shared, logits = self.args["share_all_embeddings"], "output_projection.weight"
        if shared:
            self.tensors["encoder.embed_tokens.weight"] = target
        if not shared and not self.args["share_decoder_input_output_embed"]:
            self.draw(f"decoder.{'embed_out' if self.old else logits}", *target.shape)
        elif not self.old:
            self.tensors[f"decoder.{logits}"] = target
