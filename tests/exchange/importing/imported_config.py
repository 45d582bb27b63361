"""The configuration of an imported model."""

from t2t_jax.config import default, parse


def config_of(imported):
    config = default()
    for key, value in imported.config.items():
        section, name = key.split(".")
        config[section][name] = value
    return parse(config)
