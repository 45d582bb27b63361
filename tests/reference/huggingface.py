"""A MarianMTModel of Hugging Face, once more: plain NumPy, on tensors by HF's names.

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


def positions(count, d_model, rates):
    """Sines in the first half of a vector, cosines in the second."""
    half = np.arange(d_model // 2)
    exponents = {"paper": 2 * half / d_model, "marian": half / (d_model / 2 - 1)}
    angles = np.outer(np.arange(count), 10000.0 ** -exponents[rates])
    return np.concatenate([np.sin(angles), np.cos(angles)], -1)


def logits(source, target_inputs, tensors, config, *, rates="paper", epsilon=1e-5):
    """Returns logits [T, V] for two lists of ids, without padding."""
    tensors = {name: np.asarray(one, np.float64) for name, one in tensors.items()}
    activation = ACTIVATIONS[config["activation_function"]]
    heads, d_model = config["encoder_attention_heads"], config["d_model"]
    scale = math.sqrt(d_model) if config["scale_embedding"] else 1.0
    shared = tensors.get("model.shared.weight")

    def table(stack):
        return tensors.get(f"model.{stack}.embed_tokens.weight", shared)

    def run(stack, ids, memory=None):
        stored = tensors.get(f"model.{stack}.embed_positions.weight")
        if stored is None:
            stored = positions(len(ids), d_model, rates)
        x = table(stack)[ids] * scale + stored[: len(ids)]
        for number in range(config[f"{stack}_layers"]):
            layer = f"model.{stack}.layers.{number}"
            name = f"{layer}.self_attn"
            y = attend(x, x, tensors, name, heads=heads, causal=memory is not None)
            x = layer_norm(x + y, tensors, f"{name}_layer_norm", epsilon)
            if memory is not None:
                name = f"{layer}.encoder_attn"
                y = attend(x, memory, tensors, name, heads=heads)
                x = layer_norm(x + y, tensors, f"{name}_layer_norm", epsilon)
            inner = activation(linear(x, tensors, f"{layer}.fc1"))
            y = linear(inner, tensors, f"{layer}.fc2")
            x = layer_norm(x + y, tensors, f"{layer}.final_layer_norm", epsilon)
        return x

    outputs = run("decoder", target_inputs, run("encoder", source))
    head = tensors.get("lm_head.weight", table("decoder"))
    return outputs @ head.T + tensors["final_logits_bias"][0]
