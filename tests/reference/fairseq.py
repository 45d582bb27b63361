"""fairseq's Transformer, once more: plain NumPy, float64, on its own tensors and ids.

It shares no code with the package. Sentences are lists of fairseq's ids (bos 0, pad 1,
eos 2, unk 3), without padding; a source ends with eos, and the decoder begins with it.
"""

import math

import numpy as np

PAD, EOS = 1, 2


def layer_norm(x, state, prefix):
    centered = x - x.mean(axis=-1, keepdims=True)
    variance = (centered**2).mean(axis=-1, keepdims=True)
    normed = centered / np.sqrt(variance + 1e-5)
    return normed * state[f"{prefix}.weight"] + state[f"{prefix}.bias"]


def linear(x, state, prefix):
    return x @ state[f"{prefix}.weight"].T + state[f"{prefix}.bias"]


def attention(x, others, state, prefix, *, heads, causal=False):
    """The projections of queries, keys and values are stacked, or apart."""
    width = x.shape[-1]
    if f"{prefix}.in_proj_weight" in state:
        weight, bias = (
            state[f"{prefix}.in_proj_{name}"] for name in ("weight", "bias")
        )
        parts = [slice(n * width, (n + 1) * width) for n in range(3)]
        q, k, v = (
            inputs @ weight[part].T + bias[part]
            for inputs, part in zip((x, others, others), parts, strict=True)
        )
    else:
        q = linear(x, state, f"{prefix}.q_proj")
        k = linear(others, state, f"{prefix}.k_proj")
        v = linear(others, state, f"{prefix}.v_proj")
    depth = width // heads
    mixed = np.zeros_like(x)
    for head in range(heads):
        part = slice(head * depth, (head + 1) * depth)
        for row in range(len(x)):
            seen = row + 1 if causal else len(others)
            scores = k[:seen, part] @ (q[row, part] / math.sqrt(depth))
            weights = np.exp(scores - scores.max())
            mixed[row, part] = weights @ v[:seen, part] / weights.sum()
    return linear(mixed, state, f"{prefix}.out_proj")


def activation(x, name):
    if name == "gelu":
        return np.vectorize(lambda n: n * (1 + math.erf(n / math.sqrt(2))) / 2)(x)
    return np.maximum(x, 0)


def embed(tokens, state, stack, args):
    table = state[f"{stack}.embed_tokens.weight"]
    width = table.shape[1]
    x = table[tokens]
    if not args.get("no_scale_embedding"):
        x = x * math.sqrt(width)
    positions = PAD + 1 + np.arange(len(tokens))
    if args.get(f"{stack}_learned_pos"):
        return x + state[f"{stack}.embed_positions.weight"][positions]
    rates = [
        math.exp(-math.log(10000) * i / (width // 2 - 1)) for i in range(width // 2)
    ]
    angles = np.outer(positions, rates)
    return x + np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


def run_stack(x, state, stack, args, *, memory=None):
    pre, heads = args[f"{stack}_normalize_before"], args[f"{stack}_attention_heads"]
    for number in range(args[f"{stack}_layers"]):
        layer = f"{stack}.layers.{number}"
        named = f"{layer}.final_layer_norm.weight" in state
        names = [
            "self_attn",
            *(["encoder_attn"] if memory is not None else []),
            "final",
        ]
        for index, name in enumerate(names):
            norm = f"{name}_layer_norm" if named else f"layer_norms.{index}"
            y = layer_norm(x, state, f"{layer}.{norm}") if pre else x
            if name == "final":
                inner = activation(
                    linear(y, state, f"{layer}.fc1"), args.get("activation_fn", "relu")
                )
                y = linear(inner, state, f"{layer}.fc2")
            else:
                others = memory if name == "encoder_attn" else y
                causal = name == "self_attn" and memory is not None
                prefix = f"{layer}.{name}"
                y = attention(y, others, state, prefix, heads=heads, causal=causal)
            x = x + y if pre else layer_norm(x + y, state, f"{layer}.{norm}")
    return layer_norm(x, state, f"{stack}.layer_norm") if pre else x


def transformer(source, target_inputs, state, args):
    """Logits [T, V] in fairseq's order of ids."""
    state = {name: np.asarray(array, np.float64) for name, array in state.items()}
    x = embed(source, state, "encoder", args)
    memory = run_stack(x, state, "encoder", args)
    x = embed(target_inputs, state, "decoder", args)
    x = run_stack(x, state, "decoder", args, memory=memory)
    for name in ("output_projection.weight", "embed_out", "embed_tokens.weight"):
        if f"decoder.{name}" in state:
            return x @ state[f"decoder.{name}"].T
    raise AssertionError("no matrix of the logits")


def greedy(source, state, args, *, most):
    """The most probable tokens, neither pad nor bos, and eos not at first."""
    output = []
    while len(output) < most:
        logits = transformer(source, [EOS, *output], state, args)[-1]
        logits[[0, PAD]] = -np.inf
        if not output:
            logits[EOS] = -np.inf
        best = int(logits.argmax())
        if best == EOS:
            break
        output.append(best)
    return output
