"""Sphinx's configuration for the web site. The language is set in tools/site/build.py."""

from pathlib import Path

from tools.site import live
from tools.weave.launch import REPOSITORY
from tools.weave.lessons import ROOT

project = "d2l_compat"
author = "The authors of d2l_compat"
extensions = [
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
    "tools.site.citations",
    "tools.site.code",
    "tools.site.context",
    "tools.site.live",
    "tools.site.mathematics",
    "tools.site.reference",
    "tools.site.search",
    "tools.site.tabs",
]

nb_execution_mode = "off"
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_dmath_double_inline = True
myst_heading_anchors = 2  # links to a section, as on GitHub
html_math_renderer = "mathml"

autoapi_dirs = [str(ROOT / "d2l_compat")]
autoapi_ignore = ["*/java/*"]
autoapi_root = "reference"
autoapi_add_toctree_entry = False
autoapi_options = ["members", "imported-members", "inherited-members"]
autoapi_template_dir = str(Path(__file__).parent / "templates" / "autoapi")
autoapi_member_order = "groupwise"
autoapi_python_class_content = "both"
# Docstrings list parameters in numpydoc's format only.
napoleon_google_docstring = False

html_theme = "furo"
html_title = project
html_static_path = ["static", str(live.STATIC)]
html_favicon = "static/favicon.svg"
html_css_files = ["wide.css", "site.css"]
html_js_files = ["site.js", "wide.js", "roots.js"]
templates_path = ["templates"]
locale_dirs = [str(Path(__file__).parent / "locale")]
html_theme_options = {"source_repository": f"{REPOSITORY}/"}
html_show_sourcelink = False
html_show_copyright = False
html_show_sphinx = False  # its text cannot be translated
html_copy_source = False
html_show_search_summary = False  # site.js turns it on if the browser can fetch pages
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
copybutton_selector = "div.highlight:not(.output) pre"
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
