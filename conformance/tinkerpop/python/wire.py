"""The official client with readers that lose no types.

gremlinpython has one integer type and one floating-point type, makes lists of sets with unhashable members, and has
neither trees nor graphs. These readers make pairs of a letter or word for the type, and the value; `notation` makes the
same of expected values. The client reads the protocol around the values as usual.
"""

import io
import struct

from gremlin_python.driver.client import Client
from gremlin_python.driver.serializer import GraphBinarySerializersV1
from gremlin_python.structure.io import graphbinaryV1 as binary

import graphson

DataType = binary.DataType


def typed(letter, official, convert=lambda value: value):
    """Makes a reader that reads like `official` and adds the type."""
    def objectify(buff, reader, nullable=True):
        value = official.objectify(buff, reader, nullable)
        return None if value is None else (letter, convert(value))
    return objectify


def made(word, read):
    """Makes a reader that reads with `read`, also a null, and adds the type."""
    def objectify(buff, reader, nullable=True):
        if nullable and buff.read(1)[0] == 0x01:
            return None
        return (word, read(buff, reader))
    return objectify


def size(buff):
    """A length."""
    return struct.unpack(">i", buff.read(4))[0]


def members(buff, reader):
    """The members of a list or set."""
    return [reader.read_object(buff) for _ in range(size(buff))]


def entries(buff, reader):
    """The entries of a map."""
    return [(reader.read_object(buff), reader.read_object(buff)) for _ in range(size(buff))]


def counted(buff, reader):
    """The members of a bulk set, each as often as its bulk."""
    spelled = []
    for _ in range(size(buff)):
        value = reader.read_object(buff)
        spelled += [value] * struct.unpack(">q", buff.read(8))[0]
    return spelled


def tree(buff, reader):
    """The branches of a tree; subtrees have neither type nor flag."""
    return [(reader.read_object(buff), tree(buff, reader)) for _ in range(size(buff))]


def properties(buff, reader):
    """Skips the properties of an element: a list that is written without its type."""
    for _ in range(size(buff)):
        reader.read_object(buff)


def graph(buff, reader):
    """The ids of a graph's vertices and edges; the rest is skipped."""
    vertices, edges = [], []
    for _ in range(size(buff)):
        vertices.append(reader.read_object(buff))
        reader.to_object(buff, DataType.string, False)
        for _ in range(size(buff)):
            reader.read_object(buff)
            reader.to_object(buff, DataType.string, False)
            reader.read_object(buff)
            buff.read(2)
            properties(buff, reader)
    for _ in range(size(buff)):
        edges.append(reader.read_object(buff))
        reader.to_object(buff, DataType.string, False)
        for _ in range(2):
            reader.read_object(buff)
            buff.read(2)
        buff.read(2)
        properties(buff, reader)
    return (vertices, edges)


READERS = {
    DataType.byte: typed("b", binary.ByteIO, int),
    DataType.short: typed("s", binary.ShortIO),
    DataType.int: typed("i", binary.IntIO),
    DataType.long: typed("l", binary.LongIO),
    DataType.biginteger: typed("n", binary.BigIntIO),
    DataType.float: typed("f", binary.FloatIO),
    DataType.double: typed("d", binary.DoubleIO),
    DataType.bigdecimal: typed("m", binary.BigDecimalIO, lambda decimal: decimal.value),
    DataType.list: made("list", members),
    DataType.set: made("set", members),
    DataType.map: made("map", entries),
    DataType.bulkset: made("list", counted),
    DataType.tree: made("tree", tree),
    DataType.graph: made("graph", graph),
}


class Results(binary.GraphBinaryReader):
    """The official reader, with these functions for typed values."""

    def __init__(self):
        super().__init__()
        self._deserializer_by_type_code.update((kind.value, read) for kind, read in READERS.items())


class Serializer(GraphBinarySerializersV1):
    """A serializer for GraphBinary 1 that reads the data of responses by `Results`."""

    def __init__(self):
        super().__init__()
        self.results = Results()

    def deserialize_message(self, message):
        """Reads one response. Only its last part is data: a list, which the client expects as one."""
        buff = io.BytesIO(message)
        buff.read(1)
        protocol = self._graphbinary_reader
        request = protocol.to_object(buff, DataType.uuid)
        status = {
            "code": struct.unpack(">i", buff.read(4))[0],
            "message": protocol.to_object(buff, DataType.string),
            "attributes": protocol.to_object(buff, DataType.map, nullable=False),
        }
        meta = protocol.to_object(buff, DataType.map, nullable=False)
        data = self.results.to_object(buff)
        if isinstance(data, tuple) and data[0] == "list":
            data = data[1]
        return {"requestId": str(request), "status": status, "result": {"meta": meta, "data": data}}


SERIALIZERS = {"graphbinary": Serializer, "graphson3": graphson.Serializer}


def connect(url, source, serializer):
    """A client for scripts on one traversal source."""
    return Client(url, source, message_serializer=SERIALIZERS[serializer](), pool_size=1, max_workers=1)
