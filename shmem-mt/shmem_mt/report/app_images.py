"""The pictures that mini-apps have drawn of their answers (runner/images.py), in the report as PNG, with captions."""

import base64
import io
import json
import os

from PIL import Image

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
    def base64(self):
        return base64.b64encode(self.png).decode("ascii")

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
    """A binary PPM as PNG. ValueError when it is none, or cut off."""
    png = io.BytesIO()
    if not ppm.startswith(b"P6"):
        raise ValueError("not a binary PPM")
    try:
        with Image.open(io.BytesIO(ppm), formats=["PPM"]) as image:
            image.convert("RGB").save(png, format="PNG")
    except OSError as error:
        raise ValueError(f"a damaged PPM: {error}") from error
    return png.getvalue()


def write(picture, directory):
    """Writes DIRECTORY/<slug>.png."""
    with open(os.path.join(directory, picture.slug + ".png"), "wb") as file:
        file.write(picture.png)


def programs(pictures, named=str):
    """Those of each program, for the page. `named` makes the name of a section its own."""
    found = {name: [picture for picture in pictures if picture.told["program"] == name] for name in TITLES}
    return [
        {"slug": named(f"{name}-pictures"), "title": title, "about": about, "pictures": found[name]}
        for name, (title, about) in TITLES.items()
        if found[name]
    ]
