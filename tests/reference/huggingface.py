"""Models of Hugging Face, once more: plain NumPy, on tensors by HF's names.

A MarianMTModel is post-norm; an M2M100ForConditionalGeneration is pre-norm, with
positions from 2 on and no bias of the logits.

It shares no code with the package: one sentence at a time, without masks and caches.
"""

import math

import numpy as np

ACTIVATIONS = {
    "relu": lambda x: np.maximum(0, x),
    "swish": lambda x: x / (1 + np.exp(-x)),
    "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2,
    "quick_gelu": lambda x: x / (1 + np.exp(-1.702 * x)),
}


def layer_norm(x, tensors, name, epsilon):
    centered = x - x.mean(-1, keepdims=True)
    normed = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + epsilon)
    return normed * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]


def linear(x, tensors, name):
    return x @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]


def attend(x, memory, tensors, name, *, heads, causal=False):
    q, k, v = (
        linear(side, tensors, f"{name}.{letter}_proj")
        for side, letter in ((x, "q"), (memory, "k"), (memory, "v"))
    )
    depth = x.shape[1] // heads
    parts = []
    for head in range(heads):
        one = slice(head * depth, (head + 1) * depth)
        scores = q[:, one] @ k[:, one].T / math.sqrt(depth)
        if causal:
            scores = np.where(np.tri(*scores.shape), scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        parts.append(weights / weights.sum(-1, keepdims=True) @ v[:, one])
    return linear(np.concatenate(parts, -1), tensors, f"{name}.out_proj")


def positions(count, d_model, rates, first=0):
    """Sines in the first half of a vector, cosines in the second."""
    half = np.arange(d_model // 2)
    exponents = {"paper": 2 * half / d_model, "marian": half / (d_model / 2 - 1)}
    angles = np.outer(first + np.arange(count), 10000.0 ** -exponents[rates])
    return np.concatenate([np.sin(angles), np.cos(angles)], -1)


class _Model:
    def __init__(self, tensors, config, rates, epsilon):
        self.tensors = {
            name: np.asarray(one, np.float64) for name, one in tensors.items()
        }
        self.config, self.epsilon = config, epsilon
        self.is_m2m = config["model_type"] == "m2m_100"
        self.rates, self.first = ("marian", 2) if self.is_m2m else (rates, 0)

    def table(self, stack):
        shared = self.tensors.get("model.shared.weight")
        return self.tensors.get(f"model.{stack}.embed_tokens.weight", shared)

    def norm(self, x, name):
        return layer_norm(x, self.tensors, f"{name}_norm", self.epsilon)

    def sublayer(self, layer, kind, x, memory, causal):
        if kind == "final":
            activation = ACTIVATIONS[self.config["activation_function"]]
            inner = activation(linear(x, self.tensors, f"{layer}.fc1"))
            return linear(inner, self.tensors, f"{layer}.fc2")
        heads = self.config["encoder_attention_heads"]
        seen, name = x if memory is None else memory, f"{layer}.{kind}"
        return attend(x, seen, self.tensors, name, heads=heads, causal=causal)

    def run(self, stack, ids, memory=None):
        d_model, causal = self.config["d_model"], memory is not None
        stored = self.tensors.get(f"model.{stack}.embed_positions.weight")
        if stored is None:
            stored = positions(len(ids), d_model, self.rates, self.first)
        scale = math.sqrt(d_model) if self.config["scale_embedding"] else 1.0
        x = self.table(stack)[ids] * scale + stored[: len(ids)]
        kinds = [("self_attn", None, causal), ("final", None, False)]
        if causal:
            kinds.insert(1, ("encoder_attn", memory, False))
        for number in range(self.config[f"{stack}_layers"]):
            layer = f"model.{stack}.layers.{number}"
            for kind, *how in kinds:
                name = f"{layer}.{kind}_layer"
                if self.is_m2m:
                    x = x + self.sublayer(layer, kind, self.norm(x, name), *how)
                else:
                    x = self.norm(x + self.sublayer(layer, kind, x, *how), name)
        return self.norm(x, f"model.{stack}.layer") if self.is_m2m else x


def logits(source, target_inputs, tensors, config, *, rates="paper", epsilon=1e-5):
    """Returns logits [T, V] for two lists of ids, without padding."""
    model = _Model(tensors, config, rates, epsilon)
    outputs = model.run("decoder", target_inputs, model.run("encoder", source))
    head = model.tensors.get("lm_head.weight", model.table("decoder"))
    bias = model.tensors.get("final_logits_bias")
    return outputs @ head.T + (0 if bias is None else bias[0])
