#!/usr/bin/env python3
"""Reads the look-up indexes of a checkpoint in the directory of a Mangrove database.

Written after docs/design/open-formats.md alone, with the standard library of Python 3.9 or later. The database needs
`open_topology`, and a checkpoint. It may be in use meanwhile.

Usage: look_up.py DIRECTORY id ID…           the vertices with these chosen ids: whole numbers, or texts after `text:`
       look_up.py DIRECTORY equal KEY VALUE… the vertices with these values in a hash index of the key
       look_up.py DIRECTORY scan KEY         all values in an ordered index of the key, in order

Each element is a line: what it was found by, and its external number. Ids and values that are found by a hash are candidates.
"""

import heapq
import struct
import sys
from bisect import bisect_left, bisect_right
from pathlib import Path

from read_neighbors import Pack, Reader, Unreadable, crc32c, expect, external, newest_manifest, opened, unpacked

MASK = (1 << 64) - 1


def fnv(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & MASK
    return value


def hash_of_id(identifier):
    if isinstance(identifier, int):
        return fnv(b"\x01" + struct.pack("<q", identifier))
    return fnv(b"\x02" + identifier.encode())


def hash_of_value(value):
    if isinstance(value, bool):
        return fnv(b"\x03" if value else b"\x02")
    if isinstance(value, (int, float)):
        return fnv(b"\x01" + struct.pack("<d", float(value) or 0.0))
    return fnv(b"\x05" + struct.pack("<Q", len(value.encode())) + value.encode())


def read_value(reader):
    """A value of a simple type."""
    tag = reader.byte()
    if tag in (1, 2):
        return tag == 2
    if tag in (3, 4, 5, 6):
        return reader.signed()
    if tag == 8:
        return struct.unpack("<f", reader.take(4))[0]
    if tag == 9:
        return struct.unpack("<d", reader.take(8))[0]
    if tag == 12:
        return reader.text()
    raise Unreadable(f"this reader does not know values with tag {tag}")


def in_order(values):
    """A key that sorts values as Gremlin does: booleans, numbers, texts."""
    return [(0 if isinstance(value, bool) else 2 if isinstance(value, str) else 1, value) for value in values]


def read_values(reader):
    return [read_value(reader) for _ in range(reader.varint())]


class Run:
    """A run of a look-up index. Reads its head, and then the stripes that are asked for."""

    def __init__(self, pack, place, kind, number, head):
        self.pack, self.kind, (self.offset, length) = pack, kind, place
        head = self.read(0, head)
        begin, found, self.timestamp, self.entries, stripes, count, flags = struct.unpack("<IIQQQII", head[:40])
        expect(begin == len(head) and crc32c(head[:-4]) == struct.unpack("<I", head[-4:])[0], "the checksum of a run is wrong")
        expect((found, flags) == (number, 0) and begin + stripes == length, "a run is not the one that the manifest says")
        table = struct.unpack(f"<{2 * count}I", head[40:40 + 8 * count])
        self.begins = [begin + offset for offset in table[::2]] + [length]
        self.checksums = table[1::2]
        reader = Reader(head[:-4], 40 + 8 * count)
        self.firsts = [struct.unpack("<Q", reader.take(8))[0] if kind == 7 else read_values(reader) for _ in range(count)]
        expect(reader.left() == 0, "the head of a run is too long")

    def read(self, begin, end):
        return self.pack.read(self.offset + 8 + begin, end - begin)

    def stripe(self, number):
        """Key, tablet, generation and slot index of each entry of a stripe."""
        data = self.read(*self.begins[number:number + 2])
        expect(crc32c(data) == self.checksums[number], "the checksum of a stripe is wrong")
        reader, key = Reader(data), self.firsts[number]
        while reader.left():
            key = key + reader.varint() if self.kind == 7 else read_values(reader)
            slot, tablet = reader.varint(), reader.varint()
            yield key, (tablet, reader.varint() if slot % 2 else 0, slot // 2)

    def with_hash(self, wanted):
        begin = max(bisect_left(self.firsts, wanted) - 1, 0)
        for number in range(begin, bisect_right(self.firsts, wanted)):
            yield from (entry for entry in self.stripe(number) if entry[0] == wanted)

    def all(self):
        for number in range(len(self.firsts)):
            yield from self.stripe(number)


class Indexes:
    """The look-up indexes of a checkpoint."""

    def __init__(self, directory):
        self.manifest = newest_manifest(directory)
        expect(self.manifest.get("indexes"), "the checkpoint has no look-up indexes: an older version of Mangrove wrote it")
        numbers = [(pack["incarnation"], pack["counter"]) for pack in self.manifest["packs"]]
        runs = [(run["incarnation"], run["counter"]) for index in self.manifest["indexes"] for run in index["runs"]]
        names = self.manifest["names"]["incarnation"], self.manifest["names"]["counter"]
        self.order = {number: at for at, number in enumerate(numbers)}
        oldest = min(self.order[number] for number in runs)
        # Packs before the first run say nothing about entries that count, and may have compressed directories.
        self.packs = {number: Pack(directory, self.manifest["packs"][at]) for at, number in enumerate(numbers)
                      if at >= oldest or number == names}
        self.images = {}
        for number, pack in self.packs.items():
            for kind, tablet, page in pack.blocks:
                if kind in (0, 1):
                    newest = max(self.images.get((kind, tablet, page), 0), self.order[number])
                    self.images[kind, tablet, page] = newest
        self.definitions = self.catalog(names)

    def catalog(self, names):
        """Number and kind of the block of each index of vertices with one key, by the key."""
        pack = self.packs[names]
        reader = Reader(unpacked(pack.block(*pack.blocks[2, 0, 0])))
        [reader.text() for _ in range(reader.varint())]
        keys = [reader.text() for _ in range(reader.varint())]
        for _ in range(reader.varint()):
            [reader.varint() for _ in range(reader.varint())]
        reader.varint()
        found = {}
        for _ in range(reader.varint()):
            number, flags = reader.varint(), reader.byte()
            if flags & 4:
                reader.varint()
            of = [keys[reader.varint()] for _ in range(reader.varint())]
            if not flags & 8 and len(of) == 1:
                found[of[0], 8 if flags & 1 else 7] = number + 2
        return found

    def number(self, key, kind):
        expect((key, kind) in self.definitions, f"there is no such index of {key}")
        return self.definitions[key, kind]

    def entries(self, number, entries_of, kind=0):
        """The entries of an index that count: no pack after that of the run has an image of the page."""
        [index] = [index for index in self.manifest["indexes"] if index["number"] == number] or [{"runs": []}]
        runs = (self.of_run(index, run, entries_of, kind) for run in index["runs"])
        # Each run is in order, so together they are.
        return heapq.merge(*runs, key=lambda entry: in_order(entry[0]) if index["kind"] == 8 else entry[0])

    def of_run(self, index, run, entries_of, kind):
        number, place = index["number"], (run["incarnation"], run["counter"])
        pack = self.packs[place]
        found = Run(pack, pack.blocks[index["kind"], 0, number], index["kind"], number, run["head"])
        expect(found.entries == run["entries"], "a run has another number of entries than the manifest says")
        for key, (tablet, generation, slot) in entries_of(found):
            if self.images.get((kind, tablet, slot // 1024), 0) <= self.order[place]:
                yield key, external(tablet, generation, slot)


def number_or_text(word):
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            pass
    return {"true": True, "false": False}.get(word, word)


def main(directory, what, *words):
    indexes = opened(Path(directory), Indexes)
    if what == "id":
        for word in words:
            wanted = hash_of_id(word[5:] if word.startswith("text:") else int(word))
            for _, element in indexes.entries(0, lambda run: run.with_hash(wanted)):
                print(word, element, sep="\t")
    elif what == "equal":
        number = indexes.number(words[0], 7)
        for word in words[1:]:
            wanted = hash_of_value(number_or_text(word))
            for _, element in indexes.entries(number, lambda run: run.with_hash(wanted)):
                print(word, element, sep="\t")
    else:
        expect(what == "scan", f"unknown: {what}")
        for key, element in indexes.entries(indexes.number(words[0], 8), Run.all):
            print(*key, element, sep="\t")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__.strip())
    try:
        main(*sys.argv[1:])
    except Unreadable as error:
        sys.exit(f"error: {error}")
