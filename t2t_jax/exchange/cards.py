"""Fills the templates of model cards and of what they say of each format."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined


def fill_template(template: str, /, **values: object) -> str:
    """Fills a Markdown file of the folder `templates`, such as "ctranslate2"."""
    return _environment().get_template(f"{template}.md").render(values).rstrip()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("t2t_jax.exchange"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["commas"] = "{:,}".format
    # In a table a bar would begin another column.
    environment.filters["cell"] = lambda text: str(text).replace("|", "\\|")
    return environment
