"""Configuration of the documentation: `make docs` builds it into docs/_build/html."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.util.nodes import make_refnode

sys.path.insert(0, str(Path(__file__).parent))

import pages

import fluidcc

# Kernels of pages draw into the page, as SVG, whatever backend the shell has chosen, as CI does.
os.environ.pop("MPLBACKEND", None)
os.environ["IPYTHONDIR"] = str(pages.MADE / "ipython")

project = "fluidcc"
author = "the fluidcc authors"
copyright = author
version = release = fluidcc.__version__

# Markdown with executed cells; MathJax comes with the site, so that it can be read without a net.
extensions = [
    "myst_nb",
    "sphinx-mathjax-offline",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.mathjax",
]
exclude_patterns = ["_build", "**/.ipynb_checkpoints"]
myst_enable_extensions = [
    "amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath", "substitution",
]  # fmt: skip
myst_heading_anchors = 3
myst_substitutions = pages.counts()
# Formulas between dollars in what a cell returns as HTML, such as `fc.prove(fc.LDCC)`.
myst_mathjax_classes = "tex2jax_process|mathjax_process|math|output_area|text_html"
mathjax3_config = {"tex": {"inlineMath": [["\\(", "\\)"], ["$", "$"]]}}
# Cells of pages are run. Notebooks bring their outputs, which `make notebooks` checks.
nb_execution_mode = "auto"
nb_execution_excludepatterns = ["made/notebooks/*"]
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_merge_streams = True
nb_output_stderr = "remove"  # bars of what is compiled the first time
default_role = "py:obj"  # single backticks are links where there is something to link to
autodoc_typehints = "none"  # types stand in the docstrings' tables
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_ivar = True  # attributes in the class's own table, and not a second time as members
napoleon_preprocess_types = True
napoleon_type_aliases = {kind.__name__: pages.path(kind) for kind in pages.RESULTS.values()}

html_theme = "pydata_sphinx_theme"
html_title = f"fluidcc {version}"
html_favicon = "_static/favicon.svg"
html_static_path = ["_static"]
html_js_files = ["verdicts.js", "any_words.js"]
html_css_files = ["fluidcc.css"]
html_show_sourcelink = False
html_sidebars = {"*": []}  # pages of the top have no section to navigate
html_context = {"default_mode": "auto"}
html_theme_options = {
    "navigation_with_keys": False,
    "header_links_before_dropdown": 8,
}


def link_names(app: Any, tree: nodes.document, page: str) -> None:
    """Make code such as `fc.stability(net)` a link to what it names."""
    known = app.env.get_domain("py").objects
    for code in list(tree.findall(nodes.literal)):
        name = re.match(r"(?:\w+ = )?(?:fc|fluidcc)\.([\w.]+)", code.astext())
        inside = isinstance(code.parent, nodes.reference | nodes.title)
        found = known.get(f"fluidcc.{name[1]}") if name and not inside else None
        if found and found.docname != page:
            link = make_refnode(
                app.builder, page, found.docname, found.node_id, code.deepcopy(), name[0]
            )
            code.replace_self(link)


def setup(app: Any) -> None:
    """Write the generated pages before Sphinx reads the folder, and link the names in them."""
    app.set_html_assets_policy("always")  # MathJax on pages without formulas of their own, too
    app.connect("builder-inited", lambda app: pages.write())
    app.connect("doctree-resolved", link_names)
