"""How toy models are quantized for CTranslate2 on this processor."""

from t2t_jax.devices.processor import lacks_vnni

QUANTIZATION = "float16" if lacks_vnni() else "int8"
"""Without VNNI sums of int8 overflow in toy models, whose exports are refused."""
