"""The compiled inner loops: one realisation of initial access over all its beacon intervals.

Everything here is compiled by numba and kept on disk. It is one file because a compiled function
that is kept does not notice when another file changes. Powers are linear and relative to the noise
(an SNR), times are in us, and randomness comes from the generator that is passed in.
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
"""How far feedback may move the mini-slots from (3.7)."""


class Rules(NamedTuple):
    """All numbers of a run; ratios are linear."""

    protocol: int
    slots: int
    """802.11: slots of the A-BFT."""
    frames: int
    """802.11: frames of a slot."""
    random_order: bool
    """802.11: every client sweeps its beams in an order of its own, new in every sweep."""
    retry_limit: int
    """RSSRetryLimit: consecutive failures before a client backs off; negative: never."""
    backoff: int
    """RSSBackoff: a client that backs off sits out 0 to this many A-BFTs less one."""
    decode: float
    """Least SINR of a decoded frame."""
    capture: float
    """Least ratio of a frame to all others in its mini-slot."""
    capture_on: bool
    """If off, another decodable frame in the mini-slot destroys both."""
    detect: float
    """Least energy over noise of a mini-slot that does not count as empty."""
    good_beams: float
    occupied_beams: float
    """JPOC: K as exponent and K in p and (3.8); the same in the thesis."""
    target_failure: float
    initial: int
    minimum: int
    maximum: int
    """JPOC: mini-slots at first, at least, at most."""
    adapt: bool
    """JPOC: whether the AP adapts the mini-slots."""
    averaging: int
    feedback: float
    """JPOC: gain with which inferred failures change the mini-slots; 0: not at all."""
    double_when_full: bool
    """JPOC: without an empty mini-slot, at least twice as many follow."""
    ramp_db: float
    """Power added for each consecutive failure, up to the client's maximum."""
    error_db: float
    """Standard deviation of the error of each power setting."""
    blockage: float
    """Probability that a client is blocked in a beacon interval."""
    blocked_sweep: bool
    """Whether a client that was blocked sweeps over the blocked channel as well."""
    always_compete: bool
    """Whether all present clients compete in every A-BFT."""
    fixed_us: float
    """Beacon interval less BTI, gaps, and the part of the A-BFT that does not vary."""
    mini_slot_us: float
    feedback_us: float
    """JPOC: duration of a mini-slot, and of the feedback to one client."""


class Clients(NamedTuple):
    """State of the clients of a realisation; arrays over clients."""

    trained: Flags
    blocked: Flags
    failures: Ints
    """Consecutive ones."""
    wait: Ints
    progress: Ints
    """Beams of the current sweep that were sent in earlier A-BFTs."""
    heard: Floats
    """Best SNR decoded in the current sweep, 0 if none was."""
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
    """What the APs receive, per AP and mini-slot."""

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
    """(APs,): how many estimates were made."""
    scale: Floats
    """(APs,): mini-slots over what (3.7) says; 1 without feedback."""
    shuffled: Ints
    """(APs, most mini-slots): a permutation to draw mini-slots from."""


class World(NamedTuple):
    """What a realisation is given."""

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
    """Clients that are there in each interval, the first ones, (intervals,)."""
    ati_us: Floats
    """Duration of the ATI by number of associated clients, (clients + 1,)."""


class State(NamedTuple):
    """What changes in a realisation."""

    clients: Clients
    sent: Sent
    air: Air
    access: Access


class Outcome(NamedTuple):
    """What happened in a realisation."""

    air_time_us: Floats
    """(clients,): allocated in the DTI."""
    delivered_us: Floats
    """(clients,): of that, while not blocked."""
    attempts: Ints
    failures: Ints
    """(clients, intervals): whether a sweep ended, and whether it ended unheard."""
    first: Ints
    """(clients,): beacon interval of the first success, -1 if there was none."""
    mini_slots: Ints
    estimate: Floats
    expected: Floats
    empty: Ints
    """(intervals,): of the first AP; estimates are 0 under 802.11."""
    competitors: Ints
    """(intervals,): clients of the first AP that sent a frame."""
    events: Ints
    """Frames that would have been decoded alone and were not, and frames that were decoded although
    others were sent in their mini-slot."""
    loss_db: Floats
    """(1,): sum over successes of the best beam's SNR over the best decoded one's."""


def compiled(function: Function) -> Function:
    """The function as machine code; it is compiled at its first call and kept on disk.

    Where neither this folder nor the user's cache can be written, it is compiled in every process.
    """
    try:
        return cast(Function, njit(cache=True, nogil=True)(function))
    except RuntimeError:  # numba finds no folder for its cache
        return cast(Function, njit(nogil=True)(function))


# --- who sends what, and when ---


@compiled
def shuffle(rng: np.random.Generator, values: Ints, drawn: int) -> None:
    """Brings `drawn` values, drawn at random without replacement, to the front."""
    for i in range(drawn):
        j = i + int(rng.random() * (values.size - i))
        values[i], values[j] = values[j], values[i]


@compiled
def sweep_in_slots(
    rng: np.random.Generator, rules: Rules, world: World, state: State, client: int
) -> None:
    """802.11: the client's frames fill a slot drawn at random, and those that follow it.

    What does not fit before the end of the A-BFT is resumed in the next one.
    """
    clients, sent, beams = state.clients, state.sent, world.beams[client]
    if clients.wait[client] > 0:
        clients.wait[client] -= 1
        return
    done = clients.progress[client]
    if done == 0 and rules.random_order:
        shuffle(rng, sent.order[client, :beams], beams)
    slot = int(rng.random() * rules.slots)
    count = 0
    while done < beams and slot < rules.slots:
        fitting = min(rules.frames, beams - done)
        for i in range(fitting):
            sent.when[client, count] = slot * rules.frames + i
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

    With fewer mini-slots than beams, as many beams as there are mini-slots, drawn at random.
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
    """The power of an A-BFT: the controlled one, its error, the ramp; never above the maximum."""
    power_db = offset_db + rules.ramp_db * clients.failures[client]
    if rules.error_db > 0.0:
        power_db += rules.error_db * rng.standard_normal()
    clients.gain[client] = 10.0 ** (min(0.0, power_db) / 10.0)


@compiled
def transmit(decode: float, world: World, state: State, client: int, blocked: int) -> None:
    """Adds a client's frames to what every AP receives."""
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
    """Everyone who has to sends the frames of one A-BFT."""
    clients = state.clients
    for client in range(world.cell.size):
        state.sent.frames[client] = 0
        state.sent.complete[client] = False
        if client >= present or (clients.trained[client] and not rules.always_compete):
            continue
        if rules.protocol == JPOC:
            sweep_in_mini_slots(rng, world, state, client)
        else:
            sweep_in_slots(rng, rules, world, state, client)
        if state.sent.frames[client] > 0:
            blocked = int(clients.blocked[client] and rules.blocked_sweep)
            set_power(rng, rules, world.offset_db[blocked, client], clients, client)
            transmit(rules.decode, world, state, client, blocked)


# --- what the AP hears ---


@compiled
def is_decoded(rules: Rules, power: float, energy: float, senders: int, decodable: int) -> bool:
    """Whether a frame of this SNR is decoded in a mini-slot with this energy."""
    if power < rules.decode:
        return False
    if senders == 1:
        return True
    others = max(energy - power, 0.0)
    if power < rules.decode * (1.0 + others):
        return False
    return power >= rules.capture * others if rules.capture_on else decodable == 1


@compiled
def receive(rules: Rules, world: World, state: State, events: Ints) -> None:
    """Notes every client's best frame that its AP decodes, and counts collisions and captures."""
    sent, air = state.sent, state.air
    for client in range(world.cell.size):
        ap = world.cell[client]
        for i in range(sent.frames[client]):
            at, power = sent.when[client, i], sent.power[client, i]
            senders = air.senders[ap, at]
            if is_decoded(rules, power, air.energy[ap, at], senders, air.decodable[ap, at]):
                state.clients.heard[client] = max(state.clients.heard[client], power)
                events[1] += senders > 1
            elif power >= rules.decode:
                events[0] += 1


@compiled
def empty_mini_slots(detect: float, ap: int, mini_slots: int, air: Air) -> int:
    """Mini-slots in which the AP detects no energy."""
    empty = 0
    for when in range(mini_slots):
        empty += air.energy[ap, when] < detect
    return empty


@compiled
def beam_loss_db(world: World, state: State, client: int, blocked: int) -> float:
    """How much stronger the best beam is than the best one heard, dB."""
    best = 0.0
    for beam in range(world.beams[client]):
        best = max(best, world.snr[world.cell[client], blocked, client, beam])
    heard = state.clients.heard[client]
    return 10.0 * math.log10(best * state.clients.gain[client] / heard)


@compiled
def settle(
    rng: np.random.Generator, rules: Rules, world: World, state: State, found: tuple[Outcome, int]
) -> None:
    """Who ended a sweep is trained or has failed."""
    clients, (outcome, at) = state.clients, found
    for client in range(world.cell.size):
        if not state.sent.complete[client]:
            continue
        outcome.attempts[client, at] = 1
        if clients.heard[client] > 0.0:
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
            if 0 <= rules.retry_limit < clients.failures[client]:
                clients.wait[client] = int(rng.random() * rules.backoff)
        clients.heard[client] = 0.0


# --- JPOC's AP: estimates the clients and sets the next number of mini-slots ---


@compiled
def estimate(rules: Rules, empty: int, mini_slots: int) -> float:
    """(3.8); with no empty mini-slot, half of one is taken as empty."""
    occupied = min(rules.occupied_beams, mini_slots - 0.5)
    return math.log(max(float(empty), 0.5) / mini_slots) / math.log(1.0 - occupied / mini_slots)


@compiled
def next_mini_slots(rules: Rules, expected: float, scale: float) -> int:
    """(3.7) for a real-valued number of clients, between the least and the largest M."""
    if expected <= 1.0:
        return rules.minimum
    free = 1.0 - rules.target_failure ** (1.0 / rules.good_beams)
    wanted = scale * rules.occupied_beams / (1.0 - free ** (1.0 / (expected - 1.0)))
    return int(min(max(math.ceil(wanted), rules.minimum), rules.maximum))


@compiled
def adapt(rules: Rules, access: Access, ap: int, empty: int, heard: int) -> tuple[float, float]:
    """One round of the AP's loop (thesis, Sec. 3.2.2); estimate and mean of the last T.

    With feedback, an extension: clients estimated less clients heard are those that failed, and
    the mini-slots grow or shrink until their share is the target.
    """
    mini_slots = access.mini_slots[ap]
    found = estimate(rules, empty, mini_slots)
    access.history[ap, access.rounds[ap] % rules.averaging] = found
    access.rounds[ap] += 1
    known = min(access.rounds[ap], rules.averaging)
    expected = float(np.mean(access.history[ap, :known]))
    if rules.feedback > 0.0:
        missed = ((1.0 - rules.target_failure) * found - heard) / max(expected, 1.0)
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
    """One round of every AP; the first one's numbers are noted."""
    outcome, at = noted
    for ap in range(used.size):
        empty = empty_mini_slots(rules.detect, ap, used[ap], state.air)
        heard = 0
        for client in range(world.cell.size):
            if world.cell[client] == ap:
                heard += outcome.attempts[client, at] - outcome.failures[client, at]
        found, expected = adapt(rules, state.access, ap, empty, heard)
        if ap == 0:
            outcome.empty[at] = empty
            outcome.estimate[at] = found
            outcome.expected[at] = expected


# --- the DTI ---


@compiled
def data_time_us(rules: Rules, world: World, state: State, ap: int, mini_slots: int) -> float:
    """What is left of the beacon interval for each associated client; 0 if there is none."""
    associated = heard = 0
    for client in range(world.cell.size):
        if world.cell[client] == ap and state.clients.trained[client]:
            associated += 1
            heard += state.sent.complete[client]
    left = rules.fixed_us - world.ati_us[associated]
    if rules.protocol == JPOC:
        left -= mini_slots * rules.mini_slot_us + heard * rules.feedback_us
    return float(max(left, 0.0) / max(associated, 1))


@compiled
def share_air_time(
    rng: np.random.Generator, rules: Rules, world: World, state: State, outcome: Outcome
) -> None:
    """Time-fair TDMA, and who is blocked meanwhile and has to compete again."""
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
def new_state(rules: Rules, world: World, most: int) -> State:
    """Nobody is trained, nothing was sent, the APs were just switched on."""
    aps, _, count, beams = world.snr.shape
    order = np.zeros((count, beams), np.int64)
    for client in range(count):
        order[client] = np.arange(beams)
    shuffled = np.zeros((aps, most), np.int64)
    for ap in range(aps):
        shuffled[ap] = np.arange(most)
    zeros, flags = np.zeros(count, np.int64), np.zeros(count, np.bool_)
    frames = np.zeros((count, beams), np.int64)
    heard, gain = np.zeros(count), np.ones(count)
    return State(
        Clients(flags, flags.copy(), zeros, zeros.copy(), zeros.copy(), heard, gain),
        Sent(order, frames, frames.copy(), np.zeros((count, beams)), zeros.copy(), flags.copy()),
        Air(
            np.zeros((aps, most)),
            np.zeros((aps, most), np.int64),
            np.zeros((aps, most), np.int64),
        ),
        Access(
            np.full(aps, rules.initial),
            np.zeros((aps, rules.averaging)),
            np.zeros(aps, np.int64),
            np.ones(aps),
            shuffled,
        ),
    )


@compiled
def realise(rng: np.random.Generator, rules: Rules, world: World) -> Outcome:
    """Runs one realisation over all its beacon intervals."""
    count, intervals = world.cell.size, world.present.size
    slotted = rules.slots * rules.frames
    state = new_state(rules, world, rules.maximum if rules.protocol == JPOC else slotted)
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
        receive(rules, world, state, outcome.events)
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
    """A-BFTs in the terms of (3.6): so many clients with so many good beams each, nothing else."""

    good_beams: int
    clients: int
    mini_slots: int
    capture_on: bool
    capture: float
    """Least ratio of a frame to all others in its mini-slot."""
    low_db: float
    high_db: float
    """With capture, the good beams' SNRs are spread evenly between these."""


@compiled
def lost_shares(rng: np.random.Generator, contest: Contest, rounds: int) -> Floats:
    """Share of the clients that are not heard, in each of `rounds` A-BFTs, shape (rounds,)."""
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
            heard = False
            for i in range(good_beams):
                mine = power[client, i]
                others = energy[when[client, i]] - mine
                captured = capture_on and mine >= contest.capture * others
                heard = heard or senders[when[client, i]] == 1 or captured
            shares[at] += not heard
        shares[at] /= clients
    return shares
