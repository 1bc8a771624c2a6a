//! The emulated TCP against what a kernel's does.

use super::*;
use crate::link::LinkParameters;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Found by random operations, shrunk to an idle stream whose path went
/// dark in one direction: acknowledgements that fell due in the blackout
/// were there when it ended, as RTT samples as long as the blackout. The
/// old subflow so showed life, was not replaced, and then looked too late
/// for anything.
#[test]
fn acknowledgements_that_are_due_in_a_blackout_are_lost() {
    let link = |seed| Link::new(LinkParameters::new(10.0, 20.0), ChaCha8Rng::seed_from_u64(seed));
    let (mut there, mut back) = (link(1), link(2));
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    let mut tcp = BurstTcp::new(at(0), Duration::from_millis(20), TcpGrowth::Brisk);
    let mut got = Vec::new();
    tcp.write(&[7; 1000]);
    tcp.pump(at(0), &mut there);
    for ms in 1..6000 {
        back.parameters.blackout = (12..1000).contains(&ms);
        tcp.deliver(at(ms), &there, &mut got);
        tcp.advance(at(ms), &mut there, &back);
    }
    assert_eq!(got, [7; 1000], "sent again, it arrives once");
    assert!(tcp.flight.is_empty(), "it is acknowledged in the end");
    assert!(tcp.srtt < Duration::from_millis(30), "{:?}", tcp.srtt);
}

#[test]
fn what_was_written_first_does_not_wait_for_what_is_sent_with_it() {
    let random = ChaCha8Rng::seed_from_u64(1);
    let mut link = Link::new(LinkParameters::new(30.0, 4.0), random);
    let at = |us| Instant::ZERO + Duration::from_micros(us);
    let mut tcp = BurstTcp::new(at(0), Duration::from_millis(4), TcpGrowth::Brisk);
    tcp.write(&[7; 8 * MSS]);
    tcp.pump(at(0), &mut link);
    let mut got = Vec::new();
    // 3.75 bytes take a microsecond, and 2 ms the way.
    for (us, segments) in [(2000, 0), (2390, 1), (3000, 2), (5000, 7), (5100, 8)] {
        tcp.deliver(at(us), &link, &mut got);
        assert_eq!(got.len(), segments * MSS, "after {us} us");
    }
    let mut events = 0;
    let mut tcp = BurstTcp::new(at(0), Duration::from_millis(4), TcpGrowth::Brisk);
    tcp.write(&[7; 8 * MSS]);
    tcp.pump(at(0), &mut link);
    got.clear();
    while got.len() < 8 * MSS {
        let now = tcp.next_event(&link).expect("the rest arrives");
        tcp.deliver(now, &link, &mut got);
        events += 1;
        assert_eq!(got.len(), (events * PART).min(8 * MSS));
    }
    assert_eq!(events, 2);
}

/// A TCP that always has something to send, over a link and back; until then, in steps of 1 ms.
fn endless(parameters: LinkParameters, until_ms: u64, mut each: impl FnMut(u64, &BurstTcp)) {
    let link = |seed| Link::new(parameters.clone(), ChaCha8Rng::seed_from_u64(seed));
    let (mut there, back) = (link(1), link(2));
    let rtt = parameters.delay * 2;
    let mut tcp = BurstTcp::new(Instant::ZERO, rtt, TcpGrowth::Brisk);
    tcp.pace(true);
    let mut got = Vec::new();
    for us in (0..until_ms * 1000).step_by(250) {
        let now = Instant::ZERO + Duration::from_micros(us);
        while tcp.has_room() {
            tcp.write(&[7; 4096]);
        }
        tcp.advance(now, &mut there, &back);
        tcp.deliver(now, &there, &mut got);
        got.clear();
        tcp.pump(now, &mut there);
        each(us, &tcp);
    }
}

#[test]
fn what_a_full_queue_drops_and_is_sent_again_makes_no_link_faster() {
    for mbps in [2.0, 5.5, 55.0] {
        let link = LinkParameters::new(mbps, 2.0);
        let (rate, mut most, mut acked) = (link.rate, 0.0, 0);
        let mut dropped = false;
        endless(link, 4000, |us, tcp| {
            if us == 1_000_000 {
                acked = tcp.acked;
            }
            if us > 1_000_000 {
                most = tcp.rate.rate().max(most);
                dropped |= tcp.retransmitted > 0;
            }
            if us == 3_999_750 {
                let carried = (tcp.acked - acked) as f64 / 3.0;
                assert!((0.9..1.05).contains(&(carried / rate)), "{carried} of {rate}");
            }
        });
        assert!(dropped, "the queue was full at {mbps} Mbit/s");
        assert!(most < 1.1 * rate, "a sample of {most} over {rate}");
    }
}

#[test]
fn slow_start_ends_where_the_queue_begins() {
    let link =
        LinkParameters { queue: Duration::from_millis(100), ..LinkParameters::new(50.0, 50.0) };
    let product = link.rate * 0.05;
    let mut ended = None;
    endless(link, 2000, |us, tcp| {
        if tcp.threshold < f64::MAX && ended.is_none() {
            ended = Some((us, tcp.threshold, tcp.retransmitted));
        }
    });
    let (_, window, lost) = ended.expect("it ends");
    assert_eq!(lost, 0, "by delay and not by loss");
    assert!((0.5..2.5).contains(&(window / product)), "{window} of {product}");
}

#[test]
fn what_is_lost_and_lost_again_is_sent_until_it_arrives() {
    let link = LinkParameters { loss: 0.05, ..LinkParameters::new(30.0, 4.0) };
    let (mut before, rate) = (0, link.rate);
    endless(link, 20_000, |us, tcp| {
        if us % 1_000_000 == 999_750 {
            let carried = (tcp.acked - before) as f64;
            assert!(carried > 0.3 * rate, "{carried} of {rate} in {us}: {tcp:?}");
            before = tcp.acked;
        }
    });
}
