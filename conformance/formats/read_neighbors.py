#!/usr/bin/env python3
"""Reads the neighbors of a vertex from the directory of a Mangrove database.

Written after docs/design/open-formats.md alone, with the standard library of Python 3.9 or later. The database needs
`open_topology`, and a checkpoint. It may be in use meanwhile.

Usage: read_neighbors.py DIRECTORY VERTEX [VERTEX…]

VERTEX is the number that Gremlin shows as the id of a vertex whose id nobody chose; `all` reads every vertex. Each edge is a
line: the vertex, `out` or `in`, the label, the edge, the neighbor.
"""

import json
import struct
import sys
from pathlib import Path

PAGE_SLOTS = 1024
STRIPE = 4096
PART = 1024


class Unreadable(Exception):
    """The files are not as the format says."""


def expect(truth, what):
    if not truth:
        raise Unreadable(what)


# --- Numbers --------------------------------------------------------------------------------------------------------


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC_TABLE = crc_table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


class Reader:
    """Reads numbers one after the other."""

    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def left(self):
        return len(self.data) - self.at

    def byte(self):
        expect(self.left() > 0, "the bytes end within a number")
        self.at += 1
        return self.data[self.at - 1]

    def varint(self):
        number, shift = 0, 0
        while True:
            byte = self.byte()
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    def signed(self):
        number = self.varint()
        return number >> 1 if number % 2 == 0 else -(number >> 1) - 1

    def take(self, count):
        expect(count <= self.left(), "the bytes end too early")
        self.at += count
        return self.data[self.at - count:self.at]

    def text(self):
        return self.take(self.varint()).decode()


def external(tablet, generation, index):
    """The number that Gremlin shows for an element whose id nobody chose."""
    high, low = index >> 27, index & (1 << 27) - 1
    bits = ((high << 37 | generation << 27 | low) << 16 | tablet) + 65536 & (1 << 64) - 1
    return bits - (1 << 64) if bits >> 63 else bits


def from_external(number):
    """Tablet, generation and slot index of such an element."""
    bits = number - 65536 & (1 << 64) - 1
    tablet, slot = bits & 0xFFFF, bits >> 16
    return tablet, slot >> 27 & 0x3FF, slot >> 37 << 27 | slot & (1 << 27) - 1


# --- Manifest, packs, blocks ----------------------------------------------------------------------------------------


def newest_manifest(directory):
    numbers = [int(path.stem) for path in (directory / "manifest").glob("*.json")]
    expect(numbers, f"{directory} has no manifest, so it is no database")
    text = (directory / "manifest" / f"{max(numbers)}.json").read_bytes().strip()
    expect(text[:11] == b'{"crc32c":"' and text[19:32] == b'","manifest":' and text[-1:] == b"}", "this is no manifest")
    inner = text[32:-1]
    expect(text[11:19] == b"%08x" % crc32c(inner), "the checksum of the manifest is wrong")
    manifest = json.loads(inner)
    expect(manifest["format"] == 2, f"the manifest has format {manifest['format']}, and this reader knows format 2")
    expect("topology" in manifest, "the checkpoint has no topology: set open_topology, and take a checkpoint")
    return manifest


def covers(pack, kind):
    """True if a pack has blocks of a kind."""
    return any(part.startswith(f"{kind}:") for part in pack["covers"].split(","))


def unpacked(body):
    """The content of a packed part."""
    reader = Reader(body)
    codec, stored = reader.byte(), reader.varint()
    expect(codec == 0, "a part is compressed, although the checkpoint has topology")
    (crc,) = struct.unpack("<I", reader.take(4))
    part = reader.take(stored)
    expect(crc == crc32c(part), "the checksum of a part is wrong")
    return part


class Pack:
    """A pack, whose directory is in memory."""

    def __init__(self, directory, entry):
        name = f"{entry['incarnation']:016x}-{entry['counter']:016x}"
        self.file = open(directory / "pack" / f"{crc32c(name.encode()):08x}-{name}", "rb")
        end = self.read(entry["bytes"] - 24, 24)
        offset, length, zeros, magic, crc = struct.unpack("<QII4sI", end)
        expect(magic == b"GEND" and crc == crc32c(end[:20]), "the checksum of a trailer is wrong")
        self.blocks = self.directory(unpacked(self.block(offset, length)))

    def read(self, offset, count):
        self.file.seek(offset)
        data = self.file.read(count)
        expect(len(data) == count, "a pack is too short")
        return data

    def block(self, offset, length):
        """The body of a block."""
        frame = self.read(offset, 8 + length)
        expect(struct.unpack("<II", frame[:8]) == (length, crc32c(frame[:4] + frame[8:])), "the checksum of a block is wrong")
        return frame[8:]

    @staticmethod
    def directory(body):
        """Offset and length of each block, by kind, tablet and number."""
        reader = Reader(body)
        kinds = []
        for _ in range(reader.varint()):
            kind = reader.byte()
            kinds += [kind] * reader.varint()
        tablets, numbers, offsets = [], [], []
        for at, kind in enumerate(kinds):
            last = tablets[-1] if at and kinds[at - 1] == kind else 0
            tablets.append(last + reader.varint())
        for at, kind in enumerate(kinds):
            is_next = at and (kinds[at - 1], tablets[at - 1]) == (kind, tablets[at])
            numbers.append(reader.varint() + (numbers[-1] + 1 if is_next else 0))
        differences = [reader.signed() for _ in kinds]
        lengths = [reader.varint() for _ in kinds]
        expect(reader.left() == 0, "a directory is too long")
        end = 64
        for difference, length in zip(differences, lengths):
            offsets.append(end + difference)
            end = offsets[-1] + 8 + length
        blocks = zip(kinds, tablets, numbers, offsets, lengths)
        return {(kind, tablet, number): (offset, length) for kind, tablet, number, offset, length in blocks}


class Graph:
    """The topology of a checkpoint."""

    def __init__(self, directory):
        self.manifest = newest_manifest(directory)
        self.blocks, self.deltas = {}, {}
        packs = {}
        for entry in self.manifest["packs"]:
            number = (entry["incarnation"], entry["counter"])
            is_named = self.manifest["names"] == {"incarnation": number[0], "counter": number[1]}
            if covers(entry, 3) or covers(entry, 4) or is_named:
                packs[number] = pack = Pack(directory, entry)
                # A later pack has newer blocks. A delta is of the newest block before it.
                for (kind, tablet, number), place in sorted(pack.blocks.items()):
                    if kind == 3:
                        self.blocks[tablet, number] = (pack, *place)
                        self.deltas.pop((tablet, number), None)
                    if kind == 4:
                        self.deltas[tablet, number] = (pack, *place)
        names = self.manifest["names"]
        catalog = packs[names["incarnation"], names["counter"]]
        reader = Reader(unpacked(catalog.block(*catalog.blocks[2, 0, 0])))
        labels = [reader.text() for _ in range(reader.varint())]
        [reader.text() for _ in range(reader.varint())]
        sets = [[labels[reader.varint()] for _ in range(reader.varint())] for _ in range(reader.varint())]
        self.label_sets = ["::".join(sorted(label_set)) for label_set in sets]

    def page(self, tablet, number):
        """The topology of a page of vertices, or none."""
        place, delta = (places.get((tablet, number)) for places in (self.blocks, self.deltas))
        page = place and Topology(place[0].block(*place[1:]))
        return Delta(page, delta[0].block(*delta[1:])) if page and delta else page

    def pages(self):
        return (self.page(*key) for key in sorted(self.blocks))


# --- Topology -------------------------------------------------------------------------------------------------------


class Topology:
    """A topology block."""

    def __init__(self, body):
        (self.first, end, self.tablet, self.label_set, self.slots, flags, self.timestamp, layer3, length, self.bits,
         outgoing, incoming) = struct.unpack("<QQIIIIQIQIII", body[:64])
        expect(flags & ~3 == 24, f"a topology block has unknown flags: {flags}")
        expect(crc32c(body[:layer3 - 4]) == struct.unpack("<I", body[layer3 - 4:layer3])[0], "the checksum of layers 1 and 2 is wrong")
        expect(end == self.first + self.slots and layer3 + length == len(body), "a topology block is not as long as it says")
        at, n = 64 + 8 * self.slots + 4, self.slots
        self.offsets = struct.unpack(f"<{2 * n + 1}I", body[64:at])
        self.generations = (0,) * n
        if flags & 1:
            self.generations = struct.unpack(f"<{n}H", body[at:at + 2 * n])
            at += 2 * n
        self.live = range(n)
        if flags & 2:
            self.live = [slot for slot in range(n) if body[at + slot // 8] >> slot % 8 & 1]
            at += (n + 7) // 8
        self.checksum = body[layer3 - 4:layer3]
        self.lists = body[layer3:]
        check_stripes(body[at:layer3 - 4], self.lists)

    def vertex(self, slot):
        """The number that Gremlin shows for the vertex in a slot."""
        return external(self.tablet, self.generations[slot], self.first + slot)

    def neighbors(self, slot):
        """Direction, label set, edge and neighbor of each edge of the vertex in a slot."""
        for direction in range(2):
            for label_set, edge, neighbor in self.list(slot, direction):
                yield "in" if direction else "out", label_set, external(*edge), external(*neighbor)

    def list(self, slot, direction):
        """Label set, edge and neighbor of each entry of a list."""
        begin, end = self.offsets[2 * slot + direction:2 * slot + direction + 2]
        return self.entries(self.lists[begin:end], slot, direction)

    def entries(self, data, slot, direction):
        reader = Reader(data)
        while reader.left():
            yield from self.run(reader, slot, direction)

    def run(self, reader, slot, direction):
        label_set, count = reader.varint(), reader.varint()
        count, has_generations = count // 2, count % 2
        lengths = [reader.varint() for _ in range((count + PART - 1) // PART)] if count > PART else []
        for at in range(count):
            if at % PART == 0:
                neighbor, edge = self.first + slot << self.bits | self.tablet, 0
                if lengths:
                    part_end = reader.at + lengths[at // PART]
            neighbor += reader.signed()
            edge += reader.signed()
            generations = (reader.varint(), reader.varint()) if has_generations else (0, 0)
            tablet, index = neighbor & (1 << self.bits) - 1, neighbor >> self.bits
            edge_tablet = tablet if direction else self.tablet
            yield label_set, (edge_tablet, generations[1], edge), (tablet, generations[0], index)
            if lengths and (at % PART == PART - 1 or at == count - 1):
                expect(reader.at == part_end, "a part of a run is not as long as it says")


class Delta(Topology):
    """A topology block with the changes of a delta."""

    def __init__(self, base, body):
        (self.first, self.tablet, self.label_set, self.slots, self.bits, self.timestamp, base_timestamp, base_checksum, begin,
         length, flags, outgoing, incoming) = struct.unpack("<QIIIIQQ4sIIIII", body[:64])
        expect(flags == 0, f"a delta has unknown flags: {flags}")
        expect(crc32c(body[:begin - 4]) == struct.unpack("<I", body[begin - 4:begin])[0], "the checksum of a delta is wrong")
        expect(begin + length == len(body), "a delta is not as long as it says")
        expect((base.timestamp, base.checksum, base.first) == (base_timestamp, base_checksum, self.first),
               "a delta is of another block than the one that counts")
        changes = body[begin:]
        stripes = begin - 4 - 4 * ((length + STRIPE - 1) // STRIPE)
        check_stripes(body[stripes:begin - 4], changes)
        self.base, self.changes = base, {}
        live, generations = set(base.live), list(base.generations) + [0] * (self.slots - base.slots)
        table = Reader(body[64:stripes])
        slot = -1
        for _ in range(table.varint()):
            slot += table.varint() + 1
            state = table.varint()
            generations[slot] = state // 2
            (live.add if state % 2 else live.discard)(slot)
        slot, end = -1, 0
        for _ in range(table.varint()):
            slot += table.varint() + 1
            start, end = end, end + table.varint()
            expect(end <= length, "a change is beyond the end of a delta")
            self.changes[slot] = self.change(Reader(changes[start:end]), slot)
        expect(table.left() == 0 and end == length, "a delta is longer than its changes")
        self.live, self.generations = sorted(live), generations
        for direction, count in enumerate((outgoing, incoming)):
            found = sum(len(list(self.list(slot, direction))) for slot in range(self.slots))
            expect(found == count, "the lists have another number of entries than the delta says")

    def change(self, reader, slot):
        """For each direction the places of removed entries, and the added entries."""
        sides = []
        for direction in range(2):
            place, removed = -1, set()
            for _ in range(reader.varint()):
                place += reader.varint() + 1
                removed.add(place)
            added = reader.take(reader.varint())
            sides.append((removed, list(self.entries(added, slot, direction))))
        expect(reader.left() == 0, "a change is longer than its lists")
        return sides

    def list(self, slot, direction):
        old = list(self.base.list(slot, direction)) if slot < self.base.slots else []
        if slot not in self.changes:
            return old
        removed, added = self.changes[slot][direction]
        expect(all(place < len(old) for place in removed), "a delta removes an entry that its block does not have")
        return [entry for place, entry in enumerate(old) if place not in removed] + added


def check_stripes(checksums, data):
    """Checks bytes against the checksum of each 4,096 of them."""
    for number, crc in enumerate(struct.unpack(f"<{(len(data) + STRIPE - 1) // STRIPE}I", checksums)):
        expect(crc == crc32c(data[number * STRIPE:(number + 1) * STRIPE]), "the checksum of a stripe is wrong")


def lines(graph, page, slot):
    for direction, label_set, edge, neighbor in page.neighbors(slot):
        yield f"{page.vertex(slot)}\t{direction}\t{graph.label_sets[label_set]}\t{edge}\t{neighbor}"


def opened(directory, read):
    """What `read` finds in the newest checkpoint, even if a running server removes an older one meanwhile."""
    for _ in range(9):
        try:
            return read(directory)
        except FileNotFoundError as error:
            missing = error
    raise Unreadable(f"{missing.filename} is missing, and the newest manifest names it")


def main(directory, *vertices):
    graph = opened(Path(directory), Graph)
    for vertex in vertices:
        if vertex == "all":
            for page in graph.pages():
                for slot in page.live:
                    print(*lines(graph, page, slot), sep="\n", end="\n" if any(page.neighbors(slot)) else "")
            continue
        tablet, generation, index = from_external(int(vertex))
        page, slot = graph.page(tablet, index // PAGE_SLOTS), index % PAGE_SLOTS
        expect(page and slot in page.live and page.generations[slot] == generation, f"there is no vertex {vertex}")
        for line in lines(graph, page, slot):
            print(line)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__.strip())
    try:
        main(*sys.argv[1:])
    except Unreadable as error:
        sys.exit(f"error: {error}")
