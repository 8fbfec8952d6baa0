"""Reads GraphSON 3 without loss of types, which the official client loses in part. `notation` makes canonical values of
it.

Elements and tokens become objects of the official client. Numbers and collections become pairs of a letter or word and
the value.
"""

import datetime
import json
import re
import uuid

from gremlin_python.driver.serializer import GraphSONSerializersV3d0
from gremlin_python.process.traversal import Direction, T
from gremlin_python.structure import graph

NUMBERS = {"g:Int32": "i", "g:Int64": "l", "g:Float": "f", "g:Double": "d", "gx:Byte": "b", "gx:Int16": "s",
           "gx:BigInteger": "n", "gx:BigDecimal": "m"}


def read(value):
    """A value, with or without its type."""
    if isinstance(value, dict):
        return typed(value["@type"], value["@value"])
    return ("list", [read(each) for each in value]) if isinstance(value, list) else value


def typed(name, value):
    """A value of this type."""
    match name:
        case _ if name in NUMBERS:
            # Numbers without a notation in JSON are texts.
            return (NUMBERS[name], value)
        case "g:List":
            return ("list", [read(each) for each in value])
        case "g:Set":
            return ("set", [read(each) for each in value])
        case "g:BulkSet":
            pairs = zip(value[::2], value[1::2])
            return ("list", [read(each) for each, count in pairs for _ in range(read(count)[1])])
        case "g:Map":
            return ("map", [(read(key), read(each)) for key, each in zip(value[::2], value[1::2])])
        case "g:UUID":
            return uuid.UUID(value)
        case "g:Date" | "g:Timestamp":
            return datetime.datetime.fromtimestamp(value / 1000, datetime.timezone.utc)
        case "gx:OffsetDateTime":
            return datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
        case "gx:Duration":
            return duration(value)
        case "g:T":
            return T[value if value != "id" else "id_"]
        case "g:Direction":
            return Direction[value]
        case "g:Vertex":
            return graph.Vertex(read(value["id"]))
        case "g:Edge":
            return graph.Edge(read(value["id"]), None, value["label"], None)
        case "g:VertexProperty":
            return graph.VertexProperty(read(value["id"]), value["label"], read(value["value"]), None)
        case "g:Property":
            return graph.Property(value["key"], read(value["value"]), None)
        case "g:Path":
            return graph.Path(read(value["labels"]), read(value["objects"]))
        case "g:Tree":
            return ("tree", branches(value))
        case "tinker:graph":
            return ("graph", tuple([read(each["@value"]["id"]) for each in value[kind]] for kind in ("vertices", "edges")))
        case _:
            raise ValueError(f"the runner reads no {name}")


def branches(value):
    """The branches of a tree, with their subtrees."""
    return [(read(each["key"]), branches(each["value"]["@value"])) for each in value]


def duration(text):
    """A duration of at most days, in ISO 8601."""
    sign = r"([-+]?[\d.]+)"
    found = re.fullmatch(rf"P(?:{sign}D)?(?:T(?:{sign}H)?(?:{sign}M)?(?:{sign}S)?)?", text)
    days, hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return datetime.timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


class Serializer(GraphSONSerializersV3d0):
    """A serializer for GraphSON 3 that reads the data of responses by `read`, and the rest like the official one."""

    def deserialize_message(self, message):
        """Reads one response."""
        response = json.loads(message)
        data = response["result"].pop("data")
        response = self._graphson_reader.to_object(response)
        data = read(data)
        response["result"]["data"] = data[1] if isinstance(data, tuple) and data[0] == "list" else data
        return response
