"""A server under test, with the settings of a scenario, observed by what Linux reports of its process.

Linux counts both the memory in use and the memory that the allocator keeps for later. These scenarios are about the
first, so the allocator is configured to return pages at once. It still keeps pages that are partly in use. It also
keeps blocks of one thread that other threads have freed, until that thread allocates again or ends."""

import os
import re
import resource
import subprocess
import time

import wire


# Memory that the allocator holds for a busy thread beyond the memory in use: its pages for large blocks have 4 MiB.
BUSY_THREAD_MIB = 4

# The part of it that remains after the work is done and idle threads have ended (serve.rs, WORKER_IDLE_MAX), for every
# possible thread: a bound for all scenarios of a server together.
IDLE_THREAD_MIB = 2

# An idle worker thread ends after 2 s (WORKER_IDLE_MAX). The pause between queries, in seconds, lets idle threads end.
QUERY_PAUSE = 3

# Threads of the server beside its workers: for the network, the executors, and garbage collection.
OTHER_THREADS = 8


def limited(address_space):
    """Returns a function that limits the address space of a process to this many bytes, like `prlimit --as`."""
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (address_space, address_space))


class Server:
    """`mangrove serve` on a free port of this machine."""

    def __init__(self, program, address_space=None, **settings):
        command = [program, "serve", "--listen", "127.0.0.1:0", "--data", "memory:"]
        for name, value in settings.items():
            command += ["--" + name.replace("_", "-"), str(value)]
        environment = dict(os.environ, MANGROVE_LOG="error", MIMALLOC_PURGE_DELAY="0")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment,
                                        preexec_fn=address_space and limited(address_space))
        line = self.process.stdout.readline().decode()
        found = re.search(r"(wss?)://([^/:]+):(\d+)", line)
        if not found:
            raise RuntimeError(f"the server did not start: {line} {self.process.stderr.read().decode()}")
        threads = settings["worker_count_max"] + OTHER_THREADS
        # The network, the executors and the decoding of long messages each have as many threads as there are cores.
        self.threads_max = threads + 3 * os.cpu_count()
        # Memory in MiB that the allocator may hold beside the memory in use, while threads work and afterwards.
        self.busy, self.idle = BUSY_THREAD_MIB * threads, IDLE_THREAD_MIB * threads
        self.is_tls = found.group(1) == "wss"
        self.address = (found.group(2), int(found.group(3)))

    def _status(self, field):
        with open(f"/proc/{self.process.pid}/status") as status:
            for line in status:
                if line.startswith(field):
                    return int(line.split()[1]) / 1024
        raise RuntimeError(f"/proc has no {field}")

    def rss(self):
        """The resident memory, in MiB."""
        return self._status("VmRSS:")

    def peak(self):
        """The peak of resident memory since `reset_peak`, in MiB."""
        return self._status("VmHWM:")

    def cpu(self):
        """The processor time of all threads, in seconds, in steps of a hundredth."""
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def reset_peak(self):
        """Begins a new record of the peak of resident memory."""
        with open(f"/proc/{self.process.pid}/clear_refs", "w") as refs:
            refs.write("5")

    def threads(self):
        """The number of threads."""
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def fds(self):
        """The number of open files and connections."""
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def is_alive(self):
        return self.process.poll() is None

    def metric(self, name):
        """The value of a metric without labels, or None if /metrics does not show it."""
        text = wire.http(self.address, "GET /metrics HTTP/1.1").decode(errors="replace")
        found = re.search(rf"^{name} (\d+)$", text, re.MULTILINE)
        return int(found.group(1)) if found else None

    def graph(self):
        """The memory of the graph by the server's own count, in MiB. A scenario may write to the graph."""
        if self.is_tls:
            return 0
        text = wire.http(self.address, "GET /metrics HTTP/1.1").decode(errors="replace")
        kinds = re.findall(r"^mangrove_memory_bytes\{.*\} (\d+)$", text, re.MULTILINE)
        if not kinds:
            raise RuntimeError("/metrics has no mangrove_memory_bytes")
        return sum(map(int, kinds)) / (1 << 20)

    def started(self):
        """Records the memory at rest. The server must have answered a request."""
        self.at_rest = self.rss() - self.graph()
        return self

    def settles(self, fds, seconds=15):
        """Waits until files and memory are back at rest. Returns the excess if they are not back in time, or None."""
        end = time.monotonic() + seconds
        next_query = time.monotonic() + QUERY_PAUSE
        while True:
            many, much = self.fds() - fds, self.rss() - self.graph() - self.at_rest - self.idle
            if many <= 0 and much <= 0:
                return None
            if time.monotonic() > end:
                return f"{many} more files are open, and memory is {much:.0f} MiB above its bound"
            # The allocator returns the freed memory of a thread when that thread works again or ends. A query gives the
            # remaining threads work. Queries without a pause would keep all worker threads alive.
            if time.monotonic() >= next_query and not self.is_tls:
                wire.http(self.address, "GET /gremlin?gremlin=g.inject(1) HTTP/1.1")
                next_query = time.monotonic() + QUERY_PAUSE
            time.sleep(0.1)

    def stop(self):
        """Sends SIGTERM. Returns what is wrong with the end of the process, or None."""
        self.process.terminate()
        try:
            _, errors = self.process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
            return "the server did not end on SIGTERM"
        if self.process.returncode != 0:
            return f"the server ended with {self.process.returncode}: {errors.decode(errors='replace')[-2000:]}"
        if b"panic" in errors:
            return f"a panic is in the log: {errors.decode(errors='replace')[-2000:]}"
        return None
