"""A server to be tried: started with settings of the scenario's, watched from outside by what Linux says of its process.

What Linux counts is what the server holds and what its allocator keeps for later. The second is no business of these
scenarios, so the allocator is told to give pages back at once. Then it keeps pages that are in part in use, and what
other threads have freed of a thread's, until that thread allocates again or ends."""

import os
import re
import resource
import subprocess
import time

import wire


# What a thread that has work to do has of the allocator beside what is in use: its pages for large blocks are of 4 MiB.
BUSY_THREAD_MIB = 4

# What is left of that when the work is done and threads without work have ended (serve.rs, WORKER_IDLE_MAX), for every
# thread there may be: all that the scenarios of a server leave behind together.
IDLE_THREAD_MIB = 2

# The server's threads beside its workers: those of the network, of the executors, of garbage collection.
OTHER_THREADS = 8


def limited(address_space):
    """What limits a process to so many bytes of addresses, as `prlimit --as` does."""
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
        # What its allocator may have beside what is in use.
        threads = settings["worker_count_max"] + OTHER_THREADS
        # The network, the executors and the decoding of long messages have as many threads each as there are cores.
        self.threads_max = threads + 3 * os.cpu_count()
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
        """Its memory, in MiB."""
        return self._status("VmRSS:")

    def peak(self):
        """The most memory since `reset_peak`, in MiB."""
        return self._status("VmHWM:")

    def cpu(self):
        """The seconds that its threads have worked, in steps of a hundredth."""
        with open(f"/proc/{self.process.pid}/stat") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def reset_peak(self):
        with open(f"/proc/{self.process.pid}/clear_refs", "w") as refs:
            refs.write("5")

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))

    def fds(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def is_alive(self):
        return self.process.poll() is None

    def metric(self, name):
        """The value of a counter without labels."""
        text = wire.http(self.address, "GET /metrics HTTP/1.1").decode(errors="replace")
        found = re.search(rf"^{name} (\d+)$", text, re.MULTILINE)
        return int(found.group(1)) if found else None

    def graph(self):
        """The memory of its graph, in MiB, as it counts that itself: a scenario may write."""
        if self.is_tls:
            return 0
        text = wire.http(self.address, "GET /metrics HTTP/1.1").decode(errors="replace")
        kinds = re.findall(r"^mangrove_memory_bytes\{.*\} (\d+)$", text, re.MULTILINE)
        if not kinds:
            raise RuntimeError("/metrics says nothing of the graph's memory")
        return sum(map(int, kinds)) / (1 << 20)

    def started(self):
        """It has served somebody: what it holds now is what it holds at rest."""
        self.at_rest = self.rss() - self.graph()
        return self

    def settles(self, fds, seconds=15):
        """Waits until no more files are open and it holds what it holds at rest; what is too much, if that never comes."""
        end = time.monotonic() + seconds
        while True:
            many, much = self.fds() - fds, self.rss() - self.graph() - self.at_rest - self.idle
            if many <= 0 and much <= 0:
                return None
            if time.monotonic() > end:
                return f"{many} more files are open, and memory is {much:.0f} MiB above what it may be"
            time.sleep(0.1)

    def stop(self):
        """SIGTERM; what is wrong with how it ends, if anything is."""
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
