"""Formats of foreign models by name (does not import JAX)."""

IMPORT_FORMATS = ("marian", "hf_marian", "fairseq", "t2t")
"""Values of `--format` with `--mode=import`."""

POSITIONS = ("huggingface", "marian")
"""Values of `--positions`."""
