"""`shmem-mt export`: the tables of a report as CSV and JSON, in numbers. All have one shape: a row a point.

`python3 -m shmem_mt.report.tables` prints the JSON schema, which tables.schema.json beside this file is.
"""

import csv
import json
import os
from typing import Annotated

from pydantic import Field, TypeAdapter
from typing_extensions import TypedDict  # pydantic wants it of Python 3.11

from shmem_mt.errors import UserError
from shmem_mt.report import page, report, vega

VERSION = 1  # of the schema


class Row(TypedDict):
    """A point of a table."""

    panel: Annotated[str, Field(description="the panel of a chart, the group of a table; may be empty")]
    series: Annotated[str, Field(description="the implementation, with what tells series apart; or a limit")]
    x: Annotated[str | int | float, Field(description="the place on the axis: bytes, a number, or a name")]
    unit: Annotated[str, Field(description="of median, low and high: s, messages/s, bytes/s, bytes, %, x, ...")]
    median: Annotated[float, Field(description="of the values of the program starts")]
    low: Annotated[float, Field(description="the lower end of the interval or range")]
    high: Annotated[float, Field(description="the upper end")]
    confidence: Annotated[float | None, Field(description="of the interval; null: low and high are a range")]
    starts: Annotated[int, Field(ge=1, description="how many values: program starts")]
    valid: Annotated[bool | None, Field(description="null: nothing was checked")]
    oversubscribed: Annotated[bool, Field(description="more threads than cores")]


class Table(TypedDict):
    """What stands behind a chart, or a table of the page."""

    name: Annotated[str, Field(description="that of the section of the page, and of the CSV file")]
    title: str
    machine: Annotated[str, Field(description="the runs of one machine")]
    less_is_better: Annotated[bool | None, Field(description="null: it differs by row")]
    rows: list[Row]


class Export(TypedDict):
    """The tables of some runs."""

    schema_version: Annotated[int, Field(ge=1)]
    runs: Annotated[list[str], Field(description="the run folders")]
    tables: list[Table]


def export(options):
    """Writes what is asked for. Returns 0. Raises UserError for runs that cannot be read, and for files that are there
    and may not be overwritten."""
    if not options.csv and not options.json:
        raise UserError("export writes nothing without --csv DIR or --json FILE")
    made = [table for part in report.parts_of(options.runs) for table in of_part(part)]
    paths = [os.path.join(options.csv, table["name"] + ".csv") for table in made] if options.csv else []
    there = [path for path in [*paths, *filter(None, [options.json])] if os.path.exists(path)]
    if there and not options.force:
        raise UserError(f"{there[0]} is there; use another name, or --force")
    try:
        if options.csv:
            os.makedirs(options.csv, exist_ok=True)
        for path, table in zip(paths, made):
            _write_csv(path, table["rows"])
        if options.json:
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump(Export(schema_version=VERSION, runs=options.runs, tables=made), file, indent=1)
                file.write("\n")
    except OSError as error:
        raise UserError(f"cannot write {error.filename}: {error.strerror}") from error
    print(f"{len(made)} tables, {sum(len(table['rows']) for table in made)} rows")
    return 0


def of_part(part):
    """The tables of one machine: those of the page, then those behind its charts."""
    found = []
    for fabric in part.points.fabrics():
        tables = page.tables(part.points.over(fabric), fabric, part.named)
        for table in (*tables["first"], *tables["last"]):
            rows = [row for heading, lines in table["groups"] for line in lines for row in _line(table, heading, line)]
            found.append(_table(part, table["slug"], table["title"], None, rows))
    for chart in part.charts:
        rows = [
            _row(panel.title, series.name, vega.x_text(None, x) if isinstance(x, tuple) else _flat(x), result)
            for panel in chart.panels
            for series in panel.series
            for x, result in zip(series.x, series.results)
        ]
        rows += [_row("", limit.name, "", limit.result) for limit in chart.limits]
        found.append(_table(part, chart.slug, chart.title, chart.lower_is_better, rows))
    return found


def _table(part, name, title, less_is_better, rows):
    machine = page.name_of(part)
    return Table(name=name, title=title, machine=machine, less_is_better=less_is_better, rows=rows)


def _line(table, heading, line):
    """The rows of one line of a table of the page."""
    for label, cell in zip(table["labels"], line.cells):
        if cell:
            yield _row(heading or "", label, line.what, cell[2])


def _flat(x):
    return x.replace("\n", ", ") if isinstance(x, str) else x


def _row(panel, series, x, result):
    low, high = result["interval"]
    return Row(
        panel=panel,
        series=series,
        x=x,
        unit=result["unit"],
        median=result["median"],
        low=low,
        high=high,
        confidence=result.get("confidence"),
        starts=result["starts"],
        valid=result.get("valid"),
        oversubscribed=bool(result.get("params", {}).get("oversubscribed")),
    )


def _write_csv(path, rows):
    """true and false as JSON has them; nothing where JSON has null."""
    words = {True: "true", False: "false"}
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(Row.__annotations__), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: words[v] if isinstance(v, bool) else v for name, v in row.items()})


def schema():
    """The JSON schema of a file of --json."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **TypeAdapter(Export).json_schema()}


if __name__ == "__main__":
    print(json.dumps(schema(), indent=1))
