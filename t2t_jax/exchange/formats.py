"""Formats of exports and imports by name (does not import JAX)."""

EXPORT_FORMATS = (
    *("model_dir", "safetensors", "ctranslate2", "argos", "hf_marian", "m2m_100"),
    *("marian", "stablehlo"),
)
"""Values of `--format` with `--mode=export`, as in `exporter.FORMATS`."""

QUANTIZED_FORMATS = ("ctranslate2", "argos")
"""The formats that can be quantized."""

FILE_SUFFIXES = {"argos": ".argosmodel"}
"""Of formats that are one file: `--to` with this suffix is that file alone."""

FORBIDDING_FORMATS = ("argos", "marian")
"""The formats whose weights forbid pad and bos, as their programs do not."""

QUANTIZATIONS = ("float32", "float16", "int8", "int8_float32", "int8_float16")
"""Number formats of a CTranslate2 model, by CTranslate2's names."""


IMPORT_FORMATS = ("marian", "m2m_100", "hf_marian", "fairseq", "t2t")
"""Values of `--format` with `--mode=import`."""

POSITIONS = ("huggingface", "marian")
"""Values of `--positions`."""
