"""Pretty-printers of gdb for the handles of OpenSHMEM and Heddle, and for streams to other nodes. A printer never
fails: what it cannot read it says instead."""

import itertools

import gdb
import gdb.printing
import heddle_pe
from heddle_pe import MOST_TOLD, Stream, counted, load

# include/heddle/constants.h and request.h
OPTIONS = {1: "SHMEM_CTX_PRIVATE", 2: "SHMEM_CTX_SERIALIZED", 4: "SHMEM_CTX_NOSTORE", 1 << 16: "SHMEMX_CTX_ORDERED",
           1 << 17: "SHMEMX_CTX_RELAXED"}
REQUEST_COMPLETE = 1


def options_text(options):
    named = [name for bit, name in OPTIONS.items() if options & bit]
    left = options & ~sum(OPTIONS)
    return " | ".join(named + ([f"{left:#x}"] if left else [])) or "no options"


class Handle:
    """The printer of a handle: describe() makes its text, children() the lines below it."""

    def __init__(self, value):
        self.handle = value

    def to_string(self):
        try:
            return self.describe()
        except heddle_pe.ERRORS as error:
            return f"{int(self.handle):#x} (unknown: {heddle_pe.reason_of(error)})"

    def children(self):
        return iter(())


class Context(Handle):
    def context(self):
        found = heddle_pe.find_context(self.handle) if int(self.handle) else None
        is_default = int(self.handle) == int(heddle_pe.view()["default_ctx"])
        return found if found is not None and (is_default or bool(load(found["alive"]))) else None

    def describe(self):
        if not int(self.handle):
            return "SHMEM_CTX_INVALID"
        is_default = int(self.handle) == int(heddle_pe.view()["default_ctx"])
        name = "SHMEM_CTX_DEFAULT" if is_default else f"context {int(self.handle):#x}"
        found = heddle_pe.find_context(self.handle)
        if found is None:
            return f"{int(self.handle):#x}: no context of this PE"
        if not is_default and not bool(load(found["alive"])):
            return f"{name}: destroyed"
        parts = [options_text(int(found["options"])),
                 f"{heddle_pe.team_name(found['team'])} of {heddle_pe.members_text(found['members'])}",
                 f"{counted(int(load(found['outstanding'])), 'transfer')} outstanding"]
        streams = [Stream(one) for one in heddle_pe.streams_of_list(found["stream_sets"])]
        if streams:
            busy = sum(not one.is_quiet() for one in streams)
            parts.append(f"{counted(len(streams), 'stream')}, {busy} with something outstanding")
        return f"{name}: " + ", ".join(parts)

    def children(self):
        try:
            found = self.context()
            streams = heddle_pe.streams_of_list(found["stream_sets"]) if found is not None else ()
            return iter([(f"[{number}]", one) for number, one in enumerate(itertools.islice(streams, MOST_TOLD))])
        except heddle_pe.ERRORS:
            return iter(())

    def display_hint(self):
        return "array"


class Team(Handle):
    def describe(self):
        if not int(self.handle):
            return "SHMEM_TEAM_INVALID"
        team = heddle_pe.find_team(self.handle)
        if team is None:
            return f"{int(self.handle):#x}: no team of this PE"
        name = heddle_pe.team_name(self.handle)
        if not bool(team["alive"]):
            return f"{name}: destroyed"
        members = team["members"]
        parts = [heddle_pe.members_text(members), f"this PE is {int(team['rank'])} of {int(members['size'])}"]
        if team["span"]:
            parts.append(f"on {counted(int(team['span']['n_nodes']), 'node')}, "
                         f"{counted(int(team['span']['steps']), 'step')} begun")
        else:
            parts.append(f"{counted(int(team['state']['count']), 'step')} begun")
        if inside := load(team["inside"]):
            parts.append(f"in {inside.string()}")
        return f"{name}: " + ", ".join(parts)


class Request(Handle):
    def request(self):
        """The context::Request of the handle; None: none of this PE. Raises for a handle that has ended."""
        view, handle = heddle_pe.view(), int(self.handle)
        pool = view["requests"].dereference()["part_"]
        if not pool:
            raise heddle_pe.UnknownError("shmem_init has not made its requests")
        bits = int(view["request_bits"])
        request = heddle_pe.find_in_pool(pool.dereference(), handle & ~bits)
        if request is None:
            return None
        generation = (handle & bits) >> 1
        if not bool(load(request["alive"])) or int(load(request["generation"])) & bits >> 1 != generation:
            ended = request["ended"]["function"]
            raise heddle_pe.UnknownError("the request has ended" + (f" in {ended.string()}" if ended else ""))
        return request

    def describe(self):
        handle = int(self.handle)
        if handle == int(heddle_pe.view()["no_request"]):
            return "SHMEMX_REQUEST_NULL"
        if handle == REQUEST_COMPLETE:
            return "request without operations that outlast their call: complete"
        request = self.request()
        if request is None:
            return f"{handle:#x}: no request of this PE"
        return f"request {handle:#x}: {request_text(request)}"


def claims_of(request):
    claim = load(request["claims"])
    while claim:
        yield claim.dereference()
        claim = claim["next"]


def claim_text(claim):
    """What a request waits for of a stream; None: it is complete."""
    stream = Stream(claim["stream"].dereference())
    left = max(int(load(claim["position"])) - stream.acked, 0)
    returns = max(int(load(claim["returns"])) - stream.returned, 0)
    parts = ([counted(left, "byte") + " not acked"] if left else []) + (
        [counted(returns, "value") + " to come back"] if returns else [])
    return f"PE {stream.pe}: " + ", ".join(parts) if parts else None


def request_text(request):
    """"SHARED, complete", "PRIVATE, 2 operations outstanding, PE 1: 24 bytes not acked"."""
    kind = "SHARED" if bool(request["shared"]) else "PRIVATE"
    outstanding = sum(int(load(request["sides"][side])) for side in (0, 1))
    parts = [counted(outstanding, "operation") + " outstanding"] if outstanding else []
    told = (claim_text(claim) for claim in itertools.islice(claims_of(request), MOST_TOLD))
    parts += [one for one in told if one]
    return ", ".join([kind, *(parts or ["complete"])])


class FabricStream(Handle):
    def to_string(self):
        try:
            return Stream(self.handle).text()
        except heddle_pe.ERRORS as error:
            return f"stream (unknown: {heddle_pe.reason_of(error)})"


# By what a handle points to.
HANDLES = {"heddle_ctx": Context, "heddle_team": Team, "heddle_request": Request}


class Printers(gdb.printing.PrettyPrinter):
    def __init__(self):
        super().__init__("heddle", [])

    def __call__(self, value):
        kind = value.type.strip_typedefs()
        if kind.code == gdb.TYPE_CODE_PTR:
            printer = HANDLES.get(kind.target().unqualified().strip_typedefs().tag)
            return printer(value) if printer else None
        return FabricStream(value) if kind.tag == "heddle::fabric::Stream" else None


def register():
    gdb.printing.register_pretty_printer(None, Printers(), replace=True)
