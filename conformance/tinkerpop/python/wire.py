"""The official client, reading values without loss.

gremlinpython has one integer type and one of floating point, makes lists of sets whose members cannot be hashed, and
has neither trees nor graphs. Here it reads the values of an answer into what `notation` makes of expected values:
pairs of a letter or word for the type, and the value. The protocol around them it reads as ever.
"""

import io
import struct

from gremlin_python.driver.client import Client
from gremlin_python.driver.serializer import GraphBinarySerializersV1
from gremlin_python.structure.io import graphbinaryV1 as binary

import graphson

DataType = binary.DataType


def typed(letter, official, convert=lambda value: value):
    """Reads what `official` reads, and says its type."""
    def objectify(buff, reader, nullable=True):
        value = official.objectify(buff, reader, nullable)
        return None if value is None else (letter, convert(value))
    return objectify


def made(word, read):
    """Reads with `read`, and says the type."""
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
    """The members of a bulk set, each as often as it counts."""
    spelled = []
    for _ in range(size(buff)):
        value = reader.read_object(buff)
        spelled += [value] * struct.unpack(">q", buff.read(8))[0]
    return spelled


def tree(buff, reader):
    """The branches of a tree; those below follow without type and flag."""
    return [(reader.read_object(buff), tree(buff, reader)) for _ in range(size(buff))]


def properties(buff, reader):
    """Past a list that does not say that it is one."""
    for _ in range(size(buff)):
        reader.read_object(buff)


def graph(buff, reader):
    """The ids of a graph's vertices and edges; of the rest only as much as it takes to get past it."""
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
    """The official reader with these functions for values that say their type themselves."""

    def __init__(self):
        super().__init__()
        self._deserializer_by_type_code.update((kind.value, read) for kind, read in READERS.items())


class Serializer(GraphBinarySerializersV1):
    """GraphBinary 1, the data of responses read by `Results`."""

    def __init__(self):
        super().__init__()
        self.results = Results()

    def deserialize_message(self, message):
        """One response. Only the last part of it is data; a list, which the client wants as one."""
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
