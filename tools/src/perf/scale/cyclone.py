"""A process of `spindle perf scale --peer cyclone`: it makes the same endpoints as a process of
Spindle's, follows the same orders, and answers with the same lines. See protocol.rs.

Arguments: the domain, the number of participants, the number of topics, its own number."""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from cyclonedds.core import Policy, Qos
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import uint32, uint64
from cyclonedds.pub import DataWriter
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

# As in worker.rs.
LOOK_AGAIN_AFTER_S = 0.001
LOOK_FOR_MATCHES_AFTER_S = 0.005
BLOCKING_S = 60
TAKE_MAX = 256


# The binding codes a string faster than a sequence of octets.
@dataclass
class Probe(IdlStruct, typename="Probe"):
    number: uint64
    writer: uint32
    payload: str


def tell(what):
    print(json.dumps(what), flush=True)


class Process:
    def __init__(self, domain, participants, topics, index):
        self.participants, self.index = participants, index
        self.cpu_began_ns = time.process_time_ns()
        began_at_ns = time.monotonic_ns()
        participant = DomainParticipant(domain)
        participant_at_ns = time.monotonic_ns()
        qos = Qos(Policy.Reliability.Reliable(duration(seconds=BLOCKING_S)), Policy.History.KeepAll)
        self.participant, self.writers, self.readers = participant, [], []
        for at in range(topics):
            topic = Topic(participant, f"T{at}", Probe, qos=qos)
            self.writers.append(DataWriter(participant, topic, qos=qos))
            self.readers.append(DataReader(participant, topic, qos=qos))
        self.times = {
            "began_at_ns": began_at_ns,
            "participant_at_ns": participant_at_ns,
            "endpoints_at_ns": time.monotonic_ns(),
        }

    def matches(self):
        """For each endpoint a function that returns the number of its matches."""
        return [it.get_matched_subscriptions for it in self.writers] + [
            it.get_matched_publications for it in self.readers
        ]

    def wait_until_matched(self):
        for matches in self.matches():
            while count(matches) < self.participants:
                time.sleep(LOOK_FOR_MATCHES_AFTER_S)
        return {"matched": {**self.times, "matched_at_ns": time.monotonic_ns()}}

    def count(self):
        cpu_ns = time.process_time_ns() - self.cpu_began_ns
        return {"counted": {"cpu_ns": cpu_ns, "matches": sum(map(count, self.matches())), "group": None}}

    def exchange(self, topics, writers, samples, size):
        def sends(at):
            return writers == "all" or at % self.participants == self.index

        def send():
            for at in filter(sends, range(topics)):
                for number in range(samples):
                    self.writers[at].write(Probe(number, self.index, "x" * size))

        left = [samples * (self.participants if writers == "all" else 1)] * topics
        with ThreadPoolExecutor(1) as thread:
            sending = thread.submit(send)
            while any(left):
                time.sleep(LOOK_AGAIN_AFTER_S)
                if sending.done():
                    sending.result()
                for at in (at for at in range(topics) if left[at]):
                    while taken := self.readers[at].take(TAKE_MAX):
                        left[at] -= len(taken)
            sending.result()
        return "exchanged"

    def close(self):
        began_at_ns = time.monotonic_ns()
        # Deletes all that it contains.
        self.participant._delete(self.participant._ref)
        return {"closed": {"began_at_ns": began_at_ns, "ended_at_ns": time.monotonic_ns()}}


def count(matches):
    # The binding asks for the number and then for the handles: it fails if there are more by then.
    while True:
        try:
            return len(matches())
        except IndexError:
            pass


def run(domain, participants, topics, index):
    tell("ready")
    process = None
    for line in sys.stdin:
        order = json.loads(line)
        if order == "begin":
            process = Process(domain, participants, topics, index)
            tell(process.wait_until_matched())
        elif order == "count":
            tell(process.count())
        elif order == "close":
            tell(process.close())
            return
        else:
            tell(process.exchange(**order["exchange"]))


try:
    run(*map(int, sys.argv[1:]))
except Exception as error:
    tell({"failed": {"error": f"{type(error).__name__}: {error}"}})
    sys.exit(1)
