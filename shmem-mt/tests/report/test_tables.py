"""`shmem-mt export`: every figure of a report, as a number, in files that fit the schema and overwrite nothing."""

import csv
import json
import pathlib

import pytest
from pydantic import TypeAdapter
from shmem_mt.report import report, tables


@pytest.fixture
def folder(run_folder):
    """Of two implementations, on a machine whose hand-over is known."""
    made = run_folder("run", {"A": 2.0, "B, & co": 1.0})
    path = pathlib.Path(made, "machine.json")
    contents = json.loads(path.read_text(encoding="utf-8"))
    contents["machine"]["hand_over_s"] = [5e-8, 6e-8]
    path.write_text(json.dumps(contents), encoding="utf-8")
    return made


def rows_of_csv(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_csv_and_json_have_every_table_of_the_page(shmem_mt, folder, tmp_path):
    status, stdout, _ = shmem_mt("export", folder, "--csv", tmp_path / "csv", "--json", tmp_path / "all.json")
    assert status == 0
    written = json.loads((tmp_path / "all.json").read_text(encoding="utf-8"))
    TypeAdapter(tables.Export).validate_python(written, strict=True)
    by_name = {table["name"]: table for table in written["tables"]}
    assert len(by_name) == len(written["tables"]) and f"{len(by_name)} tables, " in stdout
    (part,) = report.parts_of([folder])
    for chart in part.charts:
        rows = by_name[chart.slug]["rows"]
        points = sum(len(series.x) for panel in chart.panels for series in panel.series)
        assert len(rows) == points + len(chart.limits), chart.slug
    assert {"summary", "mini-apps", "collectives"} == set(by_name) - {chart.slug for chart in part.charts}
    assert {path.stem for path in (tmp_path / "csv").iterdir()} == set(by_name)
    words = {None: "", True: "true", False: "false"}
    for name, table in by_name.items():
        told = rows_of_csv(tmp_path / "csv" / f"{name}.csv")
        names = ("confidence", "valid", "oversubscribed")
        assert [{k: str(v) for k, v in row.items() if k not in names} for row in table["rows"]] == [
            {k: v for k, v in row.items() if k not in names} for row in told
        ]
        assert [words[row["valid"]] for row in table["rows"]] == [row["valid"] for row in told]


def test_figures_are_numbers_of_the_points(shmem_mt, folder, tmp_path):
    assert shmem_mt("export", folder, "--csv", tmp_path / "csv")[0] == 0
    rows = rows_of_csv(tmp_path / "csv" / "latency-by-size.csv")
    assert list(rows[0]) == list(tables.Row.__annotations__)
    (trip,) = [
        r
        for r in rows
        if (r["panel"], r["series"], r["x"]) == ("put round trip (fence, flag), read", "B, & co", "1024")
    ]
    assert float(trip["median"]) == pytest.approx(4e-7, rel=0.01) and trip["valid"] == "true"
    assert float(trip["low"]) <= float(trip["median"]) <= float(trip["high"]) and trip["confidence"] == "0.95"
    (limit,) = [r for r in rows if r["series"].startswith("limit of ")]
    assert float(limit["median"]) == pytest.approx(5.5e-8) and limit["confidence"] == "" and limit["starts"] == "2"
    (share,) = [
        r
        for r in rows_of_csv(tmp_path / "csv" / "summary.csv")
        if r["x"] == "8-byte p, share of a plain store" and r["series"] == "A"
    ]
    assert share["unit"] == "%" and float(share["median"]) == pytest.approx(100)  # both were made equal


def test_nothing_is_overwritten_without_being_asked(shmem_mt, folder, tmp_path):
    notes = tmp_path / "notes.json"
    notes.write_text("mine")
    for given in (["--json", notes], ["--csv", tmp_path / "csv", "--json", notes]):
        status, _, stderr = shmem_mt("export", folder, *given)
        assert status == 2 and f"{notes} is there" in stderr and notes.read_text() == "mine"
        assert not (tmp_path / "csv").exists()
    assert shmem_mt("export", folder, "--json", notes, "--force")[0] == 0
    assert json.loads(notes.read_text())["schema_version"] == tables.VERSION


def test_bad_input_is_one_line(shmem_mt, folder, tmp_path):
    for given, words in (([], "--csv DIR or --json FILE"), (["--json", tmp_path / "no" / "x"], "cannot write")):
        status, stdout, stderr = shmem_mt("export", folder, *given)
        assert status == 2 and words in stderr and stderr.count("\n") == 1 and stdout == ""
    assert shmem_mt("export", tmp_path / "nowhere", "--json", tmp_path / "x")[0] == 2


def test_the_schema_is_what_the_code_says():
    beside = pathlib.Path(tables.__file__).with_name("tables.schema.json")
    assert json.loads(beside.read_text(encoding="utf-8")) == tables.schema()
