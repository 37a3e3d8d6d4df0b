"""Reading a PE's memory in gdb: its root object, with the types of src/runtime/debugger_view.cpp. Members have the
names of the library's sources; what the names mean is said there."""

import os

import gdb

MOST_TOLD = 32  # of streams, requests, members: lines that nobody would read


class UnknownError(Exception):
    """What cannot be told; its text says why."""


def reason_of(error):
    """Why a reading has failed, in one line."""
    return " ".join(str(error).split()) or type(error).__name__


# What a printer or a command survives: memory that a core lacks, a PE that has damaged its own.
ERRORS = (UnknownError, gdb.error, UnicodeError, OverflowError, ValueError)


def is_library(address):
    """The address is in libheddle.so."""
    return os.path.basename(gdb.solib_name(address) or "").startswith("libheddle.so")


def view():
    """The PE's heddle::runtime::debugger_view."""
    symbol = gdb.lookup_global_symbol("heddle::runtime::debugger_view")
    if symbol:
        return symbol.value()
    if any(os.path.basename(objfile.filename or "").startswith("libheddle.so") for objfile in gdb.objfiles()):
        raise UnknownError("libheddle.so has no debug information: it has been stripped")
    raise UnknownError("libheddle.so is not loaded")


def type_of(name):
    return gdb.lookup_type("heddle::" + name)


def load(atomic):
    """The value in a std::atomic, whatever the C++ library calls its parts."""
    kind = atomic.type.strip_typedefs().template_argument(0)
    return atomic.address.cast(kind.pointer()).dereference()


def at(address, name):
    """The object of a type of heddle:: at an address."""
    return gdb.Value(address).cast(type_of(name).pointer()).dereference()


def text(characters):
    """The text of an array of characters, up to its end or to what cannot be printed."""
    data = gdb.selected_inferior().read_memory(int(characters.address), characters.type.sizeof).tobytes()
    word = data.split(b"\0")[0].decode("ascii", "replace")
    return word if word.isprintable() else ""


def owned(vector):
    """What the elements of a std::vector of std::unique_ptr point to."""
    if any(field.name == "__begin_" for field in vector.type.strip_typedefs().fields()):  # of LLVM's C++ library
        begin, end = vector["__begin_"], vector["__end_"]
    else:
        begin, end = (vector["_M_impl"][name] for name in ("_M_start", "_M_finish"))
    element = begin.type.strip_typedefs().target().strip_typedefs()
    pointer = element.template_argument(0).pointer()
    for index in range(int(end - begin)):
        yield (begin + index).cast(pointer.pointer()).dereference().dereference()


def pool_objects(pool):
    """The objects of a sync::Pool, taken or free."""
    first = int(pool.type.strip_typedefs().template_argument(1))
    chunks = pool["chunks_"]
    begin, end = chunks.type.range()
    for number in range(begin, end + 1):
        chunk = load(chunks[number])
        if not chunk:
            return
        for index in range(first << number):
            yield chunk[index]


def find_in_pool(pool, address):
    """The object of a sync::Pool that begins at an address; None: there is none."""
    first = int(pool.type.strip_typedefs().template_argument(1))
    chunks = pool["chunks_"]
    begin, end = chunks.type.range()
    for number in range(begin, end + 1):
        chunk = load(chunks[number])
        size = chunk.type.target().sizeof
        offset = address - int(chunk)
        if chunk and 0 <= offset < (first << number) * size:
            return chunk[offset // size] if offset % size == 0 else None
    return None


def pe():
    """The root object (src/runtime/pe.h) of a PE that has joined its job."""
    root = view()["pe"].dereference()
    if not root["job"]:
        raise UnknownError("the process has not called shmem_init")
    return root


def part(name):
    """A part of the root object; before its stage it is not there."""
    pointer = pe()[name]
    if not pointer:
        raise UnknownError(f"shmem_init has not come to its {name.replace('_', ' ')}")
    return pointer.dereference()


def world_pe(job, slot):
    """The number in the world of a PE of this page."""
    slots = job["slots"]
    if not slots:
        return slot
    return next((number for number in range(int(job["n_pes"])) if int(slots[number]) == slot), slot)


def members_text(members):
    """"PE 3", "PEs 0-1, 3": the PEs of base::Members."""
    size, start, stride = (int(members[name]) for name in ("size", "start", "stride"))
    listed = members["list"]
    if size > MOST_TOLD and stride != 1 and not listed:
        return f"PEs {start}, {start + stride}, ... {start + (size - 1) * stride}"
    if size > 1 and stride == 1 and not listed:
        return f"PEs {start}-{start + size - 1}"
    told = [start + rank * stride for rank in range(min(size, MOST_TOLD))]
    told = [int(listed[place]) for place in told] if listed else told
    return ("PE " if size == 1 else "PEs ") + numbers_text(told) + (", ..." if size > len(told) else "")


def numbers_text(numbers):
    """"0-1, 3" of numbers that rise; others as they are."""
    runs = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def counted(number, what):
    """"1 stream", "2 streams"."""
    return f"{number} {what}{'' if number == 1 else 's'}"


# --- Teams and contexts

def team_name(handle):
    """"SHMEM_TEAM_WORLD", or "team 0x..."."""
    names = view()
    for name, of_name in (("world", "SHMEM_TEAM_WORLD"), ("shared", "SHMEM_TEAM_SHARED")):
        if int(handle) == int(names[name]):
            return of_name
    return f"team {int(handle):#x}"


def find_team(handle):
    """The team::Team of a handle, alive or not; None: it never was one of this PE's."""
    names, teams = view(), part("teams")
    for name in ("world", "shared"):
        if int(handle) == int(names[name]):
            return teams[name]
    chunk = teams["chunks"]
    while chunk:
        array = chunk["teams"]
        size = array.type.target().sizeof
        offset = int(handle) - int(array.address)
        if 0 <= offset < array.type.sizeof:
            return array[offset // size] if offset % size == 0 else None
        chunk = chunk["next"]
    return None


def find_context(handle):
    """The context::Context of a handle, alive or not; None: it never was one of this PE's."""
    contexts = part("contexts")
    if int(handle) == int(view()["default_ctx"]):
        return contexts["of_default"]
    return find_in_pool(contexts["pool"], int(handle))


# --- Streams

def streams_of_set(stream_set):
    """The streams of a fabric::StreamSet."""
    group = load(stream_set["groups"])
    while group:
        for index in range(int(load(group["size_"]))):
            yield group["streams_"][index].dereference()
        group = group["next"]


def streams_of_list(stream_sets):
    """The streams of a fabric::StreamSetList."""
    stream_set = load(stream_sets["first"])
    while stream_set:
        yield from streams_of_set(stream_set)
        stream_set = stream_set["next"]


class Stream:
    """The positions of a fabric::Stream (src/fabric/endpoint/stream.h)."""

    def __init__(self, stream):
        ring, returns, bodies = stream["ring_"], stream["returns_"], stream["bodies_"]
        self.pe = int(stream["pe_"])
        self.published = int(ring["head_"]["published"])
        self.sent = int(ring["sent_"])
        self.acked = int(load(ring["acked_"]))
        self.returned = int(load(returns["returned_"]))
        self.returns = max(int(load(returns["published_"])) - self.returned, 0)
        self.bodies = max(int(load(bodies["posted_"])) - int(load(bodies["sent_"])), 0)

    def is_quiet(self):
        return self.acked >= self.published and self.returns == 0 and self.bodies == 0

    def text(self):
        parts = [f"published {self.published}, sent {self.sent}, acked {self.acked}",
                 f"{counted(max(self.sent - self.acked, 0), 'byte')} in flight"]
        if self.published > self.sent:
            parts.append(f"{counted(self.published - self.sent, 'byte')} not sent")
        if self.returns:
            parts.append(f"{counted(self.returns, 'value')} to come back")
        if self.bodies:
            parts.append(f"{counted(self.bodies, 'large transfer')} under way")
        return f"stream to PE {self.pe}: " + ", ".join(parts)
