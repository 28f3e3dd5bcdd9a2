"""A large world in a process of its own, so that the dashboard's share of the processor can be measured.

python -m tests.web.large 5000
"""

from __future__ import annotations

import asyncio
import sys
import time

from tests.web.showing import served
from tests.web.world import World

WRITES_PER_S = 100  # 5,000 twins refreshed every two minutes are 42; decisions come on top


async def main(nodes: int) -> None:
    world = World(nodes, time.time(), per_rack=20, pods_per_node=10)
    async with served(world) as (address, _):
        sys.stdout.write(f"{address}\n")
        sys.stdout.flush()
        while True:
            await asyncio.sleep(0.25)
            world.wander(WRITES_PER_S // 4, 0.25)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
