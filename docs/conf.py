"""How Sphinx builds the site: ``make site`` calls it."""

import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS))

# E402: the folder must be on the path before its modules are imported
import reference  # noqa: E402
import site_pages  # noqa: E402

import skldl  # noqa: E402

project = "scikit-ldl"
author = "The scikit-ldl developers"
copyright = "The scikit-ldl developers, BSD-3-Clause"
version = release = skldl.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "links_to_reference",
]
exclude_patterns = ["**/README.txt", "gallery/**/*.ipynb", "gallery/*.py", "gallery/sg_execution_times.rst"]
root_doc = "index"
nitpicky = False

# Markdown
myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "attrs_inline"]
myst_heading_anchors = 4
suppress_warnings = [
    "config.cache",  # the gallery's settings hold objects that cannot be cached
    "myst.header",  # generated pages leave out a level of headings
]

# API reference
default_role = "py:obj"
autodoc_default_options = {"member-order": "groupwise"}
autodoc_typehints = "none"
maximum_signature_line_length = 88
numpydoc_show_class_members = False
toc_object_entries_show_parents = "hide"  # the contents beside a class have no room for its name before each method
numpydoc_xref_param_type = False

# Gallery
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": site_pages.examples_that_run(),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "copyfile_regex": r"$^",
    "default_thumb_file": str(DOCS / "pictures" / "label-distributions.png"),  # of an example that was not run
    "matplotlib_animations": False,
    "parallel": 2,
    "within_subsection_order": "site_pages.GalleryOrder",
}

# HTML: everything is loaded from the site itself
html_theme = "pydata_sphinx_theme"
html_title = "scikit-ldl"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_search_summary = False  # it would fetch pages, which file:// forbids
html_show_sourcelink = False
html_copy_source = False
html_sidebars = {page: [] for page in ("index", "start", "what-is-ldl", "choose", "glossary")}
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "scikit-ldl"},
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_toc_level": 2,
    "navigation_depth": 2,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# One file of MathJax that draws formulae as SVG: no font is loaded, which some browsers forbid on file://
mathjax_path = site_pages.MATHJAX
mathjax3_config = {"options": {"enableMenu": False}}


def setup(app):
    reference.write_pages(DOCS)
    site_pages.write_pages(DOCS)
    site_pages.write_command_line(DOCS)
    app.connect("source-read", site_pages.adapt_page)
    app.connect("build-finished", site_pages.finish_files)
