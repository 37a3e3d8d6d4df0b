"""`shmem-mt run --dry-run`: which program starts would be made, of how many points, and how long they are expected to
take. Nothing is compiled or started."""

from shmem_mt import units


def lines(session):
    """What is told of a session that has not begun: a line a program start, then the sums."""
    jobs = session.jobs()
    rows, points, fewest = [("program", "starts", "points", "seconds each", "what")], 0, 0
    for start in session.starts:
        of_start = [job for job in jobs if job[2] == start]
        if not of_start:
            continue
        labels = list(dict.fromkeys(job[1].label for job in of_start))
        each_s = sum(session.forecast.seconds(label, start) for label in labels) / len(labels)
        title = start.title(of_start[0][1])
        count = start.points or len(_given(start)["--ops"].split(","))  # the plan counts none where time is known
        rows.append((title, str(len(of_start)), str(count), f"{each_s:.1f}", _what(start)))
        points += count * len(labels)
        fewest += len(of_start)
    names = ", ".join(implementation.label for implementation in session.implementations)
    seconds, compiling_s = session.expected_s()
    told = [f"{fewest} program starts of {names}, about {points} points, {units.duration(seconds)} expected"]
    told += [f"of these {units.duration(compiling_s)} compiling"] * (compiling_s > 0)
    if session.goes_on:
        told.append(
            "further starts of points whose intervals are wide are in this time, and as many as it has room for"
        )
    if not jobs:
        return ["nothing is left to be measured as planned", *told[-1:]] if session.goes_on else ["nothing is left"]
    return [*_aligned(rows), *told]


def _given(start):
    return dict(zip(start.arguments, start.arguments[1:]))


def _what(start):
    """The operations of a start and what they are measured with."""
    given = _given(start)
    sizes = given.get("--size") or ", ".join(units.size(int(size)) for size in given["--sizes"].split(","))
    return f"{given['--ops']}: {sizes}"


def _aligned(rows):
    widths = [max(map(len, column)) for column in zip(*rows)]
    aligned = []
    for title, *numbers, what in rows:
        cells = [title.ljust(widths[0]), *(text.rjust(width) for text, width in zip(numbers, widths[1:])), what]
        aligned.append("  ".join(cells).rstrip())
    return aligned
