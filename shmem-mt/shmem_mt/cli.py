"""The command line: parses it, calls the subcommand, turns bad input into one line and exit status 2."""

import argparse
import os
import re
import signal
import sys
import time

import shtab

from shmem_mt import __version__
from shmem_mt.catalogue import catalogue, explain
from shmem_mt.errors import Ended, MeasuredOtherwiseError, UserError
from shmem_mt.targets import fabrics, libraries
from shmem_mt.targets.launch_template import LaunchTemplate
from shmem_mt.targets.machine import OTHERS
from shmem_mt.targets.places import MOST_HOSTS

MAX_PES = 4096
MAX_THREADS = 992  # kMaxThreads of programs/common/options.hpp
MAX_RAILS = 8
_ENDING = (signal.SIGTERM, signal.SIGHUP)
_TROUBLES = ("machine", "worse", "points", "unclear")  # names of comparison.compare.STATUSES


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage text."""

    def error(self, message):
        raise UserError(message)


def entry():
    """The console script. SIGTERM and SIGHUP end it as ^C does."""
    for number in _ENDING:
        if signal.getsignal(number) == signal.SIG_DFL:  # nohup ignores SIGHUP
            signal.signal(number, _end)
    sys.exit(main(sys.argv[1:]))


def _end(number, _frame):
    """Once: what is tidied up then is not disturbed. timeout(1) sends its signal twice."""
    for other in _ENDING:
        signal.signal(other, lambda *_: None)
    raise Ended(number)


def main(arguments):
    """Runs one command line. Returns the exit status: 0 good, 1 something failed or got worse, 2 bad input, 128 and the
    number of the signal that ended it; `compare` has some of its own."""
    try:
        options = build_parser().parse_args(arguments)
        options.arguments = arguments
        return options.call(options)
    except UserError as error:
        print(f"shmem-mt: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as ended:
        return ended.status if isinstance(ended, Ended) else 128 + signal.SIGINT
    except BrokenPipeError:
        return 1


def build_parser():
    parser = Parser(prog="shmem-mt", description="Benchmarks for OpenSHMEM libraries: validated, threaded, compared.")
    parser.add_argument("--version", action="version", version=f"shmem-mt {__version__}")
    shtab.add_argument_to(parser, "--print-completion", help="print what makes a shell complete the options")
    commands = parser.add_subparsers(dest="command", required=True, parser_class=Parser)
    _add_run(commands)
    _add_advise(commands)
    _add_report(commands)
    _add_export(commands)
    _add_simulate(commands)
    _add_compare(commands)
    explaining = commands.add_parser("explain", help="say what benchmarks do, in words and pictures of messages")
    explaining.add_argument("names", nargs="+", choices=catalogue.names(), metavar="NAME", help="see list")
    explaining.set_defaults(call=_explain)
    listing = commands.add_parser("list", help="list benchmarks, operations and synchronizations")
    listing.set_defaults(call=_list)
    return parser


def _add_run(commands):
    run = commands.add_parser("run", help="measure", description="Measures one or more OpenSHMEM implementations.")
    run.add_argument("--profile", choices=("quick", "full"), default="quick", help="quick: under 7 minutes a fabric")
    _add_targets(run)
    run.add_argument(
        "--mpicc",
        metavar="PATH",
        help="MPI beside collectives, ordering and messages over a network (default: mpicc on PATH, if any)",
    )
    run.add_argument("--mpirun", metavar="COMMAND", help="its launcher (default: mpirun or mpiexec on PATH)")
    run.add_argument(
        "--partners",
        type=_names,
        metavar="NAME,...",
        help="between hosts, of patterns of pairs: near (on the same host), far (on another; the default)",
    )
    run.add_argument("--pes", type=_numbers(MAX_PES), metavar="N,...", help="numbers of PEs")
    run.add_argument("--threads", type=_numbers(MAX_THREADS), metavar="N,...", help="threads per PE")
    run.add_argument("--sizes", type=_numbers(1 << 26), metavar="BYTES,...", help="message sizes")
    run.add_argument(
        "--size", type=_size, metavar="SIZE", help="mini-apps: tiny, small, medium, large, or a number (see list)"
    )
    run.add_argument(
        "--scale",
        choices=catalogue.SCALES,
        help="mini-apps: --size is that of the whole problem (strong, the default), or of the part of each thread of "
        "each PE (weak)",
    )
    run.add_argument(
        "--outstanding",
        type=_powers(1 << 16),
        metavar="N,...",
        help="ordering: messages of a thread that may be incomplete, powers of two",
    )
    run.add_argument(
        "--messages",
        type=_up_to(4096),
        metavar="N",
        help="patterns: messages of a window, or into how many a face or a block is cut",
    )
    run.add_argument("--sync", type=_names, metavar="NAME,...", help="only these synchronizations (see list)")
    run.add_argument("--only", type=_names, metavar="NAME,...", help="only these benchmarks (see list)")
    run.add_argument("--out", metavar="DIR", help="run folder; an existing one is continued")
    run.add_argument(
        "--set-aside",
        action="store_true",
        help="begin anew where --out was measured with something else, which is kept as DIR.TIME",
    )
    run.add_argument("--dry-run", action="store_true", help="say what would be measured and how long it takes")
    run.add_argument(
        "--rounds",
        type=_positive,
        metavar="N",
        help="how often everything is started (default: as the profile says, and on while intervals are wide)",
    )
    run.add_argument("--seed", type=_up_to(10**9), metavar="N", help="of the order in each round (default: drawn)")
    run.add_argument(
        "--compute-ratio", type=_ratio, metavar="R", help="overlap: compute R times as long as communication takes"
    )
    run.add_argument(
        "--computation",
        type=_names,
        metavar="NAME,...",
        help="overlap: what is computed: " + ", ".join(catalogue.COMPUTATIONS) + " (default: registers)",
    )
    run.add_argument(
        "--policies", type=_names, metavar="NAME,...", help="overlap: only these progress policies (see list)"
    )
    run.add_argument(
        "--polls-us", type=_numbers(1000000), metavar="US,...", help="overlap: intervals of polls; the best is kept"
    )
    run.add_argument("--plant-fault", metavar="NAME", help=argparse.SUPPRESS)
    run.set_defaults(call=_run)


def _add_targets(parser):
    """What is measured: libraries, fabrics and hosts."""
    parser.add_argument(
        "--oshcc", action="append", metavar="PATH", help="compiler wrapper; repeat with --oshrun and --label"
    )
    parser.add_argument("--oshrun", action="append", metavar="COMMAND", help="launcher, with arguments if need be")
    parser.add_argument(
        "--launch",
        action="append",
        dest="oshrun",
        type=LaunchTemplate,
        metavar="TEMPLATE",
        help="in place of --oshrun: any launcher's command, such as 'srun -N{nodes} -n{pes} -c{threads} {program}'",
    )
    parser.add_argument(
        "--library",
        action="append",
        metavar="DIR",
        help="an installed OpenSHMEM: DIR/bin/oshcc and DIR/bin/oshrun; repeat for several (see list)",
    )
    parser.add_argument("--label", action="append", metavar="NAME", help="what to call this implementation")
    parser.add_argument(
        "--fabric",
        action="append",
        metavar="NAME",
        help="what carries the data: on-node (default), tcp, namespaces, ucx:TRANSPORTS, hosts (default where there "
        "are several: see list); may be repeated",
    )
    parser.add_argument(
        "--hosts", metavar="A:N,B:N", help="put up to N PEs on each of these hosts (default: those of an allocation)"
    )
    parser.add_argument("--hostfile", metavar="FILE", help="the same, a host in each line (a, a:4 or a slots=4)")
    parser.add_argument(
        "--nodes", type=_up_to(MOST_HOSTS), metavar="N", help="how many hosts the launcher of --launch chooses"
    )
    parser.add_argument(
        "--link-rate",
        type=_rates,
        metavar="RATE,...",
        help="of the links of each host of namespaces, such as 100mbit or 1gbit; with --rails one for each, if need be",
    )
    parser.add_argument(
        "--rails",
        type=_numbers(MAX_RAILS),
        metavar="N,...",
        help="links of each host of namespaces, all of them used at once (Heddle)",
    )


def _add_advise(commands):
    advise = commands.add_parser(
        "advise",
        help="say how many PEs and threads, which message size, which synchronization; and measure what is missing",
        description="Measures patterns of communication on splits of the same cores, and says which is best "
        "(shmem-mt/docs/advice.md).",
    )
    advise.add_argument("run", nargs="?", metavar="RUN", help="a run folder to use and to add to (default: a new one)")
    advise.add_argument(
        "--budget",
        type=_budget,
        default="10m",
        metavar="TIME",
        help="what measuring may take, such as 90s, 10m (the default) or 2h; 0: answer from what RUN has",
    )
    advise.add_argument("--pattern", type=_names, metavar="NAME,...", help="only these patterns of communication")
    advise.add_argument("--json", action="store_true", help="print the answers as JSON (shmem-mt/docs/advice.md)")
    _add_targets(advise)
    advise.add_argument("--sizes", type=_numbers(1 << 26), metavar="BYTES,...", help="message sizes")
    advise.add_argument("--out", metavar="DIR", help="the new run folder, where there is no RUN")
    advise.add_argument("--exhaustive", type=_positive, metavar="N", help=argparse.SUPPRESS)  # tests/advice/validate.py
    others = ["pes", "threads", "mpicc", "mpirun", "partners", "size", "outstanding", "sync", "seed", "compute_ratio"]
    others += ["computation", "policies", "polls_us", "plant_fault", "messages", "scale"]
    advise.set_defaults(call=_advise, profile="quick", dry_run=False, set_aside=False, **dict.fromkeys(others))


def _add_report(commands):
    report = commands.add_parser("report", help="make one HTML file, and PNG and SVG pictures, of runs")
    report.add_argument("runs", nargs="+", metavar="RUN")
    report.add_argument(
        "--out",
        metavar="FILE",
        help="the HTML file (default: report.html in the first run); pictures go to a folder beside it",
    )
    report.set_defaults(call=_report)


def _add_export(commands):
    export = commands.add_parser(
        "export",
        help="write the tables of a report as CSV and JSON",
        description="Writes the tables that a report of these runs has, in numbers (shmem-mt/docs/method.md).",
    )
    export.add_argument("runs", nargs="+", metavar="RUN")
    export.add_argument("--csv", metavar="DIR", help="a file for each table there")
    export.add_argument("--json", metavar="FILE", help="all tables in one file")
    export.add_argument("--force", action="store_true", help="overwrite files that are there")
    export.set_defaults(call=_export)


def _add_simulate(commands):
    simulate = commands.add_parser(
        "simulate",
        help="compute a network on which messages overtake one another, or calibrate such a model",
        description="Simulates messages under rules of order on a modelled network (shmem-mt/docs/simulator.md).",
    )
    simulate.add_argument("--model", metavar="NAME|FILE", help="gemini (the default), or a model file")
    simulate.add_argument("--nodes", type=_numbers(10**9), metavar="N,...", help="numbers of nodes (default 2)")
    simulate.add_argument("--cores", type=_numbers(10**9), metavar="N,...", help="active cores of each node")
    simulate.add_argument("--sizes", type=_numbers(10**12), metavar="BYTES,...", help="message sizes")
    simulate.add_argument("--rules", type=_names, metavar="NAME,...", help="rules of order (default: all)")
    simulate.add_argument(
        "--outstanding", type=_up_to(4096), default=16, metavar="N", help="messages of a core in flight (default 16)"
    )
    simulate.add_argument("--pattern", choices=("pair", "neighbour", "random"), help="who sends to whom")
    simulate.add_argument("--messages", type=_up_to(10**9), metavar="N", help="of each core (default: enough)")
    simulate.add_argument("--seed", type=_up_to(10**9), default=1, metavar="N", help="of all that is drawn (default 1)")
    simulate.add_argument("--calibrate", metavar="RUN", help="fit a direct model to a run of the ordering study")
    simulate.add_argument(
        "--hold-back", type=_share, default=0.3, metavar="SHARE", help="of the levels of each parameter (default 0.3)"
    )
    simulate.add_argument("--out", metavar="DIR", help="run folder")
    simulate.set_defaults(call=_simulate)


def _add_compare(commands):
    compare = commands.add_parser(
        "compare",
        help="say what got better or worse from the first run to the second",
        description="Exit status: 0 nothing is worse, 1 something is, 3 points are missing, new or no longer checked, "
        "4 not comparable (machine, compiler, settings), 5 too many points cannot be told, 2 bad input.",
    )
    compare.add_argument("runs", nargs="+", metavar="RUN", help="two sides; several runs of a side as RUN,RUN,...")
    compare.add_argument(
        "--baseline", metavar="RUN,...", help="the first side; several runs show how far runs differ by themselves"
    )
    compare.add_argument(
        "--margin",
        type=_share,
        default=0.02,
        help="changes smaller than this share are not called better or worse (default 0.02)",
    )
    compare.add_argument("--only", type=_names, metavar="NAME,...", help="only these benchmarks")
    compare.add_argument(
        "--fail-on",
        type=_troubles,
        default=_TROUBLES,
        metavar="NAME,...",
        help="what may make the exit status other than 0: machine, worse, points, unclear (default: all)",
    )
    compare.add_argument(
        "--unclear",
        type=_share,
        default=0.5,
        metavar="SHARE",
        help="status 5 when more points than this share cannot be told (default 0.5)",
    )
    compare.add_argument(
        "--others",
        type=_share,
        default=OTHERS,
        metavar="SHARE",
        help=f"no change is called when other work took more than this share of the CPUs' time (default {OTHERS})",
    )
    for name in ("json", "markdown", "junit"):
        compare.add_argument(f"--{name}", metavar="FILE", help=f"write the comparison there, too, as {name}")
    compare.set_defaults(call=_compare)


def _troubles(text):
    names = _names(text)
    if not names or set(names) - set(_TROUBLES):
        raise argparse.ArgumentTypeError(f"{text!r} names none of {', '.join(_TROUBLES)}")
    return names


def _up_to(highest):
    numbers = _numbers(highest)

    def parse(text):
        if "," in text:
            raise argparse.ArgumentTypeError(f"{text!r} is not one number")
        return numbers(text)[0]

    return parse


def _positive(text):
    value = int(text) if text.isdecimal() else 0
    if not 1 <= value <= 10000:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number between 1 and 10000")
    return value


def _budget(text):
    """Seconds."""
    match = re.fullmatch(r"(\d{1,6})(s|m|h|)", text)
    if not match or (not match[2] and int(match[1])):
        raise argparse.ArgumentTypeError(f"{text!r} is no time such as 90s, 10m or 2h, and not 0")
    return int(match[1]) * {"": 0, "s": 1, "m": 60, "h": 3600}[match[2]]


def _share(text):
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to below 1")
    return value


def _ratio(text):
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.01 <= value <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0.01 to 100")
    return value


def _size(text):
    if text not in catalogue.SIZES and not (text.isdecimal() and 1 <= int(text) <= 10**9):
        raise argparse.ArgumentTypeError(f"{text!r} is neither {', '.join(catalogue.SIZES)} nor a number up to 10^9")
    return text


def _rates(text):
    for rate in text.split(","):
        if not re.fullmatch(r"[1-9]\d{0,5}(k|m|g)bit", rate):
            raise argparse.ArgumentTypeError(f"{rate!r} is not a rate such as 100mbit or 1gbit")
    return text


def _names(text):
    return [name for name in text.split(",") if name]


def _numbers(highest):
    def parse(text):
        values = []
        for item in text.split(","):
            value = int(item) if item.isdecimal() and len(item) < 19 else 0
            if not 1 <= value <= highest:
                raise argparse.ArgumentTypeError(f"{item!r} is not a number between 1 and {highest}")
            values.append(value)
        return values

    return parse


def _powers(highest):
    parse_numbers = _numbers(highest)

    def parse(text):
        values = parse_numbers(text)
        for value in values:
            if value & (value - 1):
                raise argparse.ArgumentTypeError(f"'{value}' is not a power of two")
        return values

    return parse


def _run(options):
    from shmem_mt.runner.session import run  # numpy and matplotlib load only where they are needed

    try:
        return run(options)
    except MeasuredOtherwiseError:
        if not options.set_aside:
            raise
    kept = f"{options.out}.{time.strftime('%Y%m%d-%H%M%S')}"
    os.rename(options.out, kept)
    print(f"{options.out} was measured with something else, and is now {kept}")
    return run(options)


def _advise(options):
    from shmem_mt.advice.advise import advise

    return advise(options)


def _simulate(options):
    from shmem_mt.report.simulated import conclude
    from shmem_mt.simulation.simulate import simulate
    from shmem_mt.studies.calibration import calibrate

    if options.calibrate and options.model:
        raise UserError("--calibrate makes a model: give it without --model")
    folder, status = calibrate(options) if options.calibrate else (simulate(options), 0)
    return max(conclude(folder, options.seed), status)


def _report(options):
    from shmem_mt.report.report import report

    return report(options)


def _export(options):
    from shmem_mt.report.tables import export

    return export(options)


def _compare(options):
    from shmem_mt.comparison.compare import compare

    return compare(options)


def _explain(options):
    print("\n\n".join("\n".join(explain.lines(name)) for name in options.names))
    return 0


def _list(_options):
    for benchmark in catalogue.BENCHMARKS:
        print(f"{benchmark.name:14} {benchmark.what}\n{'':14} {', '.join(benchmark.ops)}")
    print("\nsynchronizations")
    for name, what in catalogue.SYNCS.items():
        print(f"{name:14} {what}")
    print(f"\nprogress policies\n{', '.join(catalogue.POLICIES)}")
    print("\nlibraries, which their headers tell, and what they need")
    for library in filter(lambda library: library.needs, libraries.KNOWN):
        print(f"{library.name:16} needs {library.needs}{'' if library.has_run else ' (not run here)'}")
    print("\nfabrics")
    for fabric in fabrics.NAMED:
        print(f"{fabric.name:14} {fabric.what}")
    print(f"{fabrics.UCX + 'NAMES':14} transports of UCX, as in UCX_TLS (ucx:sysv,cma), within the machine")
    return 0
