"""The pictures that mini-apps have drawn of their answers (runner/images.py), in the report as PNG, with captions."""

import base64
import html
import io
import json
import os
import re

import matplotlib.image
import numpy

from shmem_mt.runner.images import FOLDER
from shmem_mt.runner.points import pes_and_threads

TITLES = {  # program -> (title, what there is to see)
    "mandelbrot": (
        "Mandelbrot: who computed what",
        "Each row in the colour of the PE that computed it, lighter or darker by thread; the more steps a pixel "
        "took, the darker. A block of rows is dealt to each PE: other colours in it are rows that were stolen.",
    ),
}


class Picture:
    def __init__(self, slug, told, png):
        self.slug, self.told, self.png = slug, told, png

    @property
    def caption(self):
        link = f", links of {self.told['link_rate']}" if self.told.get("link_rate") else ""
        return f"{self.told['label']}, {pes_and_threads(self.told)}, {self.told['fabric']}{link}"


def of(directory):
    """The pictures of a run folder. What is damaged, because its start did not come to its end, is left out."""
    folder, found = os.path.join(directory, FOLDER), []
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        path, kind = os.path.splitext(os.path.join(folder, name))
        if kind != ".json":
            continue
        try:
            with open(path + ".json", encoding="utf-8") as file:
                told = json.load(file)
            with open(path + ".ppm", "rb") as file:
                png = png_of(file.read())
        except (OSError, ValueError):
            continue
        if told.get("program") in TITLES:
            slug = f"{told['program']}-picture-{os.path.basename(path)}"
            found.append(Picture(slug, told, png))
    return found


def png_of(ppm):
    """A binary PPM as PNG. ValueError when it is none."""
    match = re.match(rb"P6\s(\d+)\s(\d+)\s255\s", ppm)
    if match is None:
        raise ValueError("not a binary PPM")
    width, height = int(match[1]), int(match[2])
    pixels = numpy.frombuffer(ppm[match.end() :], numpy.uint8).reshape(height, width, 3)
    png = io.BytesIO()
    matplotlib.image.imsave(png, pixels, format="png")
    return png.getvalue()


def write(picture, directory):
    """Writes DIRECTORY/<slug>.png."""
    with open(os.path.join(directory, picture.slug + ".png"), "wb") as file:
        file.write(picture.png)


def sections(pictures):
    """Those of each program, for the page."""
    text = ""
    for program, (title, about) in TITLES.items():
        own = [picture for picture in pictures if picture.told["program"] == program]
        if own:
            figures = "".join(map(_figure, own))
            text += f'<section id="{program}-pictures"><h2>{title}</h2><p>{about}</p>{figures}</section>'
    return text


def _figure(picture):
    caption = html.escape(picture.caption)
    data = base64.b64encode(picture.png).decode("ascii")
    return (
        f'<figure><img src="data:image/png;base64,{data}" alt="{caption}"><figcaption>{caption}</figcaption></figure>'
    )
