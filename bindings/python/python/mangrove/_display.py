"""How results are shown in notebooks: as a table, and as a drawing if they are parts of a graph.

Everything is made here, as HTML and SVG: a notebook that is opened elsewhere shows the same.
"""

from __future__ import annotations

import math
from html import escape
from typing import Any, Hashable, Iterable, Optional, Sequence

from ._mangrove import Edge, Path, Property, Subgraph, Vertex, VertexProperty

#: The most rows of a table.
ROWS_MAX = 20
#: The most vertices of a drawing; of larger graphs so many are drawn.
VERTICES_MAX = 60
#: The most edges of a drawing.
EDGES_MAX = 240
#: The most characters of a cell.
_CELL_MAX = 120
#: Colors of labels, in the order in which labels are met. They can be told apart with color blindness.
_COLORS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#999999")
#: Keys that name an element for people, best first.
_NAMES = ("name", "title", "code", "label", "text")


def results(found: Sequence[Any], has_more: bool) -> str:
    """The HTML of results: the first ones, and whether there are more."""
    shown = list(found[:ROWS_MAX])
    parts = [table(shown)]
    graph = _Graph.of(found)
    if graph is not None and graph.edges:
        parts.insert(0, graph.svg())
    if has_more or len(found) > len(shown):
        count = "more" if has_more else f"{len(found) - len(shown)} more"
        parts.append(f"<p><i>the first {len(shown)} results; there are {count}</i></p>")
    elif not shown:
        parts = ["<p><i>no results</i></p>"]
    return "".join(parts)


def graph(*elements: Any) -> str:
    """The HTML of a part of a graph: a drawing, and what was left out of it."""
    drawn = _Graph.of(elements)
    return drawn.svg() if drawn is not None else table(list(elements))


def table(rows: Sequence[Any]) -> str:
    """An HTML table: a column for each key of maps and for each property of elements, or one column."""
    columns: dict[str, None] = {}
    cells = [_cells(row) for row in rows]
    for row in cells:
        columns.update(dict.fromkeys(row))
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{_cell(row[name]) if name in row else ''}</td>" for name in columns) + "</tr>" for row in cells
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cells(row: Any) -> dict[str, Any]:
    if isinstance(row, Vertex):
        return {"id": row.id, "label": row.label, **{key: value for key, value in row.properties.items() if key not in ("id", "label")}}
    if isinstance(row, Edge):
        ends = {"id": row.id, "label": row.label, "source": _id_of(row.source), "target": _id_of(row.target)}
        return {**ends, **{key: value for key, value in row.properties.items() if key not in ends}}
    if isinstance(row, (VertexProperty, Property)):
        return {"key": row.key, "value": row.value}
    if isinstance(row, dict) and row and all(isinstance(key, str) for key in row):
        return row
    return {"result": row}


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return escape(text if len(text) <= _CELL_MAX else text[: _CELL_MAX - 1] + "…")


def _id_of(vertex: Any) -> Any:
    return vertex.id if isinstance(vertex, Vertex) else vertex


class _Graph:
    """Vertices and edges that are drawn."""

    def __init__(self) -> None:
        self.vertices: dict[Hashable, Vertex] = {}
        self.edges: dict[Hashable, tuple[Hashable, Hashable, str]] = {}

    @staticmethod
    def of(found: Iterable[Any]) -> Optional[_Graph]:
        """The graph that results are parts of; ``None`` if one of them is none."""
        drawn = _Graph()
        return drawn if all(drawn._add(one) for one in found) and drawn.vertices else None

    def _add(self, one: Any) -> bool:
        if isinstance(one, Vertex):
            known = self.vertices.get(one.id)
            # The end of an edge has no properties; the vertex itself may have been met with them.
            if known is None or not known.properties:
                self.vertices[one.id] = one
            return True
        if isinstance(one, Edge):
            if not (isinstance(one.source, Vertex) and isinstance(one.target, Vertex)):
                return False
            self._add(one.source)
            self._add(one.target)
            self.edges[one.id] = (one.source.id, one.target.id, one.label)
            return True
        if isinstance(one, Path):
            if not all(self._add(step) for step in one):
                return False
            for before, after in zip(one, one[1:]):
                # Two vertices in a row: the path names no edge between them.
                if isinstance(before, Vertex) and isinstance(after, Vertex):
                    self.edges.setdefault(("path", before.id, after.id), (before.id, after.id, ""))
            return True
        if isinstance(one, Subgraph):
            return all(self._add(part) for part in [*one.vertices, *one.edges])
        return False

    def svg(self) -> str:
        """The drawing."""
        sampled = dict(list(self.vertices.items())[:VERTICES_MAX])
        inner = [edge for edge in self.edges.values() if edge[0] in sampled and edge[1] in sampled]
        edges = inner[:EDGES_MAX]
        width, height = 720, 420
        places = _layout(list(sampled), edges, width, height)
        colors: dict[str, str] = {}
        for vertex in sampled.values():
            colors.setdefault(vertex.label, _COLORS[len(colors) % len(_COLORS)])
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'style="max-width:100%;font:11px sans-serif;background:#fff">'
            '<defs><marker id="mangrove-arrow" viewBox="0 0 8 8" refX="17" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            '<path d="M0,0 L8,4 L0,8 z" fill="#888"/></marker></defs>'
        ]
        for source, target, label in edges:
            (x1, y1), (x2, y2) = places[source], places[target]
            if source == target:
                parts.append(f'<circle cx="{x1:.1f}" cy="{y1 - 14:.1f}" r="9" fill="none" stroke="#bbb"/>')
                continue
            parts.append(
                f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#bbb" marker-end="url(#mangrove-arrow)">'
                f"<title>{escape(label)}</title></line>"
            )
            if len(edges) <= 30 and label:
                parts.append(f'<text x="{(x1 + x2) / 2:.1f}" y="{(y1 + y2) / 2 - 3:.1f}" text-anchor="middle" fill="#888">{escape(label)}</text>')
        for key, vertex in sampled.items():
            x, y = places[key]
            parts.append(
                f'<g><circle cx="{x:.1f}" cy="{y:.1f}" r="8" fill="{colors[vertex.label]}"/>'
                f'<text x="{x:.1f}" y="{y + 19:.1f}" text-anchor="middle" fill="#222">{escape(_name(vertex))}</text>'
                f"<title>{escape(repr(vertex))}</title></g>"
            )
        for at, (label, color) in enumerate(colors.items()):
            parts.append(f'<circle cx="12" cy="{14 + 16 * at}" r="5" fill="{color}"/><text x="22" y="{18 + 16 * at}" fill="#222">{escape(label)}</text>')
        parts.append("</svg>")
        if len(sampled) < len(self.vertices) or len(edges) < len(self.edges):
            parts.append(
                f"<p><i>a part of {len(self.vertices)} vertices and {len(self.edges)} edges: {len(sampled)} vertices and "
                f"{len(edges)} edges are drawn</i></p>"
            )
        return "".join(parts)


def _name(vertex: Vertex) -> str:
    for key in _NAMES:
        if isinstance(vertex.get(key), str):
            text = str(vertex[key])
            return text if len(text) <= 18 else text[:17] + "…"
    return str(vertex.id)


def _layout(
    keys: Sequence[Hashable], edges: Sequence[tuple[Hashable, Hashable, str]], width: float, height: float
) -> dict[Hashable, tuple[float, float]]:
    """Places by forces: vertices push each other away, edges pull their ends together (Fruchterman and Reingold, 1991).

    It begins on a circle, in the order of the vertices, so that the same graph is always drawn alike.
    """
    count = len(keys)
    places = {key: [math.cos(2 * math.pi * at / count), math.sin(2 * math.pi * at / count)] for at, key in enumerate(keys)}
    ideal = 2.0 / math.sqrt(count)
    for step in range(120):
        heat = 0.2 * (1 - step / 120)
        moves = {key: [0.0, 0.0] for key in keys}
        for at, one in enumerate(keys):
            for other in keys[at + 1 :]:
                dx, dy = places[one][0] - places[other][0], places[one][1] - places[other][1]
                distance = max(math.hypot(dx, dy), 1e-3)
                force = ideal * ideal / (distance * distance)
                for key, sign in ((one, 1), (other, -1)):
                    moves[key][0] += sign * dx * force
                    moves[key][1] += sign * dy * force
        for source, target, _ in edges:
            dx, dy = places[source][0] - places[target][0], places[source][1] - places[target][1]
            force = math.hypot(dx, dy) / ideal
            for key, sign in ((source, -1), (target, 1)):
                moves[key][0] += sign * dx * force
                moves[key][1] += sign * dy * force
        for key, (dx, dy) in moves.items():
            length = max(math.hypot(dx, dy), 1e-9)
            places[key][0] += dx / length * min(length, heat)
            places[key][1] += dy / length * min(length, heat)
    (left, right), (low, high) = ((min(p[axis] for p in places.values()), max(p[axis] for p in places.values())) for axis in (0, 1))
    margin = 40.0

    def scaled(value: float, least: float, most: float, size: float) -> float:
        return size / 2 if most - least < 1e-9 else margin + (value - least) / (most - least) * (size - 2 * margin)

    return {key: (scaled(x, left, right, width), scaled(y, low, high, height)) for key, (x, y) in places.items()}
