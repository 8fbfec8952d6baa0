"""Results of a Gremlin client as plain JSON, in one canonical form.

A result becomes:

    null, boolean, integer, string      themselves
    floating point                      a JSON number with a fraction, rounded to 12 significant digits
    list                                [...]
    set                                 {"set": [...]}, sorted
    map                                 {"map": [[key, value], ...]}, sorted by key
    vertex                              {"vertex": id, "label": ..., "properties": {"map": ...}}
    edge                                {"edge": id, "label": ..., "out": id, "in": id, "properties": {"map": ...}}
    vertex property                     {"vertexProperty": key, "value": ..., "properties": {"map": ...}}
    property                            {"property": key, "value": ...}
    path                                {"path": [...], "labels": [[...], ...]}
    T and Direction tokens              {"T": "id"}, {"Direction": "IN"}

Python has one integer type, so 32 and 64 bits look alike here. Ids of vertex properties are left out:
every provider makes its own.
"""

import json

from gremlin_python.process.traversal import Direction, T
from gremlin_python.structure.graph import Edge, Path, Property, Vertex, VertexProperty


def sort_key(item):
    """A total order of canonical forms, for sorting only."""
    return json.dumps(item, sort_keys=True)


def properties(element):
    """The properties of an element; those of one key become a list."""
    by_key = {}
    for p in element.properties or []:
        by_key.setdefault(p.key, []).append(canonical(p.value))
    return {"map": [[key, sorted(values, key=sort_key)] for key, values in sorted(by_key.items())]}


def canonical(result):
    """The canonical form of one result."""
    match result:
        case None | bool() | str():
            return result
        case int():
            return int(result)
        case float():
            return float(f"{result:.12g}")
        case T():
            return {"T": result.name.rstrip("_")}
        case Direction():
            return {"Direction": result.name}
        case Vertex():
            return {"vertex": result.id, "label": result.label, "properties": properties(result)}
        case Edge():
            return {"edge": result.id, "label": result.label, "out": result.outV.id, "in": result.inV.id,
                    "properties": properties(result)}
        case VertexProperty():
            return {"vertexProperty": result.key, "value": canonical(result.value), "properties": properties(result)}
        case Property():
            return {"property": result.key, "value": canonical(result.value)}
        case Path():
            return {"path": [canonical(o) for o in result.objects], "labels": [sorted(l) for l in result.labels]}
        case set() | frozenset():
            return {"set": sorted((canonical(v) for v in result), key=sort_key)}
        case list() | tuple():
            return [canonical(v) for v in result]
        case dict():
            entries = [[canonical(k), canonical(v)] for k, v in result.items()]
            return {"map": sorted(entries, key=lambda e: sort_key(e[0]))}
        case _:
            raise TypeError(f"no canonical form for {type(result).__name__}: {result!r}")


def answer(results, ordered):
    """The canonical form of all results of a traversal."""
    forms = [canonical(r) for r in results]
    return forms if ordered else sorted(forms, key=sort_key)


def in_graphson2(form):
    """A canonical form without what GraphSON 2 cannot express: sets become lists, and the keys of maps become text."""
    match form:
        case {"set": items}:
            return sorted((in_graphson2(i) for i in items), key=sort_key)
        case {"map": entries}:
            entries = [[key_text(key), in_graphson2(value)] for key, value in entries]
            return {"map": sorted(entries, key=lambda e: sort_key(e[0]))}
        case {"path": objects, **rest}:
            return {"path": [in_graphson2(o) for o in objects], **rest}
        case list():
            return [in_graphson2(item) for item in form]
        case _:
            return form


def key_text(key):
    """A key of a map as text."""
    match key:
        case {"T": name} | {"Direction": name}:
            return name
        case str():
            return key
        case _:
            return json.dumps(key)
