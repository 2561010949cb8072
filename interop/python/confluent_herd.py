"""Many members of one group in one process, and how long its rebalances take. See interop/README.md."""

import argparse
import os
import signal
import subprocess
import sys
import threading
import time

from confluent_kafka import Consumer

import agent

SETTLE_LIMIT_S = 180
CALM_S = 4
STEADY_S = 15


class Member:
    """A consumer with the settings that librdkafka has when nobody says anything."""

    def __init__(self, arguments):
        self.owned = set()
        self.stopping = False
        self.consumer = Consumer(
            {
                "bootstrap.servers": arguments.bootstrap,
                "group.id": arguments.group,
                "group.protocol": arguments.protocol,
            }
        )
        self.consumer.subscribe(
            [arguments.topic],
            on_assign=lambda _, given: self.owned.update(p.partition for p in given),
            on_revoke=lambda _, gone: self.owned.difference_update(p.partition for p in gone),
            on_lost=lambda _, gone: self.owned.difference_update(p.partition for p in gone),
        )
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self):
        while not self.stopping:
            self.consumer.poll(0.1)
        self.consumer.close()
        self.owned.clear()

    def close(self):
        self.stopping = True
        self.thread.join()


class Herd:
    def __init__(self, arguments):
        self.arguments = arguments
        self.members = []

    def add(self):
        self.members.append(Member(self.arguments))

    def remove(self):
        self.members.pop(0).close()

    def is_settled(self):
        counts = [len(member.owned) for member in self.members]
        partitions, members = self.arguments.partitions, len(counts)
        if sum(counts) != partitions or min(counts) < partitions // members:
            return False
        owned = set().union(*(set(member.owned) for member in self.members))
        return len(owned) == partitions and max(counts) <= -(-partitions // members)

    def until(self, condition):
        began = time.monotonic()
        while not condition():
            if time.monotonic() - began > SETTLE_LIMIT_S:
                raise RuntimeError("the group does not settle")
            time.sleep(0.002)

    def measure(self, what, change):
        began = time.monotonic()
        change()
        changed = time.monotonic()
        self.until(self.is_settled)
        now = time.monotonic()
        agent.emit(
            "settled",
            what=what,
            ms=round((now - began) * 1000),
            after_ms=round((now - changed) * 1000),
        )
        time.sleep(CALM_S)

    def start(self):
        for _ in range(self.arguments.members):
            self.add()

    def roll(self):
        for _ in range(len(self.members)):
            self.remove()
            self.add()

    def kill(self):
        """Kills a member that is a process of its own."""
        other = subprocess.Popen(
            [sys.executable, __file__, "alone", *sys.argv[2:]], stdout=subprocess.DEVNULL
        )
        self.until(lambda: not self.is_settled())
        # Until the group has settled with it.
        least = self.arguments.partitions // (len(self.members) + 1)
        partitions = self.arguments.partitions
        calm_since = time.monotonic()
        while time.monotonic() - calm_since < CALM_S:
            owned = sum(len(member.owned) for member in self.members)
            if not partitions - least - 1 <= owned <= partitions - least:
                calm_since = time.monotonic()
            time.sleep(0.01)
        self.measure("kill", lambda: (other.send_signal(signal.SIGKILL), other.wait()))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("verb", choices=["measure", "alone"])
    parser.add_argument("--bootstrap")
    parser.add_argument("--topic")
    parser.add_argument("--group")
    parser.add_argument("--protocol")
    parser.add_argument("--members", type=int)
    parser.add_argument("--partitions", type=int)
    parser.add_argument("--rolls", type=int, default=1)
    arguments = parser.parse_args()
    herd = Herd(arguments)
    if arguments.verb == "alone":
        herd.add()
        threading.Event().wait()
    herd.measure("start", herd.start)
    agent.emit("steady_begins")
    time.sleep(STEADY_S)
    agent.emit("steady_ends")
    for _ in range(3):
        herd.measure("join", herd.add)
        herd.measure("leave", herd.remove)
    for _ in range(arguments.rolls):
        herd.measure("roll", herd.roll)
    herd.kill()
    agent.emit("closed")
    # Nobody waits for a hundred to leave.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
