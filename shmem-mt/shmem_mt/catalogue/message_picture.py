"""Pictures of messages between PEs and threads, as text: a column for each, time downwards."""

WIDTH = 34  # characters from one column to the next
_ACROSS = "="


def draw(columns, steps):
    """The lines of a picture. A step is (from, to, text), an arrow between two columns by their places; (place, text),
    what one does by itself; or a text, what all do together."""
    heads = "".join(name.ljust(WIDTH) for name in columns)
    lines = [heads.rstrip(), _bars(len(columns))]
    for step in steps:
        if isinstance(step, str):
            lines.append(_across(len(columns), step))
        elif len(step) == 2:
            lines.append(_note(len(columns), *step))
        else:
            lines.append(_arrow(len(columns), *step))
    return [*lines, _bars(len(columns))]


def _bars(count):
    return _put(count, [])


def _put(count, texts):
    """A line with the bars of all columns and, over them, each text at its place."""
    line = [" "] * (WIDTH * count)
    line[0::WIDTH] = ["|"] * count
    for at, text in texts:
        if at + len(text) > len(line):
            line += [" "] * (at + len(text) - len(line))
        line[at : at + len(text)] = text
    return "".join(line).rstrip()


def _note(count, place, text):
    return _put(count, [(WIDTH * place + 2, text)])


def _arrow(count, source, target, text):
    low, high = sorted((source, target))
    inside = WIDTH * (high - low) - 1
    shaft = f" {text} ".center(inside - 1, "-")
    shaft = shaft + ">" if target > source else "<" + shaft
    return _put(count, [(WIDTH * low + 1, shaft)])


def _across(count, text):
    return f" {text} ".center(WIDTH * (count - 1) + 1, _ACROSS)
