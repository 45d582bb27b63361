"""How the compiler is to go about a program of a test."""

HASTE = {"xla_backend_optimization_level": "0"}
"""Quickly, and every operation rounded by itself: programs that compute the same do so
bit for bit, while optimised ones round as their operations were fused."""
