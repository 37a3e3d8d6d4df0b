"""What a report makes of MPI and bare UCX beside a library: shares, limits and charts, of points made up."""

import pytest
from conftest import make_point
from shmem_mt.report import page, report, summary
from shmem_mt.report.charts import limits, references
from shmem_mt.report.charts.model import Points
from shmem_mt.runner.results import merge_rounds

LIBRARY, MPI, UCX = "A", "MPI (X 1)", "bare UCX 1"
RATE = dict(benchmark="message-rate", metric="rate", unit="messages/s")
TIME = dict(benchmark="latency", metric="latency", unit="s", owner="warm")
BYTES = dict(benchmark="bandwidth", metric="bandwidth", unit="bytes/s", size_bytes=1 << 20)


def result(label, scale, fabric="tcp", **params):
    point = make_point(label, scale=scale, fabric=fabric, **params)
    return {**merge_rounds([{**point, "round": number} for number in range(6)]), "run": "run", "library": label}


def points_of_all(**more):
    """A library whose puts are half as fast as packed ones of bare UCX and ten times as fast as one by one."""
    of_ucx, of_mpi = dict(api="UCX", **more), dict(api="MPI", **more)
    yield result(LIBRARY, 5e6, op="put_nbi", **RATE, **more)
    yield result(LIBRARY, 4e5, op="get_nbi", **RATE, **more)
    yield result(UCX, 5e5, op="put_nbi", sync="flush", mechanism="put", **RATE, **of_ucx)
    yield result(UCX, 4e5, op="put_nbi", sync="answer", mechanism="message", **RATE, **of_ucx)
    for pack_bytes, scale in ((4096, 8e6), (16384, 1e7), (65536, 9e6)):
        packed = dict(sync="answer", mechanism="packed", pack_bytes=pack_bytes)
        yield result(UCX, scale, op="put_nbi", **packed, **RATE, **of_ucx)
    yield result(UCX, 2e6, op="put_nbi", sync="answer", mechanism="put", **{**RATE, "size_bytes": 512}, **of_ucx)
    for sync, scale in (("flush", 1e5), ("lock", 5e4), ("fence", 2e4), ("pscw", 1e4)):
        yield result(MPI, scale, op="put_nbi", sync=sync, **RATE, **of_mpi)
    yield result(MPI, 2e5, op="send", sync="waitall", **RATE, **of_mpi)
    yield result(LIBRARY, 4e-5, op="get", sync="blocking", **TIME, **more)
    yield result(UCX, 1e-5, op="get", sync="flush", mechanism="get", **TIME, **of_ucx)
    yield result(UCX, 2e-5, op="get", sync="answer", mechanism="message", **TIME, **of_ucx)
    yield result(MPI, 8e-5, op="get", sync="fence", **TIME, **of_mpi)
    yield result(LIBRARY, 1e9, op="put", touch="read", **BYTES, **more)
    yield result(UCX, 4e9, op="put", sync="flush", mechanism="put", touch="write-only", **BYTES, **of_ucx)
    yield result(MPI, 5e8, op="put", sync="lock", touch="write-only", **BYTES, **of_mpi)


@pytest.fixture
def every():
    return Points(list(points_of_all()))


def test_shares_of_bare_ucx_and_times_mpi(every):
    rows = summary.reference_rows(every.libraries(), every.references())
    found = {row.what: (row.cells[0][2]["median"], row.cells[0][2]["unit"]) for row in rows}
    assert {what: pytest.approx(value, rel=0.01) for what, (value, _) in found.items()} == {
        "8-byte put_nbi, share of bare UCX, packed": 50,
        "8-byte put_nbi, share of bare UCX, one by one": 1000,
        "8-byte get, share of bare UCX": 25,  # four times as long
        "1 MiB put, read, share of bare UCX": 25,
        "8-byte put_nbi, over MPI_Put": 50,  # with flush, the best
        "8-byte put_nbi, over MPI_Isend": 25,
        "1 MiB put, read, over MPI_Put": 2,
    }
    assert {unit for _, unit in found.values()} == {"%", "x"}
    for row in rows:
        low, high = row.cells[0][2]["interval"]
        assert low <= row.cells[0][2]["median"] <= high


def test_shares_are_of_the_same_size_threads_and_links(every):
    others = [*every.libraries().points]
    others += [p for p in points_of_all(threads=2) if "api" in p["params"]]
    others += [p for p in points_of_all(link_rate="100mbit") if "api" in p["params"]]
    both = Points(others)
    assert summary.reference_rows(both.libraries(), both.references()) == []


def test_the_bare_network_is_that_between_hosts():
    """Partners on one host are nearer to each other, and bound nothing that goes over the network."""
    shared = dict(op="put_nbi", mechanism="put", sync="flush", api="UCX", **RATE)
    near, far = (result(UCX, scale, partner=p, **shared) for p, scale in (("near", 5e6), ("far", 5e5)))
    for points, drawn in (([near, far], far), ([near], near)):
        assert limits.bare_network(Points(points), **limits.PUTS) == {8: drawn}
    two = [result(UCX, 10 * p["median"], threads=2, partner=p["params"]["partner"], **shared) for p in (near, far)]
    own = [
        result(LIBRARY, 1e5, op="put_nbi", context=c, threads=t, **RATE) for t, c in ((1, "default"), (2, "private"))
    ]
    (chart,) = [c for c in references.charts(Points([near, far, *two, *own])) if c.slug == "beside-rate-by-threads"]
    (line,) = [one for one in chart.panels[0].series if one.name == "bare network"]
    assert line.y == [far["median"], two[1]["median"]]


def test_links_of_another_rate_are_another_network():
    shared = dict(op="put_nbi", mechanism="put", sync="flush", api="UCX", **RATE)
    slow, fast = "100mbit", "1gbit"
    made = [
        result(f"{UCX}, {rate}", scale * threads, threads=threads, link_rate=rate, **shared)
        for rate, scale in ((slow, 2e5), (fast, 8e5))
        for threads in (1, 2)
    ]
    made += [
        result(f"{LIBRARY}, {rate}", 1e5, op="put_nbi", context=c, threads=t, link_rate=rate, **RATE)
        for rate in (slow, fast)
        for t, c in ((1, "default"), (2, "private"))
    ]
    charts = drawn(Points(made))
    names = {slow: f"bare network, {slow}", fast: f"bare network, {fast}"}
    by_size = charts["rate-by-size-tcp"]["put_nbi"]
    assert by_size[names[slow]] == pytest.approx({8: 2e5}, rel=0.01)
    assert by_size[names[fast]] == pytest.approx({8: 8e5}, rel=0.01)
    by_threads = charts["beside-rate-by-threads-tcp"]["put"]
    assert by_threads[names[slow]] == pytest.approx({1: 2e5, 2: 4e5}, rel=0.01)
    assert by_threads[names[fast]] == pytest.approx({1: 8e5, 2: 1.6e6}, rel=0.01)
    assert "bare network" not in {name for panel in charts["rate-by-size-tcp"].values() for name in panel}


def test_an_invalid_reference_bounds_nothing():
    made = [{**p, "valid": False} if p["params"].get("pack_bytes") else p for p in points_of_all()]
    points = Points(made)
    rows = {row.what for row in summary.reference_rows(points.libraries(), points.references())}
    assert "8-byte put_nbi, share of bare UCX, one by one" in rows
    assert "8-byte put_nbi, share of bare UCX, packed" not in rows
    assert limits.bare_network(points.references(), **limits.PUTS)[8]["params"]["mechanism"] == "put"


def test_the_summary_has_no_columns_of_references(every):
    (table,) = page.tables(every, "tcp", str)["first"]
    assert table["labels"] == [LIBRARY]
    headings = {heading: [row.what for row in rows] for heading, rows in table["groups"]}
    assert "8-byte put_nbi" in headings[None]
    assert "8-byte put_nbi, share of bare UCX, packed" in headings["Beside bare UCX and MPI, in the same rounds"]
    alone = every.libraries()
    (table,) = page.tables(alone, "tcp", str)["first"]
    assert [heading for heading, _ in table["groups"]] == [None]


def drawn(points):
    """{slug: {panel: {series: {x: y}}}}"""
    return {
        chart.slug: {p.title: {s.name: dict(zip(s.x, s.y)) for s in p.series} for p in chart.panels}
        for chart in report._charts(points, "tcp")
    }


def test_the_bare_network_is_a_dashed_line_in_the_charts_of_what_it_bounds(every):
    charts = drawn(every)
    by_size = charts["rate-by-size-tcp"]["put_nbi"]
    assert set(by_size) == {LIBRARY, "bare network"}  # MPI and UCX are no lines of their own here
    assert by_size["bare network"] == pytest.approx({8: 1e7, 512: 2e6}, rel=0.01)
    assert charts["latency-8-bytes-tcp"][""]["bare network"] == pytest.approx({"get, warm": 1e-5}, rel=0.01)
    line = charts["bandwidth-by-size-tcp"]["put, read by the target"]["bare network"]
    assert line == pytest.approx({1 << 20: 4e9}, rel=0.01)
    (chart,) = [chart for chart in report._charts(every, "tcp") if chart.slug == "rate-by-size-tcp"]
    (limit,) = [one for one in chart.panels[0].series if one.name == "bare network"]
    assert limit.reference and limit.dash and "bare UCX 1, packed into 16 KiB" in limit.notes[0]
    assert "bare network" not in str(drawn(every.libraries()))


def test_charts_beside_mpi_have_each_synchronization_and_way(every):
    rates = drawn(every)["beside-rate-tcp"]["put"]
    assert rates[LIBRARY] == pytest.approx({"OpenSHMEM, put_nbi": 5e6}, rel=0.01)
    assert set(rates[MPI]) == {f"MPI, {words}" for words in references.SYNCS.values()}
    assert rates[UCX] == pytest.approx(
        {
            "UCX, put by put": 5e5,
            "UCX, an active message each": 4e5,
            "UCX, packed into 4 KiB": 8e6,
            "UCX, packed into 16 KiB": 1e7,
            "UCX, packed into 64 KiB": 9e6,
        },
        rel=0.01,
    )
    assert set(drawn(every)["beside-bandwidth-tcp"]["put"]) == {"A, put", "MPI (X 1), lock, unlock", "bare network"}
    assert not references.charts(every.libraries())


def test_rates_by_threads():
    points = Points([*points_of_all(), *points_of_all(threads=2, context="private")])
    lines = drawn(points)["beside-rate-by-threads-tcp"]["put"]
    assert lines["bare network"] == pytest.approx({1: 1e7, 2: 1e7}, rel=0.01)
    assert lines["A, put_nbi"] == pytest.approx({1: 5e6, 2: 5e6}, rel=0.01)
    assert set(lines["MPI (X 1), flush"]) == {1, 2}
    assert "beside-rate-by-threads-tcp" not in drawn(Points(list(points_of_all())))
