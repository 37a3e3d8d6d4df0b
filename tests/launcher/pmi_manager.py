"""A process manager that speaks PMI-1 and PMI-2, and, if asked to, wrongly. Each PE has one end of a socket pair as
PMI_FD, a thread here the other one."""

import contextlib
import os
import socket
import subprocess
import threading

MAX_MESSAGE = 4096  # of the client under test
NAME = "ƒ3ETxsR9H"  # of the job's keys in PMI-1, as Flux makes it: with bytes that are no ASCII


class Manager:
    """Answers n PEs. `spoil` sees each answer as (PE, command, bytes), and returns what is sent instead of it: bytes; a
    list of bytes, sent one after the other; or None, which ends the connection."""

    def __init__(self, pes, versions=(1, 2), spoil=None, maxes="kvsname_max=256 keylen_max=64 vallen_max=1024"):
        self.pes, self.versions, self.maxes = pes, versions, maxes
        self.spoil = spoil or (lambda pe, command, answer: answer)
        self.keys, self.waiting, self.commands, self.lock = {}, {}, [], threading.Lock()
        self.aborted = None

    def run(self, command, limit=120, ends_behind=None, **environment):
        """The processes' (status, out, err). ends_behind: the end of the line of each PE's output behind which all
        connections are closed."""
        pairs = [socket.socketpair() for _ in range(self.pes)]
        inherited = {name: text for name, text in os.environ.items()
                     if not name.startswith(("PMI", "SLURM_", "HEDDLE_"))}
        processes = []
        for pe, (_, theirs) in enumerate(pairs):
            fd = theirs.fileno()
            variables = {**inherited, "PMI_FD": str(fd), "PMI_RANK": str(pe), "PMI_SIZE": str(self.pes), **environment}
            processes.append(subprocess.Popen(list(map(str, command)), env=variables, pass_fds=[fd], text=True,
                                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                              stderr=subprocess.PIPE))
        threads = [threading.Thread(target=self.serve, args=(pe, ours), daemon=True)
                   for pe, (ours, _) in enumerate(pairs)]
        for _, theirs in pairs:
            theirs.close()
        for thread in threads:
            thread.start()
        results = []
        try:
            said = [process.stdout.readline() if ends_behind else "" for process in processes]
            if ends_behind:
                assert all(line.endswith(ends_behind + "\n") for line in said), said
                for ours, _ in pairs:
                    ours.shutdown(socket.SHUT_RDWR)
            for process, line in zip(processes, said, strict=True):
                out, err = process.communicate(timeout=limit)
                results.append((process.returncode, line + out, err))
        finally:
            for process in processes:
                if process.poll() is None:
                    process.kill()
                    process.wait()
        for thread in threads:
            thread.join(10)
        return results

    def serve(self, pe, connection):
        with connection, contextlib.suppress(OSError):
            read = connection.makefile("rb")
            version = 1
            while True:
                if version == 1:
                    text = read.readline().decode().rstrip("\n")
                else:
                    length = read.read(6)
                    text = read.read(int(length)).decode() if length else ""
                if not text:
                    return
                assert len(text) <= MAX_MESSAGE
                fields = dict(field.split("=", 1) for field in text.split(" " if version == 1 else ";") if field)
                command = fields["cmd"]
                with self.lock:
                    self.commands.append((pe, command))
                if command == "init":
                    asked = int(fields["pmi_version"])
                    agreed = asked if asked in self.versions else self.versions[0]
                    self.send(pe, connection, command, 1, "response_to_init", pmi_version=agreed, pmi_subversion=0,
                              rc=0 if agreed == asked else -1)
                    version = agreed if agreed == asked else 1
                elif command in ("barrier_in", "kvs-fence"):
                    self.meet(pe, connection, command, version)
                else:
                    self.answer(pe, connection, command, version, fields)

    def meet(self, pe, connection, command, version):
        with self.lock:
            self.waiting[pe] = connection
            those = dict(self.waiting) if len(self.waiting) == self.pes else {}
            if those:
                self.waiting = {}
        name = "barrier_out" if version == 1 else "kvs-fence-response"
        for its, socket_of_it in those.items():
            self.send(its, socket_of_it, command, version, name, rc=0)

    def answer(self, pe, connection, command, version, fields):
        if command == "abort":
            self.aborted = (pe, fields)
            return
        name = {"get_maxes": "maxes", "get_my_kvsname": "my_kvsname", "put": "put_result", "get": "get_result",
                "finalize": "finalize_ack"}.get(command, command + "-response")
        more = {"rc": 0}
        if command == "get_maxes":
            more |= dict(field.split("=") for field in self.maxes.split())
        elif command == "get_my_kvsname":
            more["kvsname"] = NAME
        elif command == "job-getid":
            more["jobid"] = "job"
        elif command == "fullinit":
            more |= {"pmi-version": 2, "rank": pe, "size": self.pes, "appnum": 0}
        elif command in ("put", "kvs-put"):
            assert fields["key"] not in self.keys, "each key is published once"
            self.keys[fields["key"]] = fields["value"]
        elif command in ("get", "kvs-get"):
            value = self.keys.get(fields["key"])
            if version == 1:
                more = {"rc": 0, "value": value} if value else {"rc": -1, "msg": "no_such_key"}
            else:
                more = {"rc": 0, "found": "TRUE", "value": value} if value else {"rc": 0, "found": "FALSE"}
        self.send(pe, connection, command, version, name, **more)

    def send(self, pe, connection, command, version, name, **fields):
        text = [f"cmd={name}", *(f"{key}={value}" for key, value in fields.items())]
        if version == 1:
            whole = (" ".join(text) + "\n").encode()
        else:
            body = ";".join(text) + ";"
            whole = f"{len(body):<6}{body}".encode()
        whole = self.spoil(pe, command, whole)
        if whole is None:
            connection.shutdown(socket.SHUT_RDWR)
            return
        for part in whole if isinstance(whole, list) else [whole]:
            connection.sendall(part)
