"""What the Python agents share: the command line and the output of interop/README.md."""

import argparse
import json
import signal
import sys
import time

VALUE_BYTES = 100
BATCH_RECORDS = 100
POLL_S = 0.1
SESSION_TIMEOUT_MS = 6000
HEARTBEAT_INTERVAL_MS = 1000
COMMIT_MS = 5000
# How soon a member that starts at the end (--reset latest) notices new partitions by itself.
METADATA_AGE_MS = 3000

# Clients of one process wait longer and longer for a broker that is away; tests wait with them.
RECONNECT_BACKOFF_MS = 50
RECONNECT_BACKOFF_MAX_MS = 500


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "command", choices=["version", "create", "grow", "produce", "consume", "rewind"]
    )
    parser.add_argument("--bootstrap")
    parser.add_argument("--topic")
    parser.add_argument("--partitions", type=int)
    parser.add_argument("--compression", default="none")
    parser.add_argument("--start", type=int)
    parser.add_argument("--count", type=int)
    parser.add_argument("--rate", type=int, default=0)
    parser.add_argument("--group")
    parser.add_argument("--protocol", default="classic")
    parser.add_argument("--instance-id")
    parser.add_argument("--assignor")
    parser.add_argument("--reset", default="earliest")
    parser.add_argument("--offsets", type=offsets)
    parser.add_argument("--hold-ms", type=int, default=0)
    parser.add_argument("--max-poll-ms", type=int, default=0)
    return parser.parse_args()


# What an administrator's commit begins with that rewinds a live group of kohort's.
REWIND = "kohort:rewind"


def offsets(text):
    """`0:5,more/3:7`: triples of a topic (None: that of --topic), a partition and an offset."""
    goals = []
    for goal in text.split(","):
        topic, _, pair = goal.rpartition("/")
        partition, offset = map(int, pair.split(":"))
        goals.append((topic or None, partition, offset))
    return goals


def emit(event, **fields):
    print(json.dumps({"event": event, **fields}, separators=(",", ":")), flush=True)


def log(message):
    print(message, file=sys.stderr, flush=True)


def key_of(number):
    return f"k{number}".encode()


def value_of(number):
    return str(number).ljust(VALUE_BYTES).encode()


def number_in(value):
    return int(value.decode())


def paced(start, count, rate):
    """The numbers to produce, at most `rate` a second; 0 is without limit. Yields the number
    and how long to wait before sending it."""
    began = time.monotonic()
    for sent in range(count):
        wait_s = began + sent / rate - time.monotonic() if rate else 0
        yield start + sent, max(wait_s, 0)


class Stop:
    """Becomes true on SIGTERM or SIGINT."""

    def __init__(self):
        self.wanted = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._want)

    def _want(self, *_):
        self.wanted = True

    def __bool__(self):
        return self.wanted


class Progress:
    """What a member was given and has yet to commit, by partition. `commit` is the library's
    synchronous commit: it takes {partition: next offset} and raises when it fails."""

    def __init__(self, commit=None):
        self._commit = commit
        self._records = []
        self._pending = {}

    def take(self, partition, offset, value):
        self._records.append([partition, offset, number_in(value)])

    @property
    def waiting(self):
        return len(self._records)

    def deliver(self):
        """Prints the records taken, and gives the offsets that are to be committed."""
        if self._records:
            emit("records", records=self._records)
            for partition, offset, _ in self._records:
                self._pending[partition] = offset + 1
            self._records = []
        return dict(self._pending)

    def outcome(self, offsets, error=None):
        """Prints how the commit of these offsets ended."""
        pairs = [list(pair) for pair in offsets.items()]
        if error is not None:
            emit("commit_failed", offsets=pairs, error=repr(error))
            return
        emit("committed", offsets=pairs)
        self._pending = {}

    def deliver_and_commit(self):
        """Prints the records taken, commits them, and prints how that ended."""
        offsets = self.deliver()
        if not offsets:
            return
        try:
            self._commit(offsets)
        except Exception as error:  # every library has its own
            self.outcome(offsets, error)
        else:
            self.outcome(offsets)

    def commit_again(self, offsets):
        """Commits offsets whatever was committed before, and prints how that ended."""
        self._pending.update(offsets)
        self.deliver_and_commit()

    def forget(self, partitions):
        """These partitions are gone, and with them what was not committed."""
        for partition in partitions:
            self._pending.pop(partition, None)
        self._records = [record for record in self._records if record[0] not in partitions]
