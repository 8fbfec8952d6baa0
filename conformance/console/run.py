"""Drives `mangrove console` through a pseudo-terminal, as a person does: editing, completion, history, Ctrl-C.

Usage: run.py MANGROVE. Needs Python's standard library and nothing else. The exit code is 0 only if everything passed.
"""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import traceback

TIMEOUT_SECONDS = 60
UP, ERASE, CTRL_C, CTRL_D = "\x1b[A", "\x7f", "\x03", "\x04"
ENDLESS = "g.inject(1).repeat(__.map(__.sum())).until(__.is(2))"
PEOPLE = "id:ID,name:string,age:int,:LABEL\n1,ada,36,person\n2,bob,,person\n3,eve,29,person\n"
KNOWS = ":START_ID,:END_ID,:TYPE,since:int\n1,2,knows,1999\n1,3,knows,2005\n"


class Terminal:
    """A console in a pseudo-terminal."""

    def __init__(self, program, state, *args):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("MANGROVE_")}
        environment.update(XDG_STATE_HOME=state, TERM="xterm", NO_COLOR="1", COLUMNS="120")
        self.process, self.keys = pty.fork()
        if self.process == 0:
            os.execve(program, [program, "console", *args], environment)
        self.seen = ""

    def press(self, keys):
        """Presses keys."""
        os.write(self.keys, keys.encode())

    def expect(self, part):
        """Waits until this text appears on the screen again. Returns the output up to then."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while part not in self.seen:
            readable, _, _ = select.select([self.keys], [], [], max(0, deadline - time.monotonic()))
            if not readable:
                raise AssertionError(f"never seen: {part!r}; this was: {self.seen!r}")
            try:
                text = os.read(self.keys, 65536).decode(errors="replace")
            except OSError:
                raise AssertionError(f"the console ended before {part!r}; this was: {self.seen!r}") from None
            # Escape sequences that move the cursor are no text.
            self.seen += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)
        before, self.seen = self.seen.split(part, 1)
        return before + part

    def say(self, line, answer):
        """Types a line at the prompt and waits for the answer."""
        self.expect("> ")
        self.press(line + "\r")
        # The typed line is echoed on the screen, too.
        return self.expect(answer)

    def leave(self):
        """Presses Ctrl-D at the prompt, and waits for the end."""
        self.expect("> ")
        self.press(CTRL_D)
        try:
            while os.read(self.keys, 65536):
                pass
        except OSError:
            pass
        _, status = os.waitpid(self.process, 0)
        os.close(self.keys)
        if status != 0:
            raise AssertionError(f"it ended with {status}")


class Server:
    """A running server."""

    def __init__(self, program, address="127.0.0.1:0"):
        self.process = subprocess.Popen([program, "serve", "--listen", address], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        self.url = self.process.stdout.readline().split()[-1]
        self.address = self.url.split("/")[2]

    def end(self, number=signal.SIGTERM):
        """Sends a signal and waits."""
        self.process.send_signal(number)
        self.process.wait()
        self.process.stdout.close()


def expect(condition, message):
    """Asserts, also under `python -O`."""
    if not condition:
        raise AssertionError(message)


def edits_and_completes(program, state):
    """Steps, labels and keys are completed; an open bracket continues on the next line; a line can be edited; errors
    are shown."""
    for name, text in [("people.csv", PEOPLE), ("knows.csv", KNOWS)]:
        with open(os.path.join(state, name), "w", encoding="utf-8") as file:
            file.write(text)
    files = [each for name in ("people.csv", "knows.csv") for each in ("--load", os.path.join(state, name))]
    terminal = Terminal(program, state, *files)
    terminal.expect("connected to memory:")
    terminal.say("g.V().hasLab\t('per\t').out('kn\t').values('nam\t')", "eve")
    terminal.say("g.V().has('name',\r'ada').values('age')", "36")
    terminal.say("g.V().has('name', 'ada')", "│  1 ┆ person ┆ ada  ┆  36 │")
    terminal.say("g.inject(7).count()", "1 result in ")
    terminal.say(UP + ERASE * len("count()") + "sum()", "7 │")
    terminal.say("g.V().oot()", "unknown step `oot`")
    terminal.say(":format json", "format: json")
    terminal.say("g.inject(1, 2).fold()", "[1,2]")
    terminal.say("a = g.V(1).next()", "1 result in ")
    terminal.say("g.V(a).out().count()", "2")
    terminal.expect("> ")
    terminal.press("g.nonsense" + CTRL_C)
    terminal.leave()


def keeps_history(program, state):
    """History survives to the next session, except for lines that must not be kept."""
    terminal = Terminal(program, state)
    terminal.say("g.inject('first')", "1 result in ")
    terminal.say(":format csv", "format: csv")
    terminal.expect("> ")
    terminal.press("g.given.up" + CTRL_C)
    terminal.leave()
    terminal = Terminal(program, state)
    terminal.say(UP + UP, "│ first")
    terminal.leave()
    terminal = Terminal(program, state, "--no-history")
    terminal.say("g.inject('unkept')", "1 result in ")
    terminal.leave()
    path = os.path.join(state, "mangrove", "history")
    with open(path, encoding="utf-8") as file:
        history = file.read()
    expect("'first'" in history and "given" not in history and "unkept" not in history, history)
    expect(os.stat(os.path.dirname(path)).st_mode & 0o077 == 0, "others may look into the folder")


def warns_of_an_open_transaction(program, state):
    """The prompt shows an open transaction, and the console asks before it ends with one."""
    terminal = Terminal(program, state)
    terminal.say(":begin", "(transaction)")
    terminal.expect("> ")
    terminal.press(CTRL_D)
    terminal.expect("a transaction is open")
    terminal.leave()


def stops_queries(program, state):
    """Ctrl-C cancels the query, in a directory or on a server; console and transaction go on."""
    server = Server(program)
    for args, words in [((), "cancelled"), (("--url", server.url), "was killed")]:
        terminal = Terminal(program, state, *args)
        terminal.say(":begin", "is open")
        terminal.say("g.addV('kept').iterate()", "0 results in")
        terminal.say(ENDLESS, "until")
        time.sleep(1)
        terminal.press(CTRL_C)
        terminal.expect(words)
        terminal.say("g.V().hasLabel('kept').count()", "1 │")
        terminal.say(":commit", "committed")
        terminal.leave()
    server.end()


def finds_a_lost_server_again(program, state):
    """If the server is gone, the console says so, and what happened to the transaction. It then goes on."""
    server = Server(program)
    terminal = Terminal(program, state, "--url", server.url)
    terminal.say(":begin", "is open")
    terminal.expect("> ")
    server.end(signal.SIGKILL)
    terminal.press("g.V().count()\r")
    terminal.expect("the transaction that was open is gone")
    server = Server(program, server.address)
    terminal.say("g.V().count()", "0 │")
    terminal.leave()
    server.end()


CHECKS = [edits_and_completes, keeps_history, warns_of_an_open_transaction, stops_queries, finds_a_lost_server_again]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program, failed = os.path.abspath(sys.argv[1]), 0
    for check in CHECKS:
        name = check.__name__.replace("_", " ")
        with tempfile.TemporaryDirectory(prefix="mangrove-console-") as state:
            try:
                check(program, state)
                print(f"ok      console  {name}")
            except Exception:  # a failed check does not stop the others
                failed += 1
                print(f"FAILED  console  {name}")
                traceback.print_exc()
    print(f"{len(CHECKS) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
