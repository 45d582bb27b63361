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
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
    "sphinx_copybutton",
    "sphinx_design",
    # Of docs/_extensions:
    "docstrings",
    "generated_pages",
    "mathml",
    "repository_links",
]
exclude_patterns = ["_build", "**/.ipynb_checkpoints"]
# Words such as "tokens", the unit of a key, that are also names of attributes.
suppress_warnings = ["ref.python"]
# A single backtick in a docstring, as in Markdown.
default_role = "code"
nitpicky = True
nitpick_ignore_regex = [
    # Types in signatures that are other packages', whose sites are not read.
    (
        r"py:class",
        r"(collections\.abc|flax|jax|jaxlib|ml_collections|nn|numpy|optax|pathlib)\..*",
    ),
    # Types of the package whose modules have no page here.
    (
        r"py:class",
        r"t2t_jax\..*\.(Cache|FeedForward|ImportOptions|MultiHeadAttention|Parse"
        r"|RestoredState|RNNConfig|Scorer|Scores|SpecialIds|StepOutput"
        r"|TextsWithAttention|Translator|VocabularyConfig|VocabularyPair)",
    ),
    (r"py:class", r"Parse|SourceLines"),
    (r"py:class", r"Array|Batches|Callback|Mesh|Pairs|Params|PyTree|Schedule"),
    # Units, which attributes have in the place of a type.
    (r"py:class", r"[a-z]+( (/ )?[a-z]+)*"),
    # What docstrings name without its module.
    (r"py:exc", r"(Config|Data|InputMissing|Output|Storage)Error"),
    (r"py:class", r"(\w+Config|ConfigLike|KnownWords|Module|Path|VocabularyPair)"),
]

myst_enable_extensions = ["attrs_block", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4
# Notebooks keep the outputs that they were saved with; the tests execute them.
nb_execution_mode = "off"
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
toc_object_entries_show_parents = "hide"
python_maximum_signature_line_length = 72
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_attr_annotations = False
napoleon_use_rtype = False
napoleon_custom_sections = ["Paper", "Departs"]
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
