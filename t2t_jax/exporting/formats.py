"""What a model can be exported to, by name; no JAX is needed."""

FORMS = ("model_dir", "safetensors", "ctranslate2")
"""What `--to` may be with `--mode=export`."""

QUANTIZATIONS = ("float32", "float16", "int8", "int8_float32", "int8_float16")
"""What the numbers of CTranslate2's model may be written as, by its names for it."""
