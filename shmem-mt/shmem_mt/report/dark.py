"""The colours of charts on a dark page. Charts are drawn in the colours of a light one; rules of style, which are
stronger than attributes of SVG, replace them where the reader's system asks for dark pages."""

from markupsafe import Markup

from shmem_mt.report import vega
from shmem_mt.report.charts.model import COLOURS, REFERENCE_COLOUR

GROUND = "#14191f"  # of the page; page.css has it, too
INKS = {vega.INK: "#e6eaee", vega.AXIS: "#8a95a1", vega.GRID: "#2c343d", "white": GROUND, "#fff": GROUND}
# Of the palette, in its order: each has three times the contrast of the ground, and more.
LINES = dict(
    zip(
        (*COLOURS, REFERENCE_COLOUR),
        ("#4da3e0", "#ff8a3d", "#2bc79b", "#e3a1c4", "#9ad0f5", "#e0a52b", "#f2f2f2", "#c7a04a", "#a8a8a8", "#9aa0a6"),
    )
)


def colours():
    """{colour on a light page: on a dark one} of all that charts draw."""
    faint = {vega.faint(light): vega.faint(dark, GROUND) for light, dark in LINES.items()}
    return {**faint, **LINES, **INKS}


def style():
    """The rules, as CSS."""
    rules = (
        f'[{kind}="{light}" i] {{ {kind}: {dark}; }}'
        for light, dark in colours().items()
        for kind in ("fill", "stroke")
    )
    return Markup("@media screen and (prefers-color-scheme: dark) {\n" + "\n".join(rules) + "\n}")
