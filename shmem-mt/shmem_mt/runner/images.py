"""Pictures that mini-apps draw of their answers: files in the run folder's images/, a PPM of each start and, beside it,
what the caption has to say. Each round overwrites those of the one before."""

import os
import re

FOLDER = "images"
PROGRAMS = ("mandelbrot",)


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
