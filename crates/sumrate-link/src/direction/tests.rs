//! The pipeline in virtual time: no socket, no clock.

use std::sync::Arc;

use proptest::prelude::*;

use super::{Pipeline, generator};
use crate::config::parameters::{Parameters, Update};
use crate::config::{Direction, Jitter, QueueLimit, RateSetting};
use crate::packet::Packet;
use crate::packet::buffer::Pool;
use crate::packet::vnet::VNET_HEADER;
use crate::time::{Nanos, SECOND};
use crate::trace::{Step, Trace};

const MS: Nanos = 1_000_000;
/// 1500 bytes in 1 ms.
const RATE: u64 = 12_000_000;

fn packet(bytes: usize) -> Packet {
    let pool = Pool::default();
    let mut scratch = pool.scratch();
    scratch[..VNET_HEADER].fill(0);
    Packet::new(pool.keep(&mut scratch, VNET_HEADER + bytes), 0)
}

/// A TCP super-packet over IPv4: 40 bytes of headers, full segments of 1460.
fn super_packet(segments: usize) -> Packet {
    let pool = Pool::default();
    let mut scratch = pool.scratch();
    let length = VNET_HEADER + 40 + 1460 * segments;
    scratch[..length].fill(0);
    scratch[1] = 1;
    scratch[4..6].copy_from_slice(&1460_u16.to_ne_bytes());
    scratch[VNET_HEADER] = 0x45;
    scratch[VNET_HEADER + 9] = 6;
    scratch[VNET_HEADER + 32] = 5 << 4;
    let packet = Packet::new(pool.keep(&mut scratch, length), 0);
    assert_eq!(packet.segments(), segments);
    packet
}

fn pipeline(parameters: Parameters) -> Pipeline {
    Pipeline::new(0, parameters, generator(1, "test", Direction::AToB))
}

fn limited() -> Parameters {
    Parameters { rate: RateSetting::Constant(RATE), ..Parameters::default() }
}

/// Everything due until `end`, as (time, segments, bytes), run as the run loop would.
fn collect(pipeline: &mut Pipeline, end: Nanos) -> Vec<(Nanos, usize, usize)> {
    let mut out = Vec::new();
    let mut now = 0;
    loop {
        pipeline.advance(now);
        while let Some((due, frame)) = pipeline.pop_due(now) {
            pipeline.sent(&frame, true);
            out.push((due, frame.segments(), frame.wire_bytes()));
        }
        match pipeline.next_deadline() {
            Some(next) if next.max(now + 1) <= end => now = next.max(now + 1),
            _ => break,
        }
    }
    pipeline.advance(end);
    while let Some((due, frame)) = pipeline.pop_due(end) {
        pipeline.sent(&frame, true);
        out.push((due, frame.segments(), frame.wire_bytes()));
    }
    out
}

#[test]
fn an_unlimited_link_is_only_as_late_as_its_delay() {
    let mut pipeline = pipeline(Parameters { delay: 3 * MS, ..Parameters::default() });
    pipeline.arrive(5, super_packet(40));
    assert_eq!(collect(&mut pipeline, SECOND), [(3 * MS + 5, 40, 60_000)]);
}

#[test]
fn packets_are_spaced_by_the_rate() {
    let mut pipeline = pipeline(Parameters { delay: 10 * MS, ..limited() });
    for _ in 0..3 {
        pipeline.arrive(0, packet(1500));
    }
    let times: Vec<Nanos> = collect(&mut pipeline, SECOND).iter().map(|(time, ..)| *time).collect();
    assert_eq!(times, [11 * MS, 12 * MS, 13 * MS]);
}

#[test]
fn a_token_bucket_lets_a_burst_out_and_fills_while_the_line_is_idle() {
    let mut pipeline = pipeline(Parameters { burst: 3 * 1500, ..limited() });
    let times = |sent: Vec<(Nanos, usize, usize)>| -> Vec<Nanos> {
        sent.iter().map(|(time, ..)| *time).collect()
    };
    for _ in 0..5 {
        pipeline.arrive(0, packet(1500));
    }
    assert_eq!(pipeline.queue_bytes(0), 2 * 1500, "three are gone already");
    assert_eq!(times(collect(&mut pipeline, 3 * MS)), [0, 0, 0, MS, 2 * MS]);
    for _ in 0..3 {
        pipeline.arrive(4 * MS, packet(1500));
    }
    // Two milliseconds without a packet are two packets' worth of credit.
    assert_eq!(times(collect(&mut pipeline, SECOND)), [4 * MS, 4 * MS, 5 * MS]);
    let smaller = Update { burst: Some(1500), ..Update::default() };
    pipeline.apply(SECOND, &smaller);
    for _ in 0..2 {
        pipeline.arrive(SECOND, packet(1500));
    }
    assert_eq!(times(collect(&mut pipeline, 2 * SECOND)), [SECOND, SECOND + MS]);
}

#[test]
fn credit_is_no_way_out_of_a_hold() {
    let mut pipeline = pipeline(Parameters { burst: 3 * 1500, ..limited() });
    let hold = |on| Update { hold: Some(on), ..Update::default() };
    pipeline.apply(0, &hold(true));
    pipeline.arrive(MS, packet(1500));
    assert!(collect(&mut pipeline, 50 * MS).is_empty());
    pipeline.apply(50 * MS, &hold(false));
    let times: Vec<Nanos> = collect(&mut pipeline, SECOND).iter().map(|(time, ..)| *time).collect();
    assert_eq!(times, [50 * MS]);
}

#[test]
fn a_super_packet_leaves_in_parts_no_longer_than_its_rate_allows() {
    let mut pipeline = pipeline(Parameters {
        rate: RateSetting::Constant(1_200_000_000),
        ..Parameters::default()
    });
    pipeline.arrive(0, super_packet(40));
    // 10 us a segment, 16 at once.
    assert_eq!(
        collect(&mut pipeline, SECOND),
        [(160_000, 16, 24_000), (320_000, 16, 24_000), (400_000, 8, 12_000)]
    );
}

#[test]
fn a_full_queue_drops_the_tail_segment_by_segment() {
    let mut pipeline = pipeline(Parameters { queue: QueueLimit::Packets(5), ..limited() });
    pipeline.arrive(0, super_packet(8));
    assert_eq!(pipeline.counters().queue_drops, 3);
    let got: usize = collect(&mut pipeline, SECOND).iter().map(|(_, segments, _)| segments).sum();
    assert_eq!(got, 5);
}

#[test]
fn a_queue_in_time_bounds_the_wait() {
    let mut pipeline = pipeline(Parameters { queue: QueueLimit::Time(20 * MS), ..limited() });
    for _ in 0..100 {
        pipeline.arrive(0, packet(1500));
    }
    let last = collect(&mut pipeline, SECOND).last().unwrap().0;
    assert_eq!(last, 21 * MS, "20 ms of waiting and 1 ms of sending");
    assert_eq!(pipeline.counters().queue_drops, 79);
    assert_eq!(pipeline.counters().queue_peak_bytes, 21 * 1500);
}

#[test]
fn loss_splits_a_super_packet_and_is_counted() {
    let mut pipeline = pipeline(Parameters { loss: 0.2, ..Parameters::default() });
    for _ in 0..50 {
        pipeline.arrive(0, super_packet(20));
    }
    let got = collect(&mut pipeline, SECOND);
    let segments: usize = got.iter().map(|(_, segments, _)| segments).sum();
    let counters = pipeline.counters();
    assert_eq!(segments as u64 + counters.lost, 1_000);
    assert!((150..250).contains(&counters.lost), "{}", counters.lost);
    assert!(got.len() > 100, "{} parts", got.len());
}

#[test]
fn a_blackout_drops_what_leaves_the_queue_and_keeps_what_is_in_flight() {
    let mut pipeline = pipeline(Parameters { delay: 10 * MS, ..limited() });
    for _ in 0..4 {
        pipeline.arrive(0, packet(1500));
    }
    let blackout = |on| Update { blackout: Some(on), ..Update::default() };
    pipeline.apply(2 * MS, &blackout(true));
    pipeline.apply(3 * MS + 1, &blackout(false));
    let times: Vec<Nanos> = collect(&mut pipeline, SECOND).iter().map(|(time, ..)| *time).collect();
    assert_eq!(times, [11 * MS, 12 * MS, 14 * MS]);
    assert_eq!(pipeline.counters().blackout_drops, 1);
}

#[test]
fn held_packets_wait_and_then_leave_at_the_rate() {
    let mut pipeline = pipeline(limited());
    let hold = |on| Update { hold: Some(on), ..Update::default() };
    pipeline.apply(0, &hold(true));
    pipeline.arrive(MS, packet(1500));
    pipeline.arrive(2 * MS, packet(1500));
    assert!(collect(&mut pipeline, 50 * MS).is_empty());
    pipeline.apply(50 * MS, &hold(false));
    let times: Vec<Nanos> = collect(&mut pipeline, SECOND).iter().map(|(time, ..)| *time).collect();
    assert_eq!(times, [51 * MS, 52 * MS]);
}

#[test]
fn a_paused_transmitter_sends_what_waited_at_its_rate() {
    for (parameters, expected) in
        [(limited(), [101 * MS, 102 * MS]), (Parameters::default(), [100 * MS, 100 * MS])]
    {
        let mut pipeline = pipeline(parameters);
        assert_eq!(pipeline.busy_until(), Some(0));
        pipeline.pause(100 * MS);
        pipeline.arrive(MS, packet(1500));
        pipeline.arrive(2 * MS, packet(1500));
        assert_eq!(pipeline.busy_until(), None);
        let sent = collect(&mut pipeline, SECOND);
        assert_eq!(sent.iter().map(|(time, ..)| *time).collect::<Vec<_>>(), expected);
        assert_eq!(pipeline.busy_until(), Some(expected[1]));
    }
}

#[test]
fn a_new_rate_holds_for_the_rest_of_the_packet_being_sent() {
    let mut pipeline = pipeline(limited());
    pipeline.arrive(0, packet(1500));
    let faster = Update { rate: Some(RateSetting::Constant(2 * RATE)), ..Update::default() };
    pipeline.apply(MS / 2, &faster);
    let times: Vec<Nanos> = collect(&mut pipeline, SECOND).iter().map(|(time, ..)| *time).collect();
    assert_eq!(times, [MS / 2 + MS / 4]);
}

#[test]
fn a_trace_without_rate_is_waited_out() {
    let steps = vec![Step { duration: MS, rate: RATE }, Step { duration: 9 * MS, rate: 0 }];
    let trace = Arc::new(Trace::new(steps).unwrap());
    let mut pipeline = pipeline(Parameters {
        rate: RateSetting::Trace(trace),
        queue: QueueLimit::Packets(100),
        ..Parameters::default()
    });
    for _ in 0..3 {
        pipeline.arrive(0, packet(1500));
    }
    let times: Vec<Nanos> = collect(&mut pipeline, SECOND).iter().map(|(time, ..)| *time).collect();
    assert_eq!(times, [MS, 11 * MS, 21 * MS]);
}

#[test]
fn each_direction_of_each_link_has_its_own_losses_and_delays_and_a_seed_repeats_them() {
    let pattern = |seed, link: &str, direction| {
        let jitter = Jitter::Normal(5 * MS);
        let parameters = Parameters { loss: 0.5, delay: 20 * MS, jitter, ..Parameters::default() };
        let mut pipeline = Pipeline::new(0, parameters, generator(seed, link, direction));
        pipeline.arrive(0, super_packet(40));
        collect(&mut pipeline, SECOND)
    };
    let one = pattern(1, "wifi", Direction::AToB);
    assert_eq!(one, pattern(1, "wifi", Direction::AToB));
    for other in
        [(1, "wifi", Direction::BToA), (1, "wigig", Direction::AToB), (2, "wifi", Direction::AToB)]
    {
        assert_ne!(one, pattern(other.0, other.1, other.2));
    }
}

#[test]
fn jitter_draws_each_packet_on_the_wire_on_its_own() {
    let varying = |reorder| Parameters {
        delay: 50 * MS,
        jitter: Jitter::Normal(8 * MS),
        reorder,
        ..Parameters::default()
    };
    let mut overtaking = pipeline(varying(true));
    overtaking.arrive(0, super_packet(40));
    let frames = collect(&mut overtaking, SECOND);
    assert_eq!(frames.len(), 40, "each segment has a time of its own");
    let mut ordered = pipeline(varying(false));
    ordered.arrive(0, super_packet(40));
    let frames = collect(&mut ordered, SECOND);
    assert!((2..20).contains(&frames.len()), "segments that wait for one stay with it: {frames:?}");
    assert_eq!(frames.iter().map(|(_, segments, _)| segments).sum::<usize>(), 40);
}

#[test]
fn jitter_has_the_mean_and_the_deviation_that_were_set() {
    for reorder in [false, true] {
        let mut pipeline = pipeline(Parameters {
            delay: 50 * MS,
            jitter: Jitter::Normal(8 * MS),
            reorder,
            ..Parameters::default()
        });
        let mut delays = Vec::new();
        for number in 0..4_000 {
            // So far apart that no packet has to wait for another.
            let now = number * SECOND;
            pipeline.arrive(now, packet(1500));
            while let Some(due) = pipeline.next_deadline() {
                pipeline.advance(due);
                delays.extend(pipeline.pop_due(due).map(|(due, _)| (due - now) as f64 / MS as f64));
            }
        }
        let count = delays.len() as f64;
        let mean = delays.iter().sum::<f64>() / count;
        let variance = delays.iter().map(|delay| (delay - mean).powi(2)).sum::<f64>() / count;
        assert_eq!(count, 4_000.0);
        assert!((mean - 50.0).abs() < 0.5 && (variance.sqrt() - 8.0).abs() < 0.4, "{mean}");
    }
}

#[test]
fn gathered_packets_leave_together() {
    let mut pipeline =
        pipeline(Parameters { gather: 20 * MS, delay: 5 * MS, ..Parameters::default() });
    for now in [0, 1, 7 * MS, 20 * MS, 30 * MS] {
        pipeline.arrive(now, packet(60));
    }
    let times: Vec<Nanos> = collect(&mut pipeline, SECOND).iter().map(|(time, ..)| *time).collect();
    assert_eq!(times, [5 * MS, 25 * MS, 25 * MS, 25 * MS, 45 * MS]);
}

fn policed(burst: u64) -> Parameters {
    Parameters { burst, policer: true, queue: QueueLimit::Packets(1), ..limited() }
}

#[test]
fn a_policer_drops_what_exceeds_the_burst_and_delays_nothing() {
    let mut pipeline = pipeline(Parameters { delay: 3 * MS, ..policed(10 * 1500) });
    pipeline.arrive(0, super_packet(40));
    pipeline.arrive(2 * MS, super_packet(4));
    let frames = collect(&mut pipeline, SECOND);
    assert_eq!(frames, [(3 * MS, 10, 15_000), (5 * MS, 2, 3_000)], "two came back in 2 ms");
    assert_eq!(pipeline.counters().policer_drops, 32);
    assert_eq!(pipeline.counters().queue_drops, 0, "it has no queue");
}

#[test]
fn a_policer_keeps_its_credit_when_something_else_changes() {
    let mut pipeline = pipeline(policed(10 * 1500));
    pipeline.arrive(0, super_packet(10));
    pipeline.apply(MS, &Update { delay: Some(MS), ..Update::default() });
    pipeline.arrive(2 * MS, super_packet(10));
    let passed = |pipeline: &Pipeline| 20 - pipeline.counters().policer_drops;
    assert_eq!(passed(&pipeline), 12);
    let shaper =
        Update { policer: Some(false), queue: Some(QueueLimit::Packets(99)), ..Update::default() };
    pipeline.apply(3 * MS, &shaper);
    pipeline.arrive(3 * MS, super_packet(30));
    assert_eq!(passed(&pipeline), 12, "a shaper queues instead");
}

#[test]
fn a_hold_stops_a_policed_link_and_keeps_what_passed() {
    let mut pipeline = pipeline(Parameters { hold: true, ..policed(10 * 1500) });
    pipeline.arrive(0, super_packet(8));
    assert!(collect(&mut pipeline, SECOND).is_empty());
    pipeline.apply(SECOND, &Update { hold: Some(false), ..Update::default() });
    let released = collect(&mut pipeline, 2 * SECOND);
    assert!(released.iter().all(|(time, ..)| *time == SECOND), "{released:?}");
    assert_eq!(released.iter().map(|(_, segments, _)| segments).sum::<usize>(), 8);
}

/// An operation on a pipeline.
#[derive(Clone, Debug)]
enum Operation {
    Plain(usize),
    Super(usize),
    Set(Update),
}

fn operations() -> impl Strategy<Value = Vec<(Nanos, Operation)>> {
    let rate = prop_oneof![
        Just(RateSetting::Unlimited),
        (100_000_u64..3_000_000_000).prop_map(RateSetting::Constant)
    ];
    let queue = prop_oneof![
        (0..50 * MS).prop_map(QueueLimit::Time),
        (1_u64..200).prop_map(QueueLimit::Packets)
    ];
    let jitter =
        prop_oneof![(0..5 * MS).prop_map(Jitter::Uniform), (0..20 * MS).prop_map(Jitter::Normal)];
    let update = (
        proptest::option::of(rate),
        proptest::option::of(0_u64..200_000),
        proptest::option::of(0..30 * MS),
        proptest::option::of(jitter),
        proptest::option::of(queue),
        proptest::option::of(0.0..0.5),
        proptest::option::of(1.0..8.0),
        any::<[Option<bool>; 4]>(),
        proptest::option::of(0..50 * MS),
    )
        .prop_map(|(rate, burst, delay, jitter, queue, loss, loss_burst, switches, gather)| {
            let [blackout, hold, policer, reorder] = switches;
            Update {
                rate,
                burst,
                policer,
                delay,
                jitter,
                reorder,
                gather,
                queue,
                loss,
                loss_burst,
                blackout,
                hold,
            }
        });
    let operation = prop_oneof![
        3 => (40_usize..1500).prop_map(Operation::Plain),
        3 => (2_usize..44).prop_map(Operation::Super),
        1 => update.prop_map(Operation::Set),
    ];
    proptest::collection::vec((0..3 * MS, operation), 1..60)
}

proptest! {
    /// Every segment that came in is delivered, counted as dropped, or still there; times of delivery never go back.
    #[test]
    fn every_segment_is_accounted_for(operations in operations()) {
        let mut pipeline = pipeline(limited());
        let (mut now, mut last) = (0, 0);
        for (gap, operation) in operations {
            now += gap;
            match operation {
                Operation::Plain(bytes) => pipeline.arrive(now, packet(bytes)),
                Operation::Super(segments) => pipeline.arrive(now, super_packet(segments)),
                Operation::Set(update) => pipeline.apply(now, &update),
            }
            pipeline.advance(now);
            while let Some((due, frame)) = pipeline.pop_due(now) {
                prop_assert!(due >= last && due <= now);
                last = due;
                pipeline.sent(&frame, true);
            }
        }
        let release = Update { hold: Some(false), rate: Some(RateSetting::Unlimited), ..Update::default() };
        pipeline.apply(now, &release);
        collect(&mut pipeline, now + SECOND);
        prop_assert_eq!(pipeline.queue_bytes(now + SECOND), 0);
        let counters = pipeline.counters();
        let dropped = counters.lost + counters.queue_drops + counters.policer_drops + counters.blackout_drops;
        let gone = counters.segments_out + dropped;
        prop_assert_eq!(counters.segments_in, gone);
        prop_assert!(counters.bytes_out <= counters.bytes_in);
    }

    /// From any moment on, no more is delivered than the bucket holds and the rate brings.
    #[test]
    fn a_burst_is_never_exceeded(burst in 0_u64..300_000, rate in 1_000_000_u64..2_000_000_000, gaps in proptest::collection::vec((0..20 * MS, 2_usize..44), 1..10)) {
        let mut pipeline = pipeline(Parameters {
            rate: RateSetting::Constant(rate),
            burst,
            queue: QueueLimit::Packets(10_000),
            ..Parameters::default()
        });
        let (mut now, mut sent) = (0, 0);
        for (gap, segments) in gaps {
            now += gap;
            pipeline.arrive(now, super_packet(segments));
            sent += segments * 1500;
        }
        let got = collect(&mut pipeline, 100 * SECOND);
        prop_assert_eq!(got.iter().map(|(_, _, bytes)| bytes).sum::<usize>(), sent);
        for (first, (from, ..)) in got.iter().enumerate() {
            let mut bits = 0_u128;
            for (time, _, bytes) in &got[first..] {
                bits += *bytes as u128 * 8;
                let part = u128::from(16 * 1500_u64 * 8);
                let brought = u128::from(rate) * u128::from(time - from + got.len() as u64);
                let most = u128::from(burst) * 8 + part + brought / u128::from(SECOND);
                prop_assert!(bits <= most, "{bits} of {most} bits");
            }
        }
    }

    /// In no window does a policer let more pass than the burst and the rate allow, and what fits always passes.
    #[test]
    fn a_policer_passes_the_burst_and_the_rate(burst in 1500_u64..300_000, rate in 60_000_u64..2_000_000_000, gaps in proptest::collection::vec((0..5 * MS, 1_usize..44), 1..60)) {
        let rate_setting = RateSetting::Constant(rate);
        let mut pipeline = pipeline(Parameters { rate: rate_setting, ..policed(burst) });
        let (mut now, mut credit) = (0, u128::from(burst) * 8 * u128::from(SECOND));
        let (full, mut passed, mut frames) = (credit, 0, Vec::new());
        for (gap, segments) in gaps {
            now += gap;
            credit = full.min(credit + u128::from(rate) * u128::from(gap));
            pipeline.arrive(now, if segments == 1 { packet(1500) } else { super_packet(segments) });
            pipeline.advance(now);
            let mut bytes = 0;
            while let Some((due, frame)) = pipeline.pop_due(now) {
                prop_assert_eq!(due, now, "nothing is delayed");
                bytes += frame.wire_bytes();
                frames.push((now, frame.wire_bytes()));
            }
            passed += bytes / 1500;
            let fits = usize::try_from(credit / (1500 * 8 * u128::from(SECOND))).unwrap().min(segments);
            // Credit is counted in whole bits: the last segment may miss one.
            prop_assert!(bytes == fits * 1500 || bytes + 1500 == fits * 1500, "{} of {}", bytes, fits);
            credit -= bytes as u128 * 8 * u128::from(SECOND);
        }
        for (first, (from, _)) in frames.iter().enumerate() {
            let mut bits = 0_u128;
            for (time, bytes) in &frames[first..] {
                bits += *bytes as u128 * 8;
                let brought = u128::from(rate) * u128::from(time - from) / u128::from(SECOND);
                prop_assert!(bits <= u128::from(burst) * 8 + brought + 1, "{} bits", bits);
            }
        }
        let counters = pipeline.counters();
        prop_assert_eq!(counters.segments_in, passed as u64 + counters.policer_drops);
    }

    /// Small and frequent packets get the whole rate of a policer: rounding does not add up.
    #[test]
    fn a_policer_loses_nothing_to_rounding(rate in 60_000_u64..5_000_000, gap in 1_000_u64..30_000) {
        let mut pipeline = pipeline(Parameters { rate: RateSetting::Constant(rate), ..policed(100) });
        let (end, small) = (SECOND / 50, packet(1));
        for now in (0..end).step_by(usize::try_from(gap).unwrap()) {
            pipeline.arrive(now, small.clone());
        }
        let passed = (pipeline.counters().segments_in - pipeline.counters().policer_drops) * 8;
        let offered = pipeline.counters().segments_in * 8;
        let allowed = (800 + rate / 50).min(offered);
        prop_assert!(passed <= allowed + 8 && passed + 16 + rate * gap / SECOND >= allowed, "{} of {}", passed, allowed);
    }

    /// Without `reorder`, packets arrive as they were sent, whatever their jitter; with it, all of them still arrive.
    #[test]
    fn order_is_kept_unless_packets_may_overtake(reorder: bool, deviation in 0..50 * MS, gather in 0..20 * MS, gaps in proptest::collection::vec(0..3 * MS, 2..80)) {
        let mut pipeline = pipeline(Parameters {
            delay: 20 * MS,
            jitter: Jitter::Normal(deviation),
            reorder,
            gather,
            ..Parameters::default()
        });
        let mut now = 0;
        for (number, gap) in gaps.iter().enumerate() {
            now += gap;
            pipeline.arrive(now, packet(100 + number));
        }
        let mut sizes: Vec<usize> = collect(&mut pipeline, 10 * SECOND).iter().map(|(.., bytes)| *bytes).collect();
        if reorder {
            sizes.sort_unstable();
        }
        prop_assert_eq!(sizes, (100..100 + gaps.len()).collect::<Vec<_>>());
    }

    /// No window of deliveries carries more than the rate allows, give or take one part.
    #[test]
    fn the_rate_is_never_exceeded(rate in 1_000_000_u64..2_000_000_000, sizes in proptest::collection::vec(2_usize..44, 1..20)) {
        let mut pipeline = pipeline(Parameters {
            rate: RateSetting::Constant(rate),
            queue: QueueLimit::Packets(10_000),
            ..Parameters::default()
        });
        let mut sent = 0;
        for segments in sizes {
            pipeline.arrive(0, super_packet(segments));
            sent += segments * 1500;
        }
        let got = collect(&mut pipeline, 100 * SECOND);
        let mut bits = 0_u128;
        for (time, _, bytes) in &got {
            bits += *bytes as u128 * 8;
            prop_assert!(bits * u128::from(SECOND) <= u128::from(rate) * u128::from(*time + got.len() as u64));
        }
        prop_assert_eq!(bits, sent as u128 * 8);
        let ideal = bits * u128::from(SECOND) / u128::from(rate);
        let last = u128::from(got.last().unwrap().0);
        prop_assert!(last <= ideal && ideal - last <= got.len() as u128, "{} for {}", last, ideal);
    }
}
