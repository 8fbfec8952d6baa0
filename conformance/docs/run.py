#!/usr/bin/env python3
"""Runs the code blocks of *.md and docs/**/*.md, as a reader would, and follows the links.

Usage: run.py MANGROVE [PAGE…]   (the program, and paths of pages; without them, all pages)

Each page has a scratch directory, in which its blocks run from top to bottom, and a port in place of 8182. A server that
a block starts runs until the page starts the next one. By its language, a block is

  sh                 run by bash; the tools in TOOLS replace those that would change the machine
  python, javascript, java, go
                     run as a part of one program: the blocks of one language on a page run together, at the last of
                     them, against the page's server; `print(x)   # TEXT` promises that TEXT is printed
  rust               run by rustdoc (crates/db/src/lib.rs includes the page)
  gremlin, groovy    run by `mangrove query`, on the page's graph in graph/ if there is one, else in memory
  toml               checked by `mangrove serve --print-config`
  yaml               parsed; programs, ports, probes and variables of Kubernetes objects are compared with the program
  json               parsed, as a whole or one value a line
  sh with docker     compared with the image; run only by `make test-full`, if Docker runs
  pycon              run by the tests of the Python package (bindings/python/tests/test_documentation.py)
  others             an illustration, not run

Comments before a block, invisible on the page, change that:

  <!-- not run: REASON -->   the block is skipped, and counted with its reason
  <!-- setup: COMMANDS -->   run first
  <!-- each line -->         the block's commands are alternatives: each has a scratch directory of its own, with the setup,
                             which finds the command in $DOCS_COMMAND
  <!-- check: COMMAND -->    run in place of the block, which is in the file $FILE
  <!-- file: NAME -->        the block is only written to the file NAME of the scratch directory

A block fails if its command fails, or if it can neither be run nor has a reason for that. The last line is `N passed, N failed`.
"""

import collections
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = ROOT / "target"
SECONDS_MAX = 60
ILLUSTRATIONS = {"", "text", "sql", "promql", "xml", "pycon"}
COMMENT = re.compile(r"<!--\s*(not run|setup|each line|check|file)\s*(?::\s*(.*?))?\s*-->", re.DOTALL)
# A comment, a code fence, or the text between; other text ends the reach of comments.
TOKEN = re.compile(r"<!--.*?-->|^( *)```([\w+-]*)[^\n]*\n(.*?)^ *```[^\S\n]*$", re.DOTALL | re.MULTILINE)

# Replacements for programs that would change the machine, or take minutes. They check their calls as far as possible.
TOOLS = {
    # Starts a server beside the block. With `exec`, the process that is ended is the server.
    "mangrove": r"""
for word in "$@"; do
    case $word in --print-config | --help | --check) exec "$MANGROVE_PROGRAM" "$@" ;; esac
done
if [ "${1:-}" != serve ]; then exec "$MANGROVE_PROGRAM" "$@"; fi
stop-server
export MANGROVE_LISTEN=${MANGROVE_LISTEN:-127.0.0.1:$DOCS_PORT}
: >"$DOCS_STATE/server.out"   # Before the loop below looks: the server before this one has written there.
"$MANGROVE_PROGRAM" "$@" >"$DOCS_STATE/server.out" 2>"$DOCS_STATE/server.log" </dev/null &
echo $! >"$DOCS_STATE/server.pid"
for _ in $(seq 200); do
    grep -q 'listens on' "$DOCS_STATE/server.out" && exit 0
    kill -0 "$(cat "$DOCS_STATE/server.pid")" 2>/dev/null || break
    sleep 0.05
done
cat "$DOCS_STATE/server.log" >&2
exit 1
""",
    "stop-server": r"""
[ -s "$DOCS_STATE/server.pid" ] || exit 0
pid=$(cat "$DOCS_STATE/server.pid")
kill "$pid" 2>/dev/null
for _ in $(seq 300); do kill -0 "$pid" 2>/dev/null || break; sleep 0.05; done
rm -f "$DOCS_STATE/server.pid"
""",
    # The target is installed.
    "make": r'exec /usr/bin/env -i PATH="$DOCS_PATH" make --dry-run --directory "$DOCS_ROOT" "$@" >/dev/null',
    # The packages and features exist.
    "cargo": r"""
while [ $# -gt 0 ]; do
    case $1 in
    -p | --package)
        name=$2 ; shift
        grep -lqx "name = \"$name\"" "$DOCS_ROOT"/crates/*/Cargo.toml "$DOCS_ROOT"/conformance/*/Cargo.toml \
            "$DOCS_ROOT"/bench/Cargo.toml "$DOCS_ROOT"/demo/Cargo.toml "$DOCS_ROOT"/fuzz/Cargo.toml 2>/dev/null ||
            { echo "cargo: there is no package $name" >&2; exit 1; } ;;
    --features)
        grep -hq "^${2##*/} = " "$DOCS_ROOT"/*/Cargo.toml "$DOCS_ROOT"/crates/*/Cargo.toml ||
            { echo "cargo: there is no feature $2" >&2; exit 1; }
        shift ;;
    esac
    shift
done
""",
}


class Failure(Exception):
    """A block that does not do what the page says. The message has its output."""


class Skip(Exception):
    """A block that cannot run here, with the reason."""


Block = collections.namedtuple("Block", "page line language code comments")


def blocks_of(page):
    text = page.read_text(encoding="utf-8")
    found, comments, end = [], [], 0
    for token in TOKEN.finditer(text):
        if text[end:token.start()].strip():
            comments = []
        end = token.end()
        comment = COMMENT.fullmatch(token[0])
        if comment:
            comments.append((comment[1], comment[2] or ""))
        elif not token[0].startswith("<!--"):
            code = re.sub(rf"^{token[1]}", "", token[3], flags=re.MULTILINE)
            line = text.count("\n", 0, token.start()) + 1
            found.append(Block(page, line, token[2], code, comments))
            comments = []
    return found


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def commands_of(code):
    """The commands of a shell block. A line that ends with a backslash continues on the next."""
    return [line for line in re.sub(r"\\\n\s*", "", code).splitlines() if line.strip() and not line.startswith("#")]


class Scratch:
    """A directory with the files that a checkout has beside the program, and with a server if a block starts one."""

    def __init__(self, program):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="mangrove-docs-"))
        self.port = free_port()
        self.seconds_max = SECONDS_MAX
        self.work, self.state, tools = self.folder / "work", self.folder / "state", self.folder / "tools"
        for folder in (self.work, self.state, tools):
            folder.mkdir()
        for name, script in TOOLS.items():
            (tools / name).write_text("#!/usr/bin/env bash\n" + script, encoding="utf-8")
            (tools / name).chmod(0o755)
        (self.work / "mappings").symlink_to(ROOT / "mappings")
        (self.work / "packaging").symlink_to(ROOT / "packaging")
        if (TARGET / "demo/states.csv").exists():
            (self.work / "target").mkdir()
            (self.work / "target/demo").symlink_to(TARGET / "demo")
        keep = {name: value for name, value in os.environ.items() if not name.startswith("MANGROVE_")}
        self.environment = {**keep, "PATH": f"{tools}:{os.environ['PATH']}", "DOCS_PATH": os.environ["PATH"], "DOCS_STATE": str(self.state),
                            "DOCS_PORT": str(self.port), "DOCS_ROOT": str(ROOT), "MANGROVE_PROGRAM": str(program),
                            "XDG_STATE_HOME": str(self.state), "HOME": str(self.state), "TMPDIR": str(self.state)}

    def here(self, code):
        """The code with this page's port, and with this machine in place of example hosts."""
        code = re.sub(r"\b(wss?|https?)://([\w.-]*@)?graph\.example(:8182)?", rf"\1://\2localhost:{self.port}", code)
        code = re.sub(r"(\W)graph\.example(:8182)\b", rf"\1localhost:{self.port}", code)
        return re.sub(r"\b8182\b", str(self.port), code)

    def shell(self, code, **variables):
        """Runs a bash script and returns its output."""
        script = "set -euo pipefail\n" + self.here(code)
        return self.run(["bash", "-c", script], **variables)

    def run(self, command, **variables):
        output = self.folder / "output"
        with output.open("wb") as printed:
            done = subprocess.Popen(command, cwd=self.work, env={**self.environment, **variables}, stdin=subprocess.DEVNULL,
                                    stdout=printed, stderr=subprocess.STDOUT, start_new_session=True)
            try:
                code = done.wait(self.seconds_max)
            except subprocess.TimeoutExpired:
                os.killpg(done.pid, signal.SIGKILL)
                raise Failure(f"it did not end within {self.seconds_max} s") from None
        text = output.read_text(encoding="utf-8", errors="replace")
        if code != 0:
            raise Failure(f"exit code {code}\n{text}")
        return text

    def serve(self):
        """Starts an empty server, unless the page has started one."""
        if not (self.state / "server.pid").exists():
            self.shell("mangrove serve")

    def close(self):
        subprocess.run(["bash", str(self.folder / "tools/stop-server")], env=self.environment, check=False)
        shutil.rmtree(self.folder, ignore_errors=True)


def promised(code, marker):
    """The texts that comments after print statements promise."""
    return [found.strip() for found in re.findall(rf"^.*(?:print|Println|println|console\.log)\(.*\)[;]?\s+{marker} (.*)$", code, re.MULTILINE)]


def expect_printed(printed, code, marker):
    lines, wanted = printed.splitlines(), promised(code, marker)
    for text in wanted:
        if text not in lines:
            raise Failure(f"the page promises {text!r}; the output is\n{printed}")


def python_program(scratch, code):
    python = TARGET / "venv-gremlinpython/bin/python"
    if not python.exists():
        raise Skip("gremlinpython is not installed (conformance/drivers/run.sh installs it)")
    file = scratch.work / "program.py"
    file.write_text(scratch.here(code), encoding="utf-8")
    expect_printed(scratch.run([str(python), str(file)]), code, "#")


def javascript_program(scratch, code):
    modules = TARGET / "driver-javascript/node_modules"
    if not modules.exists() or not shutil.which("node"):
        raise Skip("the JavaScript client is not installed (conformance/drivers/run.sh installs it)")
    file = scratch.work / "program.js"
    file.write_text(scratch.here(code), encoding="utf-8")
    expect_printed(scratch.run(["node", str(file)], NODE_PATH=str(modules)), code, "//")


def java_program(scratch, code):
    classpath = TARGET / "driver-java-3.8.1/classpath"
    if not classpath.exists() or not shutil.which("javac"):
        raise Skip("the Java client is not installed (conformance/drivers/run.sh installs it)")
    name = re.search(r"^(?:public )?(?:final )?class (\w+)", code, re.MULTILINE)[1]
    (scratch.work / f"{name}.java").write_text(scratch.here(code), encoding="utf-8")
    path = f".:{classpath.read_text(encoding='utf-8').strip()}"
    scratch.run(["javac", "-nowarn", "-Xlint:none", "-cp", path, f"{name}.java"])
    expect_printed(scratch.run(["java", "-cp", path, name]), code, "//")


def go_program(scratch, code):
    if not shutil.which("go"):
        raise Skip("go is missing")
    # Below the module that names the client, so that its go.sum applies.
    folder = pathlib.Path(tempfile.mkdtemp(prefix="page", dir=ROOT / "conformance/drivers/go"))
    try:
        (folder / "main.go").write_text(scratch.here(code), encoding="utf-8")
        keep = {name: os.environ[name] for name in ("GOPATH", "GOMODCACHE", "GOCACHE") if name in os.environ}
        home = os.environ.get("HOME", "/")
        program = scratch.state / "go-program"
        built = subprocess.run(["go", "build", "-o", str(program), "./" + folder.name], cwd=folder.parent, capture_output=True, text=True,
                               env={**scratch.environment, "HOME": home, **keep}, check=False)
        if built.returncode != 0 and "dial tcp" in built.stderr:
            raise Skip("the Go client cannot be fetched")
        if built.returncode != 0:
            raise Failure(built.stderr)
        expect_printed(scratch.run([str(program)]), code, "//")
    finally:
        shutil.rmtree(folder)


PROGRAMS = {"python": python_program, "javascript": javascript_program, "java": java_program, "go": go_program}


def rust_page(page):
    """Succeeds if a crate includes the page, so that rustdoc runs it."""
    path = page.relative_to(ROOT).as_posix()
    for source in ROOT.glob("crates/*/src/lib.rs"):
        if re.search(rf'include_str!\("(\.\./)+{re.escape(path)}"\)', source.read_text(encoding="utf-8")):
            return
    raise Failure(f"no crate includes {path}, so rustdoc does not run it")


def settings(program):
    """Names of the settings, from the program's output."""
    printed = subprocess.run([program, "serve", "--help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"MANGROVE_[A-Z_]+", printed))


def commands(program):
    printed = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"^  ([a-z-]+)  ", printed, re.MULTILINE))


def parser_of_yaml():
    """PyYAML of this Python, or of a virtual environment below target/."""
    try:
        import yaml
        return yaml
    except ImportError:
        here = pathlib.Path(__file__).resolve().parent
        made = subprocess.run([str(ROOT / "conformance/drivers/python/setup.sh"), str(TARGET / "venv-docs"), str(here / "requirements.txt")],
                              capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise Skip("PyYAML is not installed and cannot be fetched") from None
        sys.path.extend(str(path) for path in (TARGET / "venv-docs/lib").glob("python3.*/site-packages"))
        import yaml
        return yaml


def check_yaml(scratch, block, program):
    yaml = parser_of_yaml()
    known, subcommands = settings(program), commands(program)
    image = (ROOT / "packaging/Containerfile").read_text(encoding="utf-8")

    def container(one):
        ports = {port.get("name"): port["containerPort"] for port in one.get("ports", [])}
        for port in ports.values():
            expect(f"EXPOSE {port}" in image, f"the image does not expose {port}")
        for variable in one.get("env", []):
            name = variable["name"]
            expect(name in known or name in ("MANGROVE_USERS",) or not name.startswith("MANGROVE_"), f"there is no setting {name}")
        values = {variable["name"]: variable["value"] for variable in one.get("env", []) if "value" in variable}
        scratch.shell("mangrove serve --print-config", **values)
        words = one.get("args", []) + one.get("command", [])
        if words:
            expect(words[0] in subcommands, f"the program has no command {words[0]}")
        for word in words:
            if word.startswith("--"):
                expect("MANGROVE_" + word[2:].split("=")[0].replace("-", "_").upper() in known, f"serve has no flag {word}")
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            if probe in one:
                way = one[probe].get("httpGet")
                if way:
                    expect(way["path"] in ("/health", "/metrics"), f"{probe} asks {way['path']}")
                    expect(way["port"] in ports or way["port"] in ports.values(), f"{probe} asks the port {way['port']}")
                else:
                    expect(one[probe]["exec"]["command"][:2] == ["mangrove", "health"], f"{probe} runs another program")
        user = re.search(r"^USER (\d+):", image, re.MULTILINE)[1]
        run_as = one.get("securityContext", {}).get("runAsUser")
        expect(run_as is None or str(run_as) == user, f"the image runs as {user}, not {run_as}")

    def expect(holds, text):
        if not holds:
            raise Failure(text)

    for document in yaml.safe_load_all(scratch.here(block.code).replace(str(scratch.port), "8182")):
        if not isinstance(document, dict):
            raise Failure("a document is no mapping")
        for one in document.get("spec", {}).get("template", {}).get("spec", {}).get("containers", []):
            container(one)
        for service in (document.get("services") or {}).values():
            environment = service.get("environment") or {}
            scratch.shell("mangrove serve --print-config", **environment)
            for name in environment:
                expect(name in known or not name.startswith("MANGROVE_"), f"there is no setting {name}")


def check_docker(code):
    """Files of the commands must exist, and their ports and volumes must be those of the image."""
    for file in re.findall(r" -f (\S+)", code):
        if not (ROOT / file).exists():
            raise Failure(f"there is no {file}")
    image = (ROOT / "packaging/Containerfile").read_text(encoding="utf-8")
    for port in re.findall(r" -p (?:[\d.]+:)?\d+:(\d+)", code):
        if f"EXPOSE {port}" not in image:
            raise Failure(f"the image does not expose {port}")
    for folder in re.findall(r" -v \w+:(\S+)", code):
        if f"VOLUME {folder}" not in image:
            raise Failure(f"the image has no volume {folder}")


def check_json(block):
    try:
        json.loads(block.code)
    except ValueError:
        for line in block.code.splitlines():
            try:
                json.loads(line)
            except ValueError as error:
                raise Failure(f"{line}: {error}") from None


def anchors(page):
    """The anchors of a page's headings, by the rules of GitHub and the like."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", re.sub(r"\[(.*?)\]\(.*?\)", r"\1", title).lower()).replace(" ", "-") for title in titles}


def dead_links(page):
    """Links to files and headings that do not exist."""
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, heading = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or heading and target.suffix == ".md" and heading not in anchors(target):
            yield link


class Runner:
    """Runs pages and counts the results."""

    def __init__(self, program):
        self.program = program
        self.counts = collections.Counter()
        self.skipped = []
        self.failed = 0

    def one(self, scratch, block, programs):
        comments = dict(block.comments)
        if "not run" in comments:
            if not comments["not run"]:
                raise Failure("`not run` needs a reason")
            raise Skip(comments["not run"])
        if re.search(r"target/demo|\bflights/", str(block.comments) + block.code) and not (TARGET / "demo/states.csv").exists():
            raise Skip("the sample graph of `make demo` cannot be fetched")
        setup = "\n".join(text for kind, text in block.comments if kind == "setup")
        if "each line" in comments:
            for command in commands_of(block.code):
                alone = Scratch(self.program)
                try:
                    alone.shell(setup + "\n" + command, DOCS_COMMAND=command)
                except Failure as failure:
                    raise Failure(f"{command}: {failure}") from None
                finally:
                    alone.close()
            return
        if setup:
            scratch.shell(setup)
        if "file" in comments:
            (scratch.work / comments["file"]).write_text(scratch.here(block.code), encoding="utf-8")
            if block.language != "toml" and block.language != "yaml":
                return
        if "check" in comments:
            file = scratch.work / "block"
            file.write_text(scratch.here(block.code), encoding="utf-8")
            scratch.shell(comments["check"], FILE=str(file))
        elif block.language == "sh":
            if re.search(r"^docker ", block.code, re.MULTILINE):
                check_docker(block.code)
                if not os.environ.get("MANGROVE_TEST_FULL") or subprocess.run(["docker", "info"], capture_output=True, check=False).returncode:
                    raise Skip("its options are those of packaging/Containerfile; `make test-full` builds the image if Docker runs")
                scratch.seconds_max = 3600
            scratch.shell(block.code)
        elif block.language in PROGRAMS:
            if "file" in comments:
                return
            programs[block.language] += block.code
            if block.line == max(line for line, language in programs["blocks"] if language == block.language):
                scratch.serve()
                PROGRAMS[block.language](scratch, programs[block.language])
        elif block.language == "rust":
            rust_page(block.page)
        elif block.language in ("gremlin", "groovy"):
            file = scratch.work / "script.gremlin"
            file.write_text(block.code, encoding="utf-8")
            graph = ["--data", "graph"] if (scratch.work / "graph").exists() else []
            scratch.run([str(self.program), "query", *graph, "-f", str(file)])
        elif block.language == "toml":
            file = scratch.work / comments.get("file", "block.toml")
            file.write_text(scratch.here(block.code), encoding="utf-8")
            scratch.shell(f"mangrove serve --config {file.name} --print-config")
        elif block.language in ("yaml", "yml"):
            check_yaml(scratch, block, self.program)
        elif block.language == "json":
            check_json(block)
        else:
            raise Failure(f"no way to run a block of {block.language} is known, and `not run` with a reason is missing")

    def links(self, page):
        dead = list(dead_links(page))
        if not dead:
            self.counts["page's links"] += 1
        else:
            self.failed += 1
            print(f"{page.relative_to(ROOT)} (links) FAILED: {', '.join(dead)}", flush=True)

    def drawings(self):
        """Plots and tables that are made from data must be up to date."""
        done = subprocess.run([sys.executable, str(ROOT / "docs/img/performance.py"), "--check"], capture_output=True, text=True, check=False)
        if done.returncode == 0:
            self.counts["plot"] += 1
        else:
            self.failed += 1
            print(f"docs/performance.md FAILED: {done.stderr}", flush=True)

    def page(self, page):
        blocks = [block for block in blocks_of(page) if block.language not in ILLUSTRATIONS]
        if not blocks:
            return
        began, scratch = time.monotonic(), Scratch(self.program)
        programs = collections.defaultdict(str, blocks=[(block.line, block.language) for block in blocks])
        try:
            for block in blocks:
                where = f"{page.relative_to(ROOT)}:{block.line}"
                try:
                    self.one(scratch, block, programs)
                    self.counts[block.language] += 1
                except Skip as reason:
                    self.skipped.append(f"{where} ({block.language}): {reason}")
                except Failure as failure:
                    self.failed += 1
                    print(f"{where} ({block.language}) FAILED: {failure}", flush=True)
        finally:
            scratch.close()
        print(f"{page.relative_to(ROOT)}: {len(blocks)} blocks, {time.monotonic() - began:.1f} s", flush=True)


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    subprocess.run([sys.executable, str(ROOT / "demo/fetch.py"), str(TARGET / "demo")], check=False)
    runner = Runner(pathlib.Path(sys.argv[1]).resolve())
    named = [pathlib.Path(name).resolve() for name in sys.argv[2:]]
    for page in named or [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]:
        runner.links(page)
        runner.page(page)
    if not named:
        runner.drawings()
    for text in runner.skipped:
        print(f"not run: {text}")
    ran = sum(runner.counts.values())
    print("run: " + ", ".join(f"{count} {language}" for language, count in sorted(runner.counts.items())) +
          f"; not run: {len(runner.skipped)}")
    print(f"code of the documentation: {ran} passed, {runner.failed} failed")
    sys.exit(1 if runner.failed else 0)


if __name__ == "__main__":
    main()
