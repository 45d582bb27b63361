"""Export formats by name (does not import JAX)."""

EXPORT_FORMATS = ("model_dir", "safetensors", "ctranslate2")
"""Values of `--format` with `--mode=export`."""

QUANTIZATIONS = ("float32", "float16", "int8", "int8_float32", "int8_float16")
"""Number formats of a CTranslate2 model, by CTranslate2's names."""
