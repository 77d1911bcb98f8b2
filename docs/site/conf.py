# SPDX-License-Identifier: Apache-2.0
"""Sphinx's configuration of the documentation site, which build.py builds."""
from pygments.lexers.special import TextLexer

project = "Kiln"
author = "The Kiln Authors"
copyright = "The Kiln Authors"
extensions = ["myst_parser"]
root_doc = "index"
source_suffix = {".md": "markdown"}
html_theme = "alabaster"
html_theme_options = {"page_width": "75rem", "sidebar_width": "17rem"}
html_copy_source = False
html_show_sphinx = False
html_title = "Kiln"
myst_heading_anchors = 4 # with GitHub's names
suppress_warnings = ["misc.highlighting_failure"] # blocks of code may be excerpts


def setup(app):
    app.add_lexer("mlir", TextLexer) # Pygments has none
