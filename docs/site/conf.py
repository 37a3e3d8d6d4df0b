"""Settings of Sphinx for the site of Heddle's documentation. make_site.py makes the pages, and calls Sphinx."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERSION = re.search(r'SHMEM_VENDOR_STRING "Heddle ([^"]+)"', (ROOT / "include/heddle/constants.h").read_text())

project = "Heddle"
version = release = VERSION.group(1) if VERSION else ""
html_title = f"Heddle {release}"

extensions = ["myst_parser"]
myst_heading_anchors = 4
root_doc = "index"
smartquotes = False  # two dashes are the beginning of an option
nitpicky = True

# All that a page loads lies beside it: no host is asked for anything, and the site works from a folder.
html_theme = "furo"
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["heddle.css"]
html_theme_options = {"navigation_with_keys": True, "footer_icons": [], "top_of_page_buttons": []}
html_search_language = "en"
html_search_scorer = str(Path(__file__).with_name("scorer.js"))
