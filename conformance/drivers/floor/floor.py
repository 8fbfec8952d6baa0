"""The floor of gremlinpython: the time to send g.inject(1) and read the answer. Usage: floor.py URL SECONDS"""

import sys
import time
from importlib.metadata import version

from gremlin_python.driver import client, serializer


def main(url, seconds):
    for name, form in [("GraphBinary", serializer.GraphBinarySerializersV1()), ("GraphSON 3", serializer.GraphSONSerializersV3d0())]:
        asking = client.Client(url, "g", message_serializer=form, pool_size=1, max_workers=1)
        times, end = [], time.monotonic() + seconds / 5
        while time.monotonic() < end:
            asking.submit("g.inject(1)").all().result()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            begin = time.perf_counter()
            if asking.submit("g.inject(1)").all().result() != [1]:
                sys.exit("the answer is wrong")
            times.append(time.perf_counter() - begin)
        asking.close()
        times.sort()
        print(f"gremlinpython {version('gremlinpython')}\t{name}\t{times[len(times) // 2] * 1e6:.0f}\t"
              f"{times[len(times) * 99 // 100] * 1e6:.0f}\t{len(times) / seconds:.0f}")


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
