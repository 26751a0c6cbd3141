"""What a neighbouring hub is owed, on a napkin: three lists, and the numbers at which fences stand."""

from typing import TypeAlias

from attrs import Factory, define

from hubauth.core.messages import Action

Told: TypeAlias = tuple[str, str]
"""(device, credential): two revokes that say the same are the same."""


@define
class NaiveDebts:
    """Every method returns what the neighbour is sent."""

    at_once: int
    here: bool = False
    speaks: bool = False
    """Whether it speaks the extension now, and so can acknowledge."""
    known: bool = False
    """Whether it was ever here: nothing is owed to anybody else."""
    number: int = 0
    before: dict[int, Told] = Factory(dict)
    """Sent over an earlier link, and not again yet."""
    flying: dict[int, Told] = Factory(dict)
    queue: list[Told] = Factory(list)
    fences: list[int] = Factory(list)
    last_of_batch: int = 0

    def arrives(self, *, speaks: bool, anew: bool) -> list[Action]:
        """``anew``: under another name than before, so that numbers are worth nothing."""
        self.before, self.flying = {**self.flying, **self.before}, {}
        self.fences, self.last_of_batch = [], 0
        self.here, self.speaks = True, speaks
        self.known = True
        if not speaks:
            return self.tell_kept()
        if anew:
            self.queue = [self.before[number] for number in sorted(self.before)] + self.queue
            self.before, self.number = {}, 0
        return self._batch()

    def leaves(self) -> None:
        self.here = False

    def revoked(self, device: str, credential: str) -> list[Action]:
        told = (device, credential)
        if not self.known:
            return []
        if told in self.queue and not (self.here and not self.speaks):
            return []
        for sent in (self.before, self.flying):
            for number in [number for number, other in sent.items() if other == told]:
                del sent[number]
        if self.here and not self.speaks:
            self.queue = [other for other in self.queue if other != told]
            return [Action.REVOKE]
        if self.here and not self.before and not self.queue and len(self.flying) < self.at_once:
            return self._send([], [told])
        self.queue.append(told)
        return []

    def hears_of(self, device: str) -> list[Action]:
        """The neighbour is about to be asked about a device, or to be told its credential."""
        if self.here and not self.speaks:
            return self._tell_once([told for told in self._kept() if told[0] == device])
        mine = [told for told in self.queue if told[0] == device]
        if not self.here or not (mine or any(told[0] == device for told in self.before.values())):
            return []
        return self._send(sorted(self.before), mine)

    def answers_fence(self) -> list[Action]:
        upto = self.fences.pop(0)
        self.flying = {number: told for number, told in self.flying.items() if number > upto}
        return self._batch() if upto >= self.last_of_batch else []

    def refuses_fence(self) -> None:
        self.fences.pop(0)

    def tell_kept(self) -> list[Action]:
        """A neighbour that cannot acknowledge is told a batch of what was kept for it, and never again."""
        return self._tell_once(self._kept()[: self.at_once])

    def _kept(self) -> list[Told]:
        return [self.before[number] for number in sorted(self.before)] + self.queue

    def _tell_once(self, kept: list[Told]) -> list[Action]:
        """What was sent before is not told again if it names no credential: it would kill whichever is there now."""
        safe = [told for told in kept if told[1] or told in self.queue]
        self.before = {number: told for number, told in self.before.items() if told not in kept}
        self.queue = [told for told in self.queue if told not in kept]
        return [Action.REVOKE] * len(safe)

    def _batch(self) -> list[Action]:
        again = sorted(self.before)[: self.at_once]
        fresh = self.queue[: self.at_once - len(again)]
        sends = self._send(again, fresh)
        self.last_of_batch = max(self.flying) if sends else 0
        return sends

    def _send(self, again: list[int], fresh: list[Told]) -> list[Action]:
        for number in again:
            self.flying[number] = self.before.pop(number)
        for told in fresh:
            self.number += 1
            self.flying[self.number] = told
            if told in self.queue:
                self.queue.remove(told)
        count = len(again) + len(fresh)
        if count:
            self.fences.append(self.number if fresh else again[-1])
        return [Action.REVOKE] * count + [Action.HUB_FENCE] * bool(count)
