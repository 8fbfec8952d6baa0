"""A server to be tried: started with settings of the scenario's, watched from outside by what Linux says of its process."""

import os
import re
import subprocess
import time

import wire


class Server:
    """`mangrove serve` on a free port of this machine."""

    def __init__(self, program, **settings):
        command = [program, "serve", "--listen", "127.0.0.1:0", "--data", "memory:"]
        for name, value in settings.items():
            command += ["--" + name.replace("_", "-"), str(value)]
        environment = dict(os.environ, MANGROVE_LOG="error")
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
        line = self.process.stdout.readline().decode()
        found = re.search(r"(wss?)://([^/:]+):(\d+)", line)
        if not found:
            raise RuntimeError(f"the server did not start: {line} {self.process.stderr.read().decode()}")
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

    def reset_peak(self):
        with open(f"/proc/{self.process.pid}/clear_refs", "w") as refs:
            refs.write("5")

    def fds(self):
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def is_alive(self):
        return self.process.poll() is None

    def metric(self, name):
        """The value of a counter without labels."""
        text = wire.http(self.address, "GET /metrics HTTP/1.1").decode(errors="replace")
        found = re.search(rf"^{name} (\d+)$", text, re.MULTILINE)
        return int(found.group(1)) if found else None

    def settles(self, fds, rss, seconds=15):
        """Waits until no more files are open and not much more memory is held than before; what is too much, if that
        never comes."""
        end = time.monotonic() + seconds
        while True:
            many, much = self.fds() - fds, self.rss() - rss
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
