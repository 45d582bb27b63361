"""Maps flag names of other toolkits to the flags to suggest in errors.

None of them is accepted as a synonym: units differ (sentences and tokens, epochs and
steps), so the meaning of a value would change silently.
"""

from __future__ import annotations

_BATCH = "data.tokens_per_batch"
_IN_TOKENS = "batches are counted in tokens"
_IN_STEPS = "training is counted in optimizer steps"
_FLAGS: dict[str, tuple[str, ...]] = {
    "workdir": (
        *("w", "model", "model_dir", "model_path", "output_dir", "save_dir", "logdir"),
        *("checkpoint_dir", "ckpt_dir", "run", "run_dir", "work_dir", "models"),
    ),
    "beam_size": ("beam", "beams", "num_beams", "beam_width"),
    "n_best": ("n", "nbest", "num_return_sequences"),
    "length_penalty": ("alpha", "lenpen", "lp"),
    "sample": ("do_sample", "sampling"),
    "source": ("s", "src", "source_file", "sources"),
    "reference": ("r", "tgt", "trg", "ref", "refs", "references", "hyp_ref"),
    "input": ("i", "in", "infile", "input_file"),
    "output": ("o", "out", "outfile", "output_file"),
    "config": ("c", "cfg", "conf", "config_file", "hparams"),
    "mode": ("m", "task", "command", "action"),
    "checkpoint": ("ckpt", "checkpoint_path"),
    "version": ("v", "V"),
    "help": ("?", "usage", "helpshort", "helpxml"),
    "devices": ("num_devices",),
}
_KEYS: dict[str, tuple[str, ...]] = {
    _BATCH: ("bs", "batch", "batchsize", "batch_size", "batch_tokens", "max_tokens"),
    "steps": (
        *("epochs", "num_epochs", "max_epochs", "num_train_epochs", "iterations"),
        *("train_steps", "num_train_steps", "num_steps", "max_steps", "max_updates"),
        *("max_update", "max_train_steps"),
    ),
    "optimizer.peak_learning_rate": ("lr", "learning_rate", "peak_lr", "max_lr"),
    "optimizer.warmup_steps": ("warmup", "warmup_updates", "num_warmup_steps"),
    "optimizer.beta1": ("adam_beta1",),
    "optimizer.beta2": ("adam_beta2",),
    "optimizer.epsilon": ("eps", "adam_eps", "adam_epsilon"),
    "model.d_model": ("hidden_size", "hidden_dim", "emb_dim", "embed_dim", "dim"),
    "model.d_ff": ("ffn_dim", "filter_size", "dim_feedforward", "intermediate_size"),
    "model.num_heads": ("heads", "n_heads", "nhead", "num_attention_heads"),
    "model.num_layers": ("layers", "n_layers", "num_hidden_layers", "encoder_layers"),
    "model.num_decoder_layers": ("decoder_layers", "dec_layers", "dec_depth"),
    "model.activation": ("activation_fn", "activation_function", "hidden_act"),
    "model.scale_embeddings": ("scale_embedding", "scale_emb"),
    "model.compute_dtype": ("dtype", "precision", "fp16", "bf16", "amp"),
    "model.remat": ("gradient_checkpointing", "checkpoint_activations"),
    "training.label_smoothing": ("smoothing", "label_smoothing_factor"),
    "training.micro_batches": (
        *("accum", "accumulate", "update_freq", "accum_count"),
        "gradient_accumulation_steps",
    ),
    "vocabulary.size": ("vocab_size", "vocabulary_size", "spm_size"),
    "vocabulary.file": ("vocab", "vocab_file", "spm_model", "tokenizer"),
    "data.train": ("train_file", "train_data", "data_dir", "dataset", "train_path"),
    "data.dev": ("valid", "validation", "dev_file", "valid_data", "validation_file"),
    "data.max_length": ("max_len", "max_seq_length", "max_sequence_length", "seq_len"),
    "data.workers": ("num_workers", "threads", "num_threads", "jobs", "j"),
    "checkpoint.every_steps": ("save_steps", "save_every", "save_interval_updates"),
    "checkpoint.keep": ("save_total_limit", "keep_last", "max_to_keep"),
    "evaluation.every_steps": ("eval_steps", "eval_every", "valid_steps"),
    "logging.every_steps": ("log_steps", "log_every", "logging_steps", "log_interval"),
    "mesh.data": ("gpus", "num_gpus", "n_gpus", "world_size"),
}
_REASONS = {
    "epochs": _IN_STEPS,
    "num_epochs": _IN_STEPS,
    "max_epochs": _IN_STEPS,
    "num_train_epochs": _IN_STEPS,
    **{name: _IN_TOKENS for name in _KEYS[_BATCH]},
}
_NAMES = {
    **{name: f"--{flag}" for flag, names in _FLAGS.items() for name in names},
    **{name: f"--config.{key}" for key, names in _KEYS.items() for name in names},
}
_SEARCHES = ("translate", "evaluate")


def suggest_flag(name: str, *, mode: str) -> tuple[str, str]:
    """Finds the flag that corresponds to a name of another toolkit.

    Args:
      mode: of the command line; `-b` and `--batch_size` depend on it.

    Returns:
      The flag with its dashes, or "", and a reason where the unit differs, or "".

    Example:
      >>> suggest_flag("num_beams", mode="translate")
      ('--beam_size', '')
      >>> suggest_flag("epochs", mode="train")
      ('--config.steps', 'training is counted in optimizer steps')
    """
    plain = name.replace("-", "_").removeprefix("config.").rpartition(".")[2]
    if plain == "b":
        plain = "beam" if mode in _SEARCHES else "batch_size"
    meant = _NAMES.get(plain) or _NAMES.get(plain.lower(), "")
    if meant == f"--config.{_BATCH}" and mode in _SEARCHES:
        meant = "--config.decoding.tokens_per_batch"
    return meant, _REASONS.get(plain.lower(), "")
