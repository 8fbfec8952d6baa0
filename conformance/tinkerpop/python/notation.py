"""TinkerPop's notation for values in feature files, as canonical values and as Gremlin.

`d[29].i` is an int, `v[marko]` the vertex with this name, `v[marko].id` its id, `e[marko-knows->josh]` an edge. `l[…]`,
`s[…]`, `m[{…}]`, `p[…]` are lists, sets, maps and paths; `t[…]`, `D[…]`, `M[…]` are tokens. A canonical value is a pair
of a word for the type and a value that can be compared and sorted. Two values are equal to a scenario if their
canonical forms are equal.
"""

import dataclasses
import datetime
import decimal
import json
import re
import struct
import uuid

from gremlin_python.process.traversal import Direction, T
from gremlin_python.structure import graph


class Elements:
    """The ids of a graph's vertices and edges as canonical values, by their names in scenarios."""

    def __init__(self, vertices, edges):
        self.vertices = vertices
        self.edges = edges


def canonical(value):
    """The canonical form of a value from the wire."""
    match value:
        case None:
            return ("null", 0)
        case bool():
            return ("boolean", value)
        case str():
            return ("string", str(value))
        case uuid.UUID():
            return ("uuid", str(value))
        case datetime.datetime():
            return ("datetime", value.astimezone(datetime.timezone.utc).isoformat())
        case datetime.timedelta():
            return ("duration", value.total_seconds())
        case (str() as word, inner):
            return container(word, inner)
        case graph.Vertex():
            return ("vertex", canonical(value.id))
        case graph.Edge():
            return ("edge", canonical(value.id))
        case graph.VertexProperty() | graph.Property():
            return ("property", (value.key, canonical(value.value)))
        case graph.Path():
            return ("path", tuple(canonical(each) for each in value.objects[1]))
        case T():
            return ("T", value.name.rstrip("_"))
        case Direction():
            return ("Direction", value.name)
        case _:
            return (type(value).__name__, repr(value))


def container(word, inner):
    """The canonical form of a value with its type."""
    match word:
        case "list":
            return ("list", tuple(canonical(each) for each in inner))
        case "set":
            return ("set", tuple(sorted((canonical(each) for each in inner), key=repr)))
        case "map":
            return ("map", pairs((canonical(key), canonical(each)) for key, each in inner))
        case "tree":
            return ("tree", branches(inner))
        case "graph":
            vertices, edges = inner
            return ("graph", (multiset(vertices), multiset(edges)))
        case _:
            return number(word, inner)


def multiset(values):
    """The canonical forms of values, sorted, so that their order does not count."""
    return tuple(sorted((canonical(each) for each in values), key=repr))


def pairs(entries):
    """Canonical entries of a map, sorted, so that their order does not count."""
    return tuple(sorted(entries, key=repr))


def branches(inner):
    """A tree: its branches without an order."""
    return pairs((canonical(key), branches(below)) for key, below in inner)


def number(letter, value):
    """A number of the type with this letter. Floating-point numbers are compared to 12 digits (6 for 32 bits),
    because the order of a sum over an unordered stream is unspecified."""
    if letter in ("f", "d"):
        single = letter == "f"
        value = struct.unpack("f", struct.pack("f", float(value)))[0] if single else float(value)
        return (letter, f"{value:.6g}" if single else f"{value:.12g}")
    if letter == "m":
        return (letter, str(decimal.Decimal(value).normalize()))
    return (letter, int(value))


def split(text):
    """The parts between commas outside brackets."""
    if not text:
        return []
    parts, depth = [""], 0
    for character in text:
        depth += (character in "[{") - (character in "]}")
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    return parts


@dataclasses.dataclass
class Predicate:
    """A predicate with a value in notation."""
    name: str
    value: str


class Notation:
    """Reads the notation of the scenarios of one graph."""

    def __init__(self, elements):
        self.elements = elements

    def id_of(self, text):
        """The id of the element that `v[…]` or `e[…]` names. If there is no such element, a text that says so."""
        kind, name = text[0], text[2:text.rindex("]")]
        known = self.elements.vertices if kind == "v" else self.elements.edges
        return known.get(name, ("string", f"there is no {text}"))

    def expected(self, text):
        """The canonical form of a value."""
        if not isinstance(text, str):
            return self.json_value(text, self.expected)
        inner = text[text.find("[") + 1:-1]
        match text:
            case "null":
                return ("null", 0)
            case "true" | "false":
                return ("boolean", text == "true")
            case _ if re.fullmatch(r"str\[.*\]", text, re.DOTALL):
                return ("string", inner)
            case _ if re.fullmatch(r"d\[.*\]\.[bsilfdmn]", text):
                return number(text[-1], text[2:-3])
            case _ if re.fullmatch(r"d\[(NaN|-?Infinity)\]", text):
                return number("d", float(inner.replace("Infinity", "inf")))
            case _ if re.fullmatch(r"vp\[.*->.*\]", text):
                owner, value = inner.split("->", 1)
                return ("property", (owner.rsplit("-", 1)[1], self.expected(value)))
            case _ if re.fullmatch(r"[ve]\[.*\]\.id", text):
                return self.id_of(text)
            case _ if re.fullmatch(r"[ve]\[.*\]\.sid", text):
                return ("string", str(self.id_of(text)[1]))
            case _ if re.fullmatch(r"v\[.*\]", text):
                return ("vertex", self.id_of(text))
            case _ if re.fullmatch(r"e\[.*\]", text):
                return ("edge", self.id_of(text))
            case _ if re.fullmatch(r"dt\[.*\]", text):
                instant = datetime.datetime.fromisoformat(inner.replace("Z", "+00:00"))
                return ("datetime", instant.astimezone(datetime.timezone.utc).isoformat())
            case _ if re.fullmatch(r"uuid\[.*\]", text):
                return ("uuid", inner)
            case _ if re.fullmatch(r"m\[.*\]", text, re.DOTALL):
                return self.json_value(json.loads(inner), self.expected)
            case _ if re.fullmatch(r"l\[.*\]", text):
                return ("list", tuple(self.expected(each) for each in split(inner)))
            case _ if re.fullmatch(r"s\[.*\]", text):
                return ("set", tuple(sorted((self.expected(each) for each in split(inner)), key=repr)))
            case _ if re.fullmatch(r"p\[.*\]", text):
                return ("path", tuple(self.expected(each) for each in split(inner)))
            case _ if re.fullmatch(r"t\[.*\]", text):
                return ("T", inner)
            case _ if re.fullmatch(r"D\[.*\]", text):
                return ("Direction", {"from": "OUT", "to": "IN"}.get(inner, inner))
            case _:
                return ("string", text)

    def json_value(self, value, read):
        """The value of JSON; its strings are in notation again."""
        match value:
            case dict():
                return ("map", pairs((read(key), read(each)) for key, each in value.items()))
            case list():
                return ("list", tuple(read(each) for each in value))
            case None:
                return ("null", 0)
            case bool():
                return ("boolean", value)
            case int():
                return number("i" if abs(value) < 1 << 31 else "l", value)
            case _:
                return number("d", value)

    def gremlin(self, text):
        """The value as a literal of Gremlin."""
        if isinstance(text, Predicate):
            return f"P.{text.name}({self.gremlin(text.value)})"
        if not isinstance(text, str):
            return self.json_gremlin(text)
        inner = text[text.find("[") + 1:-1]
        if re.fullmatch(r"m\[.*\]", text, re.DOTALL):
            return self.json_gremlin(json.loads(inner))
        if re.fullmatch(r"l\[.*\]", text):
            return "[" + ", ".join(self.gremlin(each) for each in split(inner)) + "]"
        if re.fullmatch(r"s\[.*\]", text):
            return "{" + ", ".join(self.gremlin(each) for each in split(inner)) + "}"
        if re.fullmatch(r"M\[.*\]", text):
            return f"Merge.{inner}"
        return literal(self.expected(text))

    def json_gremlin(self, value):
        """JSON as Gremlin; keys that are tokens are in parentheses."""
        match value:
            case dict() if not value:
                return "[:]"
            case dict():
                def key(text):
                    said = self.gremlin(text)
                    return f"({said})" if re.match(r"[tD]\[", text) else said
                return "[" + ", ".join(f"{key(k)}: {self.gremlin(v)}" for k, v in value.items()) + "]"
            case list():
                return "[" + ", ".join(self.gremlin(each) for each in value) + "]"
            case _:
                return literal(self.json_value(value, self.expected))


def literal(value):
    """A canonical scalar as a literal of Gremlin."""
    word, inner = value
    match word:
        case "null":
            return "null"
        case "boolean":
            return "true" if inner else "false"
        case "string":
            return json.dumps(inner, ensure_ascii=False)
        case "uuid":
            return f'UUID("{inner}")'
        case "datetime":
            return f'datetime("{inner}")'
        case "T" | "Direction":
            return f"{word}.{inner}"
        case "vertex":
            # The label of a reference is ignored.
            return f'Vertex({literal(inner)}, "vertex")'
        case "d" | "f" if inner in ("nan", "inf", "-inf"):
            return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[inner]
        case "b" | "s" | "i" | "l" | "n" | "f" | "d" | "m":
            return f"{inner}{word}"
        case _:
            raise Unsupported(f"the runner cannot write a {word} as Gremlin")


class Unsupported(Exception):
    """The scenario uses a feature that the runner does not support."""
