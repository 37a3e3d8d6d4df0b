"""How cores are best divided: figures by PEs x threads as a heat map, and the efficiency and speed-up of mini-apps by
cores. Drawn where a run has several numbers of PEs and of threads, or of cores."""

from shmem_mt import units
from shmem_mt.catalogue import catalogue
from shmem_mt.report.charts.model import DASHES, Panel, Series, make_chart, plain_series
from shmem_mt.runner.points import COMMUNICATION, MEMORY, form_of_app, problem_of_app, run_of_app
from shmem_mt.runner.results import ratio_of_results

_OWN = ("default", "private")  # one thread has the default context, several have one each


def charts(points):
    """Those that these points can fill."""
    return [chart for chart in (_heat(points), _efficiency(points)) if chart]


def _cells(points):
    """(title, {(PEs, threads): point}) of each panel of the heat map."""
    small = dict(placement="heap", size_bytes=8)
    large = dict(op="put", touch="read", cache="hot", size_bytes=1 << 20)
    for label in points.labels:
        for title, benchmark, metric, params in (
            ("8-byte p, messages/s", "message-rate", "rate", dict(op="p", **small)),
            ("8-byte put_nbi, messages/s", "message-rate", "rate", dict(op="put_nbi", **small)),
            ("1 MiB put, read, bytes/s", "bandwidth", "bandwidth", large),
        ):
            found = {}
            for point in points.find(benchmark, metric, label, **params):
                place = (point["params"]["pes"], point["params"]["threads"])
                if point["params"]["context"] == _OWN[place[1] > 1]:
                    found[place] = point
            yield f"{label}, {title}", found
        for name, problem in _problems(points):
            found = _plain_runs(points, name, problem, label)
            unit = next((point["unit"] for point in found.values()), "")
            yield f"{label}, {name}, {problem}, {unit}", found
            memory = _plain_runs(points, name, problem, label, MEMORY, "job")
            yield f"{label}, {name}, {problem}, memory of the job", memory


def _heat(points):
    panels = []
    for title, found in _cells(points):
        if min(len({place[axis] for place in found}) for axis in (0, 1)) < 2 if found else True:
            continue
        series = Series(title, "")
        for place, point in sorted(found.items()):
            series.add(place, point)
        panels.append(Panel(title, [series]))
    return make_chart(
        panels,
        slug="splits",
        title="PEs x threads",
        kind="heat",
        about="All PEs and threads together; the darker a field is, the more goes through, or the more memory the "
        "job takes. Several threads of a PE "
        "have a context each. Mini-apps in their plain form. Fields of one diagonal use as many cores. Beyond the "
        "machine's cores a field is oversubscribed, and the table says so.",
        value_title="of all PEs and threads",
        x_title="PEs and threads",
    )


def _problems(points):
    """(mini-app, problem) that there are rates of."""
    found = [point for point in points.find(metric="rate", part="total") if "part" in point["params"]]
    apps = {point["benchmark"] for point in points.find(metric=COMMUNICATION)}
    named = ((p["benchmark"], problem_of_app(p["params"])) for p in found if p["benchmark"] in apps)
    return list(dict.fromkeys(named))


def _plain_runs(points, name, problem, label, metric="rate", part="total"):
    """{(PEs, threads): the rate} of the form that the catalogue names first, on the default context, by put with
    signal; or another of its points."""
    plain = next(benchmark.ops[0] for benchmark in catalogue.BENCHMARKS if benchmark.name == name)
    plain = next((op for op in (plain, "jacobi7") if points.find(name, "rate", label, op=op, part="total")), plain)
    found = {}
    for point in points.find(name, metric, label, op=plain, part=part):
        params = point["params"]
        if problem_of_app(params) == problem and form_of_app(params) == params["op"]:
            found[params["pes"], params["threads"]] = point
    return found


def _efficiency(points):
    panels = []
    for name, problem in _problems(points):
        series = []
        for label in points.labels:
            found = _plain_runs(points, name, problem, label)
            if len({pes * threads for pes, threads in found}) < 2:
                continue
            base = min(found, key=lambda place: (place[0] * place[1], place[1]))
            for number, threads in enumerate(sorted({place[1] for place in found})):
                one = plain_series(points, label, f"{label}, {_threads(threads)}", dash=number % DASHES)
                for pes in sorted(place[0] for place in found if place[1] == threads):
                    share = efficiency(found[pes, threads], found[base])
                    faster = share["median"] / 100 * pes * threads / (base[0] * base[1])
                    one.add(pes * threads, share, f"{_place(pes, threads)}, speed-up {units.significant(faster)}")
                series.append(one)
        panels.append(Panel(f"{name}, {problem}", series))
    return make_chart(
        panels,
        slug="efficiency",
        title="Efficiency by cores",
        about="The rate of a mini-app for each core that it uses, as percent of that of the run with the fewest cores, "
        "in its plain form: for one problem (strong scaling) or, where the title says so, for one that grows with the "
        "cores (weak scaling). 100: twice the cores do twice as much a second. The speed-up is how many times as much "
        "all cores together do. More PEs x threads than the machine has cores are oversubscribed.",
        value_title="%",
        x_title="PEs x threads",
        log_values=False,
    )


def _threads(threads):
    return f"{threads} threads a PE" if threads > 1 else "1 thread a PE"


def _place(pes, threads):
    return f"{pes} PEs x {threads} threads"


def efficiency(point, base):
    """A result: the rate a core over that of `base`, in percent."""
    cores, fewest = (one["params"]["pes"] * one["params"]["threads"] for one in (point, base))
    scale = 100 * fewest / cores
    if run_of_app(point["params"]) == run_of_app(base["params"]):
        ratio = low = high = 1.0
    else:
        ratio, low, high = ratio_of_results(point, base, paired=False)
    median = base["median"]
    return {
        **point,
        "unit": "%",
        "modes": [],
        "median": scale * ratio,
        "interval": [scale * low, scale * high],
        "samples": [scale * sample / median for sample in point["samples"]],
        "starts": min(point["starts"], base["starts"]),
    }
