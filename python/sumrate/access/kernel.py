"""The compiled inner loops: one realisation of initial access over all its beacon intervals.

Numba compiles these functions and caches them on disk. They share one file because the cache of a
function does not notice changes in other files. Powers are linear and relative to the noise (an
SNR), times are in us, and random numbers come from the generator argument.
"""

import math
from collections.abc import Callable
from typing import NamedTuple, TypeVar, cast

import numpy as np
from numba import njit
from numpy.typing import NDArray

Function = TypeVar("Function", bound=Callable[..., object])
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

DOT11AD, JPOC = 0, 1
"""Protocols."""
LEAST_SCALE, MOST_SCALE = 0.5, 8.0
"""Bounds of the factor that feedback applies to (3.7)."""


class SlotRules(NamedTuple):
    """802.11's slots and retries."""

    all_slots: int
    frames_per_slot: int
    random_order: bool
    """Each client draws a new order of its beams for every sweep."""
    retry_limit: int
    """RSSRetryLimit: consecutive failures before a client backs off; negative: never."""
    rss_backoff: int
    """RSSBackoff: a client that backs off sits out 0 to this many A-BFTs less one."""


class MiniSlotRules(NamedTuple):
    """JPOC's mini-slots, as `simulation.MiniSlots` describes them."""

    target_failure: float
    initial: int
    minimum: int
    maximum: int
    adapt: bool
    averaging: int
    double_when_full: bool
    feedback: float
    good_beams: float
    """K as exponent in (3.7)."""
    occupied_beams: float
    """K in p and in (3.8); the thesis uses one K."""


class Receiver(NamedTuple):
    """Thresholds of the AP's receiver; ratios are linear."""

    decode: float
    """Least SINR of a decoded frame."""
    capture: float
    """Least ratio of a frame to all others in its mini-slot."""
    capture_on: bool
    """If off, another decodable frame in the mini-slot destroys both."""
    detect: float
    """Least energy over noise of a mini-slot that does not count as empty."""


class Rules(NamedTuple):
    """All numbers of a run; those without a comment are `Setting`'s and `PowerControl`'s."""

    protocol: int
    slots: SlotRules
    mini_slots: MiniSlotRules
    receiver: Receiver
    ramp_db: float
    error_db: float
    blockage: float
    blocked_sweep: bool
    always_compete: bool
    fixed_us: float
    """Beacon interval less BTI, gaps, and the part of the A-BFT that does not vary."""
    mini_slot_us: float
    feedback_us: float
    """JPOC: feedback to one client."""


class Clients(NamedTuple):
    """State of the clients of a realisation; arrays over clients."""

    trained: Flags
    blocked: Flags
    failures: Ints
    """Consecutive ones."""
    wait: Ints
    progress: Ints
    """Beams of the current sweep sent in earlier A-BFTs."""
    decoded: Floats
    """Best decoded SNR of the current sweep, 0 without one."""
    gain: Floats
    """Power of this A-BFT, relative to the client's maximum."""


class Sent(NamedTuple):
    """The frames of one A-BFT."""

    order: Ints
    """(clients, beams): order of each client's sweep."""
    when: Ints
    beam: Ints
    power: Floats
    """(clients, beams): mini-slot, beam, and SNR at the client's AP of each frame."""
    frames: Ints
    """(clients,): how many were sent."""
    complete: Flags
    """(clients,): the sweep ended in this A-BFT."""


class Air(NamedTuple):
    """Sums at the receivers, per AP and mini-slot."""

    energy: Floats
    senders: Ints
    decodable: Ints


class Access(NamedTuple):
    """State of JPOC's APs."""

    mini_slots: Ints
    """(APs,): M."""
    history: Floats
    """(APs, T): the last estimates."""
    rounds: Ints
    """(APs,): number of estimates so far."""
    scale: Floats
    """(APs,): factor on (3.7); 1 without feedback."""
    shuffled: Ints
    """(APs, most mini-slots): a permutation to draw mini-slots from."""


class World(NamedTuple):
    """Input of a realisation."""

    snr: Floats
    """SNR at full power of every beam at every AP, linear, (APs, 2, clients, beams); the second
    axis is the clear and the blocked channel."""
    offset_db: Floats
    """Controlled power over the maximum, dB, (2, clients); 0 without power control."""
    beams: Ints
    """Number of beams of each client, (clients,)."""
    cell: Ints
    """AP of each client, (clients,)."""
    present: Ints
    """Number of present clients in each interval, (intervals,); the first ones are present."""
    ati_us: Floats
    """Duration of the ATI by number of associated clients, (clients + 1,)."""


class State(NamedTuple):
    """State of a realisation."""

    clients: Clients
    sent: Sent
    air: Air
    access: Access


class Outcome(NamedTuple):
    """Result of a realisation."""

    air_time_us: Floats
    """(clients,): allocated in the DTI."""
    delivered_us: Floats
    """(clients,): of that, while not blocked."""
    attempts: Ints
    failures: Ints
    """(clients, intervals): 1 where a sweep ended, and where it ended without a decoded frame."""
    first: Ints
    """(clients,): beacon interval of the first success, -1 without one."""
    mini_slots: Ints
    estimate: Floats
    expected: Floats
    empty: Ints
    """(intervals,): of the first AP; estimates are 0 under 802.11."""
    competitors: Ints
    """(intervals,): clients of the first AP that sent a frame."""
    events: Ints
    """(2,): decodable frames lost to others, and frames decoded beside others."""
    loss_db: Floats
    """(1,): sum over successes of the best beam's SNR over the best decoded one's."""


def compiled(function: Function) -> Function:
    """Compiles a function at its first call and keeps it on disk."""
    try:
        return cast(Function, njit(cache=True, nogil=True)(function))
    except RuntimeError:  # No folder for numba's cache can be written.
        return cast(Function, njit(nogil=True)(function))


# --- transmission ---


@compiled
def shuffle(rng: np.random.Generator, values: Ints, drawn: int) -> None:
    """Moves `drawn` random values, without replacement, to the front."""
    for i in range(drawn):
        j = i + int(rng.random() * (values.size - i))
        values[i], values[j] = values[j], values[i]


@compiled
def sweep_in_slots(
    rng: np.random.Generator, slots: SlotRules, world: World, state: State, client: int
) -> None:
    """802.11: the client's frames fill a slot drawn at random, and those that follow it.

    Frames that do not fit into the A-BFT follow in the next one.
    """
    clients, sent, beams = state.clients, state.sent, world.beams[client]
    if clients.wait[client] > 0:
        clients.wait[client] -= 1
        return
    done = clients.progress[client]
    if done == 0 and slots.random_order:
        shuffle(rng, sent.order[client, :beams], beams)
    slot = int(rng.random() * slots.all_slots)
    count = 0
    while done < beams and slot < slots.all_slots:
        fitting = min(slots.frames_per_slot, beams - done)
        for i in range(fitting):
            sent.when[client, count] = slot * slots.frames_per_slot + i
            sent.beam[client, count] = sent.order[client, done + i]
            count += 1
        done += fitting
        slot += 1
    sent.frames[client] = count
    sent.complete[client] = done >= beams
    clients.progress[client] = 0 if done >= beams else done


@compiled
def sweep_in_mini_slots(rng: np.random.Generator, world: World, state: State, client: int) -> None:
    """JPOC: every beam once, in mini-slots drawn at random without replacement.

    With fewer mini-slots than beams, the client sends a random selection of beams.
    """
    sent, ap, beams = state.sent, world.cell[client], world.beams[client]
    mini_slots = state.access.mini_slots[ap]
    count = min(beams, mini_slots)
    pool = state.access.shuffled[ap, :mini_slots]
    shuffle(rng, pool, count)
    if count < beams:
        shuffle(rng, sent.order[client, :beams], count)
    for i in range(count):
        sent.when[client, i] = pool[i]
        sent.beam[client, i] = sent.order[client, i]
    sent.frames[client] = count
    sent.complete[client] = True


@compiled
def set_power(
    rng: np.random.Generator, rules: Rules, offset_db: float, clients: Clients, client: int
) -> None:
    """Sets the power of an A-BFT: controlled power, error and ramp, capped at the maximum."""
    power_db = offset_db + rules.ramp_db * clients.failures[client]
    if rules.error_db > 0.0:
        power_db += rules.error_db * rng.standard_normal()
    clients.gain[client] = 10.0 ** (min(0.0, power_db) / 10.0)


@compiled
def transmit(decode: float, world: World, state: State, client: int, blocked: int) -> None:
    """Adds a client's frames to the received sums of every AP."""
    sent, air = state.sent, state.air
    for i in range(sent.frames[client]):
        when = sent.when[client, i]
        for ap in range(world.snr.shape[0]):
            power = (
                state.clients.gain[client] * world.snr[ap, blocked, client, sent.beam[client, i]]
            )
            air.energy[ap, when] += power
            air.senders[ap, when] += 1
            if power >= decode:
                air.decodable[ap, when] += 1
            if ap == world.cell[client]:
                sent.power[client, i] = power


@compiled
def compete(
    rng: np.random.Generator, rules: Rules, world: World, state: State, present: int
) -> None:
    """Sends the frames of one A-BFT for every untrained client."""
    clients = state.clients
    for client in range(world.cell.size):
        state.sent.frames[client] = 0
        state.sent.complete[client] = False
        if client >= present or (clients.trained[client] and not rules.always_compete):
            continue
        if rules.protocol == JPOC:
            sweep_in_mini_slots(rng, world, state, client)
        else:
            sweep_in_slots(rng, rules.slots, world, state, client)
        if state.sent.frames[client] > 0:
            blocked = int(clients.blocked[client] and rules.blocked_sweep)
            set_power(rng, rules, world.offset_db[blocked, client], clients, client)
            transmit(rules.receiver.decode, world, state, client, blocked)


# --- reception ---


@compiled
def is_decoded(
    receiver: Receiver, power: float, energy: float, senders: int, decodable: int
) -> bool:
    """True if the AP decodes a frame of this SNR in a mini-slot with this energy."""
    if power < receiver.decode:
        return False
    if senders == 1:
        return True
    others = max(energy - power, 0.0)
    if power < receiver.decode * (1.0 + others):
        return False
    return power >= receiver.capture * others if receiver.capture_on else decodable == 1


@compiled
def receive(receiver: Receiver, world: World, state: State, events: Ints) -> None:
    """Records every client's best decoded frame, and counts collisions and captures."""
    sent, air = state.sent, state.air
    for client in range(world.cell.size):
        ap = world.cell[client]
        for i in range(sent.frames[client]):
            at, power = sent.when[client, i], sent.power[client, i]
            senders = air.senders[ap, at]
            if is_decoded(receiver, power, air.energy[ap, at], senders, air.decodable[ap, at]):
                state.clients.decoded[client] = max(state.clients.decoded[client], power)
                events[1] += senders > 1
            elif power >= receiver.decode:
                events[0] += 1


@compiled
def empty_mini_slots(detect: float, ap: int, mini_slots: int, air: Air) -> int:
    """Number of mini-slots without detected energy."""
    empty = 0
    for when in range(mini_slots):
        empty += air.energy[ap, when] < detect
    return empty


@compiled
def beam_loss_db(world: World, state: State, client: int, blocked: int) -> float:
    """SNR of the best beam over that of the best decoded beam, dB."""
    best = 0.0
    for beam in range(world.beams[client]):
        best = max(best, world.snr[world.cell[client], blocked, client, beam])
    decoded = state.clients.decoded[client]
    return 10.0 * math.log10(best * state.clients.gain[client] / decoded)


@compiled
def settle(
    rng: np.random.Generator, rules: Rules, world: World, state: State, found: tuple[Outcome, int]
) -> None:
    """Marks clients with a completed sweep as trained or failed."""
    clients, (outcome, at) = state.clients, found
    for client in range(world.cell.size):
        if not state.sent.complete[client]:
            continue
        outcome.attempts[client, at] = 1
        if clients.decoded[client] > 0.0:
            clients.trained[client] = True
            clients.failures[client] = 0
            if outcome.first[client] < 0:
                outcome.first[client] = at
            blocked = int(clients.blocked[client] and rules.blocked_sweep)
            outcome.loss_db[0] += beam_loss_db(world, state, client, blocked)
        else:
            clients.trained[client] = False
            outcome.failures[client, at] = 1
            clients.failures[client] += 1
            if 0 <= rules.slots.retry_limit < clients.failures[client]:
                clients.wait[client] = int(rng.random() * rules.slots.rss_backoff)
        clients.decoded[client] = 0.0


# --- JPOC's AP: estimate of the clients and next number of mini-slots ---


@compiled
def estimate(rules: MiniSlotRules, empty: int, mini_slots: int) -> float:
    """(3.8), saturated at half an empty mini-slot."""
    occupied = min(rules.occupied_beams, mini_slots - 0.5)
    return math.log(max(float(empty), 0.5) / mini_slots) / math.log(1.0 - occupied / mini_slots)


@compiled
def next_mini_slots(rules: MiniSlotRules, expected: float, scale: float) -> int:
    """(3.7) for a real-valued number of clients, between the least and the largest M."""
    if expected <= 1.0:
        return rules.minimum
    free = 1.0 - rules.target_failure ** (1.0 / rules.good_beams)
    wanted = scale * rules.occupied_beams / (1.0 - free ** (1.0 / (expected - 1.0)))
    return int(min(max(math.ceil(wanted), rules.minimum), rules.maximum))


@compiled
def adapt(
    rules: MiniSlotRules, access: Access, ap: int, empty: int, decoded: int
) -> tuple[float, float]:
    """One round of the AP's loop (thesis, Sec. 3.2.2); returns estimate and mean of the last T.

    Feedback is an extension: it infers failures from estimated less decoded clients, and scales
    the mini-slots until the share of failures is the target.
    """
    mini_slots = access.mini_slots[ap]
    found = estimate(rules, empty, mini_slots)
    access.history[ap, access.rounds[ap] % rules.averaging] = found
    access.rounds[ap] += 1
    known = min(access.rounds[ap], rules.averaging)
    expected = float(np.mean(access.history[ap, :known]))
    if rules.feedback > 0.0:
        missed = ((1.0 - rules.target_failure) * found - decoded) / max(expected, 1.0)
        scale = access.scale[ap] * math.exp(rules.feedback * missed)
        access.scale[ap] = min(max(scale, LEAST_SCALE), MOST_SCALE)
    if rules.adapt:
        wanted = next_mini_slots(rules, expected, access.scale[ap])
        if rules.double_when_full and empty == 0:
            wanted = min(max(wanted, 2 * mini_slots), rules.maximum)
        if wanted != mini_slots:
            access.mini_slots[ap] = wanted
            access.shuffled[ap, :wanted] = np.arange(wanted)
    return found, expected


@compiled
def count_and_adapt(
    rules: Rules, world: World, state: State, used: Ints, noted: tuple[Outcome, int]
) -> None:
    """One round of every AP; records the numbers of the first AP."""
    outcome, at = noted
    for ap in range(used.size):
        empty = empty_mini_slots(rules.receiver.detect, ap, used[ap], state.air)
        decoded = 0
        for client in range(world.cell.size):
            if world.cell[client] == ap:
                decoded += outcome.attempts[client, at] - outcome.failures[client, at]
        found, expected = adapt(rules.mini_slots, state.access, ap, empty, decoded)
        if ap == 0:
            outcome.empty[at] = empty
            outcome.estimate[at] = found
            outcome.expected[at] = expected


# --- the DTI ---


@compiled
def data_time_us(rules: Rules, world: World, state: State, ap: int, mini_slots: int) -> float:
    """Data time of each associated client in a beacon interval; 0 without clients."""
    associated = acknowledged = 0
    for client in range(world.cell.size):
        if world.cell[client] == ap and state.clients.trained[client]:
            associated += 1
            acknowledged += state.sent.complete[client]
    left = rules.fixed_us - world.ati_us[associated]
    if rules.protocol == JPOC:
        left -= mini_slots * rules.mini_slot_us + acknowledged * rules.feedback_us
    return float(max(left, 0.0) / max(associated, 1))


@compiled
def share_air_time(
    rng: np.random.Generator, rules: Rules, world: World, state: State, outcome: Outcome
) -> None:
    """Shares the DTI equally, and draws the blocked clients, which have to compete again."""
    clients, mini_slots = state.clients, state.access.mini_slots
    for ap in range(mini_slots.size):
        each = data_time_us(rules, world, state, ap, mini_slots[ap])
        for client in range(world.cell.size):
            if world.cell[client] != ap:
                continue
            clients.blocked[client] = rng.random() < rules.blockage
            if clients.trained[client]:
                outcome.air_time_us[client] += each
                if clients.blocked[client]:
                    clients.trained[client] = False
                else:
                    outcome.delivered_us[client] += each


# --- a realisation ---


@compiled
def new_state(slots: MiniSlotRules, world: World, most: int) -> State:
    """State of newly started APs, with untrained clients."""
    aps, _, count, beams = world.snr.shape
    order = np.zeros((count, beams), np.int64)
    order[:] = np.arange(beams)
    shuffled = np.zeros((aps, most), np.int64)
    shuffled[:] = np.arange(most)
    zeros, flags = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    frames = np.zeros((count, beams), np.int64)
    decoded, gain = np.zeros(count), np.ones(count)
    senders, history = np.zeros((aps, most), np.int64), np.zeros((aps, slots.averaging))
    return State(
        Clients(flags, flags.copy(), zeros, zeros.copy(), zeros.copy(), decoded, gain),
        Sent(order, frames, frames.copy(), np.zeros((count, beams)), zeros.copy(), flags.copy()),
        Air(np.zeros((aps, most)), senders, senders.copy()),
        Access(
            np.full(aps, slots.initial), history, np.zeros(aps, np.int64), np.ones(aps), shuffled
        ),
    )


@compiled
def realise(rng: np.random.Generator, rules: Rules, world: World) -> Outcome:
    """Runs one realisation over all its beacon intervals."""
    count, intervals = world.cell.size, world.present.size
    slotted = rules.slots.all_slots * rules.slots.frames_per_slot
    most = rules.mini_slots.maximum if rules.protocol == JPOC else slotted
    state = new_state(rules.mini_slots, world, most)
    numbers = np.zeros(intervals, np.int64)
    per_client = np.zeros((count, intervals), np.int64)
    outcome = Outcome(
        np.zeros(count), np.zeros(count), per_client, per_client.copy(), np.full(count, -1),
        numbers, np.zeros(intervals), np.zeros(intervals), numbers.copy(), numbers.copy(),
        np.zeros(2, np.int64), np.zeros(1),
    )  # fmt: skip
    for at in range(intervals):
        used = state.access.mini_slots.copy()
        compete(rng, rules, world, state, world.present[at])
        receive(rules.receiver, world, state, outcome.events)
        outcome.mini_slots[at] = used[0] if rules.protocol == JPOC else slotted
        outcome.competitors[at] = np.sum((state.sent.frames > 0) & (world.cell == 0))
        settle(rng, rules, world, state, (outcome, at))
        share_air_time(rng, rules, world, state, outcome)
        if rules.protocol == JPOC:
            count_and_adapt(rules, world, state, used, (outcome, at))
            slotted = used.max()
        state.air.energy[:, :slotted] = 0.0
        state.air.senders[:, :slotted] = 0
        state.air.decodable[:, :slotted] = 0
    return outcome


class Contest(NamedTuple):
    """A-BFTs as (3.6) describes them: clients with equal numbers of good beams."""

    good_beams: int
    clients: int
    mini_slots: int
    capture_on: bool
    capture: float
    """Least ratio of a frame to all others in its mini-slot."""
    low_db: float
    high_db: float
    """With capture, the SNRs of good beams are uniform from `low_db` to `high_db`."""


@compiled
def lost_shares(rng: np.random.Generator, contest: Contest, rounds: int) -> Floats:
    """Share of the clients without a decoded beam in each of `rounds` A-BFTs, (rounds,)."""
    good_beams, clients, mini_slots, capture_on = contest[:4]
    shares = np.zeros(rounds)
    pool = np.arange(mini_slots)
    when = np.zeros((clients, good_beams), np.int64)
    power = np.ones((clients, good_beams))
    for at in range(rounds):
        energy = np.zeros(mini_slots)
        senders = np.zeros(mini_slots, np.int64)
        for client in range(clients):
            shuffle(rng, pool, good_beams)
            for i in range(good_beams):
                if capture_on:
                    snr_db = contest.low_db + (contest.high_db - contest.low_db) * rng.random()
                    power[client, i] = 10.0 ** (snr_db / 10.0)
                when[client, i] = pool[i]
                energy[pool[i]] += power[client, i]
                senders[pool[i]] += 1
        for client in range(clients):
            decoded = False
            for i in range(good_beams):
                mine = power[client, i]
                others = energy[when[client, i]] - mine
                captured = capture_on and mine >= contest.capture * others
                decoded = decoded or senders[when[client, i]] == 1 or captured
            shares[at] += not decoded
        shares[at] /= clients
    return shares
