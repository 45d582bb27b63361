"""Table 3: variations on the base model, WMT 2014 English to German. §6.2.

    python -m t2t_jax.main --config=configs/table3.py:A_h1
    python -m t2t_jax.main --config=configs/table3.py:A_h1 --mode=describe

Data as in configs/wmt_en_de.py; each row changes only the keys it lists. In the
comments: the paper's perplexity (per subword) and BLEU on newstest2013, and millions of
parameters, as in base if omitted. Score: not run yet, no row.
"""

from t2t_jax.config import choose_row, default


def heads(number, depth):
    """Returns the keys for another number of heads, with d_k = d_v = depth."""
    return {"model.num_heads": number, "model.d_k": depth, "model.d_v": depth}


ROWS = {
    "base": {},  # 4.92, 25.8, 65
    "A_h1": heads(1, 512),  # 5.29, 24.9
    "A_h4": heads(4, 128),  # 5.00, 25.5
    "A_h16": heads(16, 32),  # 4.91, 25.8
    "A_h32": heads(32, 16),  # 5.01, 25.4
    "B_dk16": {"model.d_k": 16},  # 5.16, 25.1, 58
    "B_dk32": {"model.d_k": 32},  # 5.01, 25.4, 60
    "C_N2": {"model.num_layers": 2},  # 6.11, 23.7, 36
    "C_N4": {"model.num_layers": 4},  # 5.19, 25.3, 50
    "C_N8": {"model.num_layers": 8},  # 4.88, 25.5, 80
    "C_d256": {"model.d_model": 256, **heads(8, 32)},  # 5.75, 24.5, 28
    "C_d1024": {"model.d_model": 1_024, **heads(8, 128)},  # 4.66, 26.0, 168
    "C_ff1024": {"model.d_ff": 1_024},  # 5.12, 25.4, 53
    "C_ff4096": {"model.d_ff": 4_096},  # 4.75, 26.2, 90
    "D_drop0": {"model.dropout": 0.0},  # 5.77, 24.6
    "D_drop02": {"model.dropout": 0.2},  # 4.95, 25.5
    "D_ls0": {"training.label_smoothing": 0.0},  # 4.67, 25.3
    "D_ls02": {"training.label_smoothing": 0.2},  # 5.47, 25.7
    "E_learned": {
        "model.positions": "learned",
        "decoding.max_source_length": 256,  # no later position is ever trained
    },  # 4.92, 25.7
    "big": {
        **heads(16, 64),
        "model.d_model": 1_024,
        "model.d_ff": 4_096,
        "model.dropout": 0.3,
        "steps": 300_000,
        "checkpoint.keep": 20,
    },  # 4.33, 26.4, 213
}


def get_config(row=""):
    """Returns the configuration of one row."""
    config = default()
    config.data.train = "tfds:wmt14_translate/de-en:train:en-de"
    config.data.dev = "tfds:wmt14_translate/de-en:validation:en-de"
    config.data.held_out = "tfds:wmt14_translate/de-en:test:en-de"
    config.update_from_flattened_dict(choose_row(ROWS, row))
    return config
