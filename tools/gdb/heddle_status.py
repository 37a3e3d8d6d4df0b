"""The command heddle-status of gdb: where each thread of a PE is, in a live process and in a core file. Told from the
stacks and from what the PE publishes of its waits (src/bootstrap/pe_status.h), with the words of oshrun --status."""

import itertools
import re
import time

import gdb
import heddle_pe
from heddle_pe import MOST_TOLD, UnknownError, at, load, reason_of
from heddle_printers import request_text

MOST_FRAMES = 256  # of a stack that is looked at
PUBLIC = re.compile(r"p?(shmem\w*|start_pes|shmalloc|shfree|_my_pe|_num_pes)$")
INLINED = re.compile(r"(p?shmemx?|heddle)_\w+$")
HEAP, DATA = 1, 2  # WaitState::Region
VALUE, ANY_VALUE, LOCK = 1, 2, 3  # WaitState::Awaits
STAGES = ("has not called shmem_init", *["is in shmem_init or shmem_finalize"] * 6, "is initialized")  # Pe::Stage
EXITS = {1: "has called shmem_global_exit", 2: "has ended with a message", 3: "was ended by the launcher"}


# --- Times

class Clock:
    """Times as a PE records them, CLOCK_MONOTONIC. A core file does not tell the time at which it was made."""

    def __init__(self):
        target = gdb.execute("info files", to_string=True)
        self.is_core = "core dump file" in target
        self.now_ns = None if self.is_core or "emote" in target else time.clock_gettime_ns(time.CLOCK_MONOTONIC)

    def since(self, then_ns):
        if self.now_ns is None:
            return f"since {then_ns / 1e9:.1f} s of the host's clock"
        return f"since {max(self.now_ns - then_ns, 0) / 1e9:.1f} s"

    def ago(self, then_ns):
        if self.now_ns is None:
            return f"at {then_ns / 1e9:.1f} s"
        return f"{max(self.now_ns - then_ns, 0) / 1e9:.1f} s ago"


# --- What the PE publishes

def own_status(job):
    """This PE's bootstrap::PeStatus."""
    page = job["page"]
    if not page:
        raise UnknownError("the process has no job page")
    n_pes, slot = int(page["n_pes"]), int(job["slot"])
    record, address, status = (heddle_pe.type_of("bootstrap::" + name).sizeof
                               for name in ("PeRecord", "PeAddress", "PeStatus"))
    begin = int(page) + page.dereference().type.sizeof + n_pes * (record + address)
    return at(begin + slot * status, "bootstrap::PeStatus")


def snapshot(value, name):
    """What a sync::Snapshot holds."""
    copy = value["copies_"][int(load(value["version_"])) % 2]
    return at(int(copy.address), name)


class Wait:
    """A bootstrap::WaitState."""

    def __init__(self, state):
        self.state = state
        self.thread, self.since_ns = int(state["thread"]), int(state["since_ns"])
        self.function, self.place = heddle_pe.text(state["function"]) or "Heddle", heddle_pe.text(state["place"])

    def address(self):
        """Of what it looks at, in this PE; None: not told."""
        region, symmetric = int(self.state["region"]), heddle_pe.part("symmetric")
        if region not in (HEAP, DATA):
            return None
        return int(symmetric["heap" if region == HEAP else "data"]["base"]) + int(self.state["offset"])

    def number(self, value):
        bits = 8 * int(self.state["value_bytes"])
        value &= (1 << bits) - 1
        return value - (1 << bits) if int(self.state["is_signed"]) and value >> (bits - 1) else value

    def target(self):
        """"(flag[3] >= 3, is 2)", or nothing."""
        awaits, address = int(self.state["awaits"]), self.address()
        if awaits not in (VALUE, ANY_VALUE, LOCK) or address is None:
            return ""
        element = int(self.state["value_bytes"])
        name = object_text(address, element or 8, int(self.state["region"]), int(self.state["offset"]))
        comparison = heddle_pe.text(self.state["comparison"])
        if awaits == LOCK:
            holder = int(self.state["holder"])
            return f"({name}" + (f", held by PE {holder})" if holder >= 0 else ")")
        if awaits == ANY_VALUE:
            return f"({int(self.state['nelems'])} elements from {name} on, {comparison})"
        if element not in (1, 2, 4, 8):
            return ""
        try:
            data = gdb.selected_inferior().read_memory(address, element).tobytes()
            now = f", is {self.number(int.from_bytes(data, 'little'))}"
        except gdb.error:
            now = ""
        return f"({name} {comparison} {self.number(int(self.state['value']))}{now})"

    def text(self):
        return self.function + self.target()


def object_text(address, element, region, offset):
    """"flag[3]", "flag+0x4", "heap+0x40"."""
    if region == HEAP:
        return f"heap+{offset:#x}"
    found = re.match(r"(\S+)(?: \+ (\d+))? in section ", gdb.execute(f"info symbol {address:#x}", to_string=True))
    if not found:
        return f"static data+{offset:#x}"
    name, inside = found[1], int(found[2] or 0)
    symbol = gdb.lookup_global_symbol(name) or gdb.lookup_static_symbol(name)
    size = symbol.type.strip_typedefs().sizeof if symbol else 0
    if inside == 0 and size <= element:
        return name
    if size and inside % element == 0 and size % element == 0:
        return f"{name}[{inside // element}]"
    return f"{name}+{inside:#x}"


def waits_of(status):
    """The waits in which threads sleep."""
    entries = int(load(status["entries"]))
    begin, end = status["waits"].type.range()
    waits = [Wait(snapshot(status["waits"][number], "bootstrap::WaitState")) for number in range(begin, end + 1)
             if entries >> number & 1]
    return [wait for wait in waits if wait.since_ns]


def calls_of(status):
    """The ring of last calls, newest first: (time, text)."""
    seen = int(load(status["n_calls"]))
    begin, end = status["calls"].type.range()
    size = end - begin + 1
    for number in range(seen - 1, max(seen - size, 0) - 1, -1):
        call = snapshot(status["calls"][number % size], "bootstrap::CallRecord")
        if int(call["kind"]):
            yield int(call["at_ns"]), heddle_pe.text(call["text"])


# --- What the stacks tell

def frames():
    """The frames of the selected thread, newest first, as far as they can be told."""
    try:
        frame = gdb.newest_frame()
        for _ in range(MOST_FRAMES):
            if frame is None:
                return
            yield frame
            frame = frame.older()
    except gdb.error:  # a stack that leads nowhere
        return


def name_of(frame):
    return re.sub(r"[(<].*", "", frame.name() or "")


def place_text(frame):
    """"wait_for_ever (hangs.c:20)"; nothing where not even a name is known."""
    if frame is None or not frame.is_valid():
        return ""
    line = frame.find_sal()
    name = name_of(frame)
    return f"{name} ({line.symtab.filename.rpartition('/')[2]}:{line.line})" if line.symtab else name


def is_of_c_library(frame):
    return re.match(r"(libc|libpthread|ld)[.-]", (gdb.solib_name(frame.pc()) or "").rpartition("/")[2]) is not None


def called_by(frame):
    """The function of OpenSHMEM that a frame has called, by the frame's instruction: a function that ends in a call has
    no frame of its own. None: not told."""
    for length in (5, 6, 4):  # x86-64: of the function, and through a pointer; aarch64
        try:
            instruction = frame.architecture().disassemble(frame.pc() - length)[0]
        except gdb.error:
            continue
        found = re.match(r"(?:callq?|blr?)\b.*<\*?(\w+)(?:@[\w.]+)?>", instruction["asm"])
        if found and instruction["length"] == length and PUBLIC.match(found[1]):
            return found[1]
    return None


class Call:
    """In which call of Heddle the selected thread is, by its stack. function: None: in none. is_own: a thread of the
    library, which no program's frame has called."""

    def __init__(self):
        self.function, self.place, self.is_own = None, "", False
        stack = list(frames())
        self.newest = place_text(stack[0]) if stack else ""
        inside = [number for number, frame in enumerate(stack) if heddle_pe.is_library(frame.pc()) or (
            frame.type() == gdb.INLINE_FRAME and INLINED.match(name_of(frame)))]
        if not inside:
            return
        last = inside[-1]
        names = [name_of(stack[number]) for number in reversed(inside)]
        caller = stack[last + 1] if last + 1 < len(stack) else None
        self.function = (next((name for name in names if PUBLIC.match(name)), None) or (caller and called_by(caller))
                         or names[0] or "Heddle")
        self.place = place_text(caller)
        # Its names may be missing. A program that ends has its _start below the C library's exit.
        self.is_own = all(is_of_c_library(frame) for frame in stack[last + 1:])


def thread_text(thread, call, wait, clock):
    """The answer of one thread."""
    if wait:
        place = call.place if call else ""
        where = f" (called at {place or wait.place})" if place or wait.place else ""
        return f"in {wait.text()}{where} {clock.since(wait.since_ns)}"
    if call is None:
        return "is running: stop it first"
    if call.is_own:
        return "a thread of Heddle's own" + (f", at {call.newest}" if call.newest else "")
    if call.function:
        return f"in {call.function}" + (f" (called at {call.place})" if call.place else "") + ", not asleep"
    return f"not in Heddle, at {call.newest}" if call.newest else "not in Heddle"


def wait_of(thread, call, waits, threads):
    """The published wait of a thread. Numbers of threads differ where the PE has a process namespace of its own: then
    the only wait in the function of its stack."""
    for wait in waits:
        if wait.thread == thread.ptid[1]:
            return wait
    numbers = {one.ptid[1] for one in threads}
    left = [wait for wait in waits if wait.thread not in numbers and call and wait.function == call.function]
    return left[0] if len(left) == 1 else None


# --- The command

def describe_threads(waits, clock):
    threads = sorted(gdb.selected_inferior().threads(), key=lambda one: one.num)
    left = list(waits)
    for thread in threads:
        call = None
        if thread.is_stopped():
            thread.switch()
            call = Call()
        wait = wait_of(thread, call, left, threads)
        if wait:
            left.remove(wait)
        yield f"thread {thread.num} (LWP {thread.ptid[1]}): " + thread_text(thread, call, wait, clock)
    for wait in left:
        yield f"a thread that is {wait.thread} in its own namespace: in {wait.text()} {clock.since(wait.since_ns)}"


def describe_pe():
    root = heddle_pe.pe()
    job, stage = root["job"].dereference(), int(root["stage"])
    state = STAGES[stage] if 0 <= stage < len(STAGES) else "is in a state that its own stores have damaged"
    node = f", on node {int(job['node'])} of {int(job['n_nodes'])}" if int(job["n_nodes"]) > 1 else ""
    yield f"PE {int(job['pe'])} of {int(job['n_pes'])}{node}: {state}"
    word = int(load(job["page"]["exit"])) if job["page"] else 0
    if word:
        why = EXITS.get(word >> 56, "has asked for its end")
        status = word & 0xffffffff
        yield "the job is ending: " + ("it " if word >> 56 == 3 else f"PE {word >> 32 & 0xffffff} ") + why + (
            f", status {status}" if status else "")


def describe_waiters(status, waits):
    job = heddle_pe.part("job")
    found = snapshot(status["waiters"], "bootstrap::Waiters")
    number = int(found["number"])
    begin, end = found["waiters"].type.range()
    if not number or not any(wait.since_ns == int(found["since_ns"]) for wait in waits):
        return
    told = range(begin, min(number, end + 1))
    pes = sorted(heddle_pe.world_pe(job, int(found["waiters"][one]["slot"])) for one in told)
    yield (f"{'PEs' if number > 1 else 'PE'} {heddle_pe.numbers_text(pes)}{', ...' if number > len(pes) else ''} "
           f"wait{'' if number > 1 else 's'} for this PE")


def describe_requests():
    pool = heddle_pe.view()["requests"].dereference()["part_"]
    for request in heddle_pe.pool_objects(pool.dereference()) if pool else ():
        if bool(load(request["alive"])) and not (words := request_text(request)).endswith(", complete"):
            yield f"request {int(request.address):#x}: {words}"


def describe_streams():
    network = heddle_pe.pe()["network"]
    for pool in heddle_pe.owned(network["channel_pools_"]) if network else ():
        for stream_set in heddle_pe.pool_objects(pool["stream_sets"]):
            for one in heddle_pe.streams_of_set(stream_set):
                if not (stream := heddle_pe.Stream(one)).is_quiet():
                    yield stream.text()


def describe_calls(status, clock):
    calls = list(calls_of(status))
    if calls:
        yield "last collectives of a checked run, and long waits, the newest first:"
    for when_ns, words in calls:
        yield f"  {words} {clock.ago(when_ns)}"


def tell(lines, what, most=None):
    """Writes the lines, at most so many, or why there are no more."""
    try:
        for line in itertools.islice(lines, most):
            gdb.write(line + "\n")
        if next(iter(lines), None) is not None:
            gdb.write(f"... and more {what}\n")
    except heddle_pe.ERRORS as error:
        gdb.write(f"{what}: unknown: {reason_of(error)}\n")


def tell_status():
    """All that heddle-status says of the selected process."""
    clock = Clock()
    waits, status = [], None
    tell(describe_pe(), "PE")
    try:
        status = own_status(heddle_pe.part("job"))
        waits = waits_of(status)
    except heddle_pe.ERRORS as error:
        gdb.write(f"waits: told from the stacks alone: {reason_of(error)}\n")
    tell(describe_threads(waits, clock), "threads")
    if status is None:
        return
    tell(describe_waiters(status, waits), "PEs that wait")
    tell(describe_requests(), "requests", MOST_TOLD)
    tell(describe_streams(), "streams", MOST_TOLD)
    tell(describe_calls(status, clock), "calls")


# --- A core file without its program

def program_of_core():
    """The file of the program that a core file is of: the mapping that holds its entry point. None: not told."""
    entry = re.search(r"AT_ENTRY\s.*?(0x[0-9a-f]+)", gdb.execute("info auxv", to_string=True))
    for line in gdb.execute("info proc mappings", to_string=True).splitlines() if entry else ():
        found = re.match(r"\s*(0x[0-9a-f]+)\s+(0x[0-9a-f]+)\s.*?\s(/.*)$", line)
        if found and int(found[1], 16) <= int(entry[1], 16) < int(found[2], 16):
            return found[3]
    return None


def load_program():
    """Loads the program of a core file that was opened without one."""
    core = re.search(r"core dump file:\s*\n\s*`(.*)',", gdb.execute("info files", to_string=True))
    if gdb.current_progspace().filename or not core:
        return
    program = program_of_core()
    if not program:
        raise gdb.GdbError("heddle-status: the core file does not name its program: give it to gdb (file PROGRAM)")
    gdb.execute(f"file {program}", to_string=True)
    gdb.execute(f"core-file {core[1]}", to_string=True)


class Status(gdb.Command):
    """Where each thread of the PE is: its call of Heddle, what it waits for, the value that is there, and since when.
Then the requests and streams with something outstanding, and the PE's last calls. Works on a core file, too."""

    def __init__(self):
        super().__init__("heddle-status", gdb.COMMAND_STATUS)

    def invoke(self, words, is_from_terminal):
        if words:
            raise gdb.GdbError("heddle-status: right would be no argument")
        load_program()
        thread = gdb.selected_thread()
        if thread is None:
            raise gdb.GdbError("heddle-status: there is no process and no core file")
        frame = gdb.selected_frame() if thread.is_stopped() else None
        try:
            tell_status()
        finally:
            thread.switch()
            if frame is not None and frame.is_valid():
                frame.select()


def register():
    Status()
