"""Settings of the site. `bash launch/docs.sh` builds it into `_build/html`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

from t2t_jax.version import __version__

project = "t2t_jax"
author = "The t2t_jax developers"
project_copyright = "The t2t_jax developers, Apache-2.0"
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx_copybutton",
    # Of docs/_extensions:
    "mathml",
    "repository_links",
]
exclude_patterns = ["_build", "**/.ipynb_checkpoints"]
nitpicky = True

myst_enable_extensions = ["deflist", "dollarmath"]
myst_heading_anchors = 4
# Notebooks keep the outputs that they were saved with; the tests execute them.
nb_execution_mode = "off"
nb_merge_streams = True

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

html_theme = "sphinx_book_theme"
html_title = "t2t_jax"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["math_font.js"]
html_copy_source = False
html_show_sphinx = False
html_last_updated_fmt = None
html_math_renderer = "mathml"
html_theme_options = {
    "repository_url": "https://github.com/t2t-jax/t2t_jax",
    "use_repository_button": True,
    "use_issues_button": True,
    "use_download_button": False,
    "path_to_docs": "docs",
    "home_page_in_toc": False,
    # The bar beside the contents has these already.
    **{part: [] for part in ("navbar_start", "navbar_center", "navbar_end")},
    "navbar_persistent": [],
    "show_navbar_depth": 1,
    "show_toc_level": 2,
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
}
