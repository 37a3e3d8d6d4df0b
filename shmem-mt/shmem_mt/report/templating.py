"""The templates of the page. What they are given is text, and escaped; what is HTML already is Markup."""

import os

import jinja2
from markupsafe import Markup

_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates")),
    autoescape=True,
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render(name, **given):
    """The template of that file name, as Markup."""
    return Markup(_TEMPLATES.get_template(name).render(given))
