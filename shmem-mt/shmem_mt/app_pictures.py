"""Pictures that mini-apps draw of themselves: files in the run folder's images/, a PPM of each start and, beside it,
what the caption has to say. Each round overwrites those of the one before; the report shows them as PNG."""

import base64
import html
import io
import json
import os
import re

import matplotlib.image
import numpy

from shmem_mt.charts import crew

FOLDER = "images"
PROGRAMS = {  # program -> (title, what there is to see)
    "mandelbrot": (
        "Mandelbrot: who computed what",
        "Each row in the colour of the PE that computed it, lighter or darker by thread; the more steps a pixel "
        "took, the darker. A block of rows is dealt to each PE: other colours in it are rows that were stolen.",
    ),
}


def arguments(folder, label, start):
    """What to add to the arguments of that start, so that its picture gets into the run folder."""
    if start.program not in PROGRAMS:
        return ()
    told = {"program": start.program, "label": label, "pes": start.pes, "threads": start.threads}
    told.update(fabric=start.fabric.name, link_rate=start.fabric.link_rate)
    name = "-".join(re.sub(r"\W+", "_", str(value)) for value in told.values() if value != "")
    os.makedirs(folder.path(FOLDER), exist_ok=True)
    folder.write_json(os.path.join(FOLDER, name + ".json"), told)
    return ("--image", os.path.abspath(folder.path(FOLDER, name + ".ppm")))


class Picture:
    def __init__(self, slug, told, png):
        self.slug, self.told, self.png = slug, told, png

    @property
    def caption(self):
        link = f", links of {self.told['link_rate']}" if self.told.get("link_rate") else ""
        return f"{self.told['label']}, {crew(self.told)}, {self.told['fabric']}{link}"


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
        if told.get("program") in PROGRAMS:
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
    for program, (title, about) in PROGRAMS.items():
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
