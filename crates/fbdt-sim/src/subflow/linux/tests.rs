//! What Linux does over links with impairments.

use std::time::Duration;

use super::*;
use crate::START;
use crate::link::{Impairments, LinkParameters, Sleep};
use crate::plain::{PlainOptions, PlainPath};

const MS: Duration = Duration::from_millis(1);
const ENDLESS: u64 = 1 << 40;

fn options(growth: TcpGrowth) -> PlainOptions {
    PlainOptions { growth, paced: true, buffer: u64::MAX, upload: false }
}

fn path(link: LinkParameters, growth: TcpGrowth) -> PlainPath {
    PlainPath::new([link.clone(), link], 5, options(growth))
}

fn impaired(mbps: f64, rtt_ms: f64, impairments: Impairments) -> LinkParameters {
    let queue = MS * 50;
    LinkParameters { impairments, queue, ..LinkParameters::new(mbps, rtt_ms) }
}

/// Mbit/s from the second second to the tenth.
fn goodput(path: &mut PlainPath) -> f64 {
    path.write(ENDLESS);
    path.run(MS * 2000);
    let before = path.delivered();
    path.run(MS * 8000);
    (path.delivered() - before) as f64 / 1e6
}

#[test]
fn both_controls_fill_a_clean_link() {
    for growth in [TcpGrowth::Linux, TcpGrowth::Bbr] {
        for (mbps, rtt) in [(0.3, 40.0), (20.0, 5.0), (50.0, 60.0), (1500.0, 10.0)] {
            let mut path = path(impaired(mbps, rtt, Impairments::default()), growth);
            let goodput = goodput(&mut path);
            assert!(goodput > 0.93 * mbps, "{growth:?}: {goodput} of {mbps} Mbit/s, {rtt} ms");
            assert!(goodput < 1.01 * mbps, "{growth:?}: {goodput} of {mbps} Mbit/s, {rtt} ms");
        }
    }
}

#[test]
fn losses_slow_cubic_down_and_bbr_not() {
    let link = || LinkParameters { loss: 0.02, ..impaired(50.0, 60.0, Impairments::default()) };
    let cubic = goodput(&mut path(link(), TcpGrowth::Linux));
    let bbr = goodput(&mut path(link(), TcpGrowth::Bbr));
    // 1.2 MSS / (RTT sqrt(loss)) is 1.6 Mbit/s.
    assert!((0.8..4.0).contains(&cubic), "{cubic}");
    assert!(bbr > 42.0, "{bbr} of 50 Mbit/s");
}

#[test]
fn segments_that_overtake_each_other_are_not_taken_for_lost_for_long() {
    let impairments = Impairments { jitter: MS * 8, overtaking: true, ..Impairments::default() };
    let mut path = path(impaired(20.0, 40.0, impairments), TcpGrowth::Linux);
    let goodput = goodput(&mut path);
    let sample = path.sample();
    // Each needless recovery begins cubic anew.
    assert!(goodput > 8.0, "{goodput} of 20 Mbit/s, {sample:?}");
    assert!(sample.retransmitted_total > 0, "some are");
    let before = sample.retransmitted_total;
    path.run(MS * 5000);
    let share = (path.sample().retransmitted_total - before) as f64 / (5.0 * goodput * 125e3);
    assert!(share < 0.02, "{share} of what it sends");
}

#[test]
fn tcp_info_shows_jitter_as_deviation_and_the_smallest_rtt() {
    let impairments = Impairments { jitter: MS * 5, overtaking: true, ..Impairments::default() };
    let mut path = path(impaired(20.0, 60.0, impairments), TcpGrowth::Linux);
    // A segment at a time: no queue, no order to wait for.
    let (mut deviations, mut rtts) = (0.0, 0.0);
    for _ in 0..200 {
        path.write(1000);
        path.run(MS * 150);
        let sample = path.sample();
        deviations += sample.rttvar.as_secs_f64() * 5.0;
        rtts += sample.srtt.as_secs_f64() * 5.0;
    }
    // The sum of two draws deviates by 7.1 ms; their mean absolute deviation is 5.6 ms.
    assert!((3.0..7.0).contains(&deviations), "{deviations} ms");
    assert!((59.0..63.0).contains(&rtts), "{rtts} ms");
    assert!(path.sample().min_rtt < MS * 52, "{:?}", path.sample().min_rtt);
}

#[test]
fn a_lost_tail_is_probed_before_the_timer_fires() {
    let mut link = impaired(20.0, 40.0, Impairments::default());
    let mut path = path(link.clone(), TcpGrowth::Linux);
    path.write(20_000);
    path.run(MS * 500);
    path.change(&crate::link::LinkChange::Blackout(true));
    path.write(20_000);
    path.run(MS * 30);
    path.change(&crate::link::LinkChange::Blackout(false));
    let at = path.elapsed();
    assert!(path.run_until(MS * 1000, |path| path.delivered() == 40_000));
    let time = path.elapsed() - at;
    assert!(time < MS * 200, "{time:?}, and the timer needs more than 200 ms");
    link.blackout = true;
}

#[test]
fn an_outage_ends_with_the_timer_and_everything_arrives() {
    for growth in [TcpGrowth::Linux, TcpGrowth::Bbr] {
        let mut path = path(impaired(20.0, 40.0, Impairments::default()), growth);
        path.write(5_000_000);
        path.run(MS * 700);
        path.change(&crate::link::LinkChange::Blackout(true));
        path.run(MS * 1500);
        let before = path.delivered();
        path.change(&crate::link::LinkChange::Blackout(false));
        path.run(MS * 3000);
        let mbps = (path.delivered() - before) as f64 * 8e-6 / 3.0;
        assert!(path.run_until(MS * 4000, |path| path.delivered() == 5_000_000), "{growth:?}");
        assert!(mbps > 7.0, "{growth:?}: {mbps} Mbit/s");
    }
}

#[test]
fn a_policer_and_a_bucket_carry_their_rate() {
    for (policer, growth, least) in [
        (false, TcpGrowth::Linux, 0.95),
        (false, TcpGrowth::Bbr, 0.9),
        (true, TcpGrowth::Linux, 0.6),
        (true, TcpGrowth::Bbr, 0.8),
    ] {
        let impairments = Impairments { policer, burst: 250_000, ..Impairments::default() };
        let goodput = goodput(&mut path(impaired(20.0, 40.0, impairments), growth));
        assert!(goodput > least * 20.0, "{growth:?}, policer {policer}: {goodput} of 20 Mbit/s");
        // What the bucket holds passes once, and again after BBR has probed for the RTT.
        assert!(goodput < 20.8, "{growth:?}, policer {policer}: {goodput} of 20 Mbit/s");
    }
}

#[test]
fn gathered_acknowledgements_do_not_starve_bbr() {
    let up = LinkParameters {
        aggregation: Some((MS * 45, MS * 46)),
        ..impaired(50.0, 4.0, Impairments::default())
    };
    let down = impaired(50.0, 4.0, Impairments::default());
    let mut path = PlainPath::new([up, down], 5, options(TcpGrowth::Bbr));
    let goodput = goodput(&mut path);
    assert!(goodput > 35.0, "{goodput} of 50 Mbit/s");
}

#[test]
fn a_receive_buffer_bounds_the_rate() {
    let link = impaired(50.0, 60.0, Impairments::default());
    let buffer = PlainOptions { buffer: 64 << 10, ..options(TcpGrowth::Linux) };
    let goodput = goodput(&mut PlainPath::new([link.clone(), link], 5, buffer));
    // 64 KiB in 60 ms are 8.7 Mbit/s.
    assert!((7.0..8.8).contains(&goodput), "{goodput}");
}

#[test]
fn what_sleeps_is_late_and_what_shares_has_less() {
    let sleep = Some(Sleep { rest: MS * 100, wake: MS * 150 });
    let mut asleep = path(
        impaired(20.0, 40.0, Impairments { sleep, ..Impairments::default() }),
        TcpGrowth::Linux,
    );
    for (pause, expected) in [(Duration::ZERO, 170.0), (MS * 20, 20.0), (MS * 400, 170.0)] {
        asleep.run(pause);
        let (at, before) = (asleep.elapsed(), asleep.delivered());
        asleep.write(1000);
        assert!(asleep.run_until(MS * 1000, |path| path.delivered() > before));
        let ms = (asleep.elapsed() - at).as_secs_f64() * 1e3;
        assert!((ms - expected).abs() < 2.0, "{ms} instead of {expected} ms");
    }
    for upload in [false, true] {
        let link = impaired(20.0, 40.0, Impairments::default());
        let mut shared = PlainPath::new(
            [link.clone(), link],
            5,
            PlainOptions { upload, ..options(TcpGrowth::Linux) },
        );
        shared.add_tcp_beside(MS * 40, TcpGrowth::Linux, Duration::ZERO);
        let goodput = goodput(&mut shared);
        assert!((5.0..15.0).contains(&goodput), "{goodput} of 20 Mbit/s, upload {upload}");
    }
}

#[test]
fn directions_differ() {
    let slow = impaired(2.0, 40.0, Impairments::default());
    let fast = impaired(30.0, 40.0, Impairments::default());
    for (upload, mbps) in [(true, 2.0), (false, 30.0)] {
        let options = PlainOptions { upload, ..options(TcpGrowth::Linux) };
        let goodput = goodput(&mut PlainPath::new([slow.clone(), fast.clone()], 5, options));
        assert!(goodput > 0.9 * mbps && goodput < 1.02 * mbps, "{goodput} of {mbps}");
    }
    assert!(START > Instant::ZERO);
}

#[test]
fn small_answers_before_a_transfer_do_not_slow_bbr_down() {
    let link = || impaired(50.0, 40.0, Impairments::default());
    let time = |answers: u32| {
        let mut path = path(link(), TcpGrowth::Bbr);
        for _ in 0..answers {
            path.write(40);
            path.run(MS * 100);
        }
        let (at, before) = (path.elapsed(), path.delivered());
        path.write(1_000_000);
        assert!(path.run_until(MS * 3000, |path| path.delivered() >= before + 1_000_000));
        path.elapsed() - at
    };
    let (fresh, after) = (time(0), time(5));
    assert!(after < fresh + MS * 80, "{after:?} instead of {fresh:?}");
}

#[test]
fn a_handshake_measures_jitter_and_gathering_too() {
    let jittery = impaired(20.0, 40.0, Impairments { jitter: MS * 8, ..Impairments::default() });
    let gathering = LinkParameters {
        aggregation: Some((MS * 98, MS * 100)),
        ..impaired(20.0, 40.0, Impairments::default())
    };
    let clean = impaired(20.0, 40.0, Impairments::default());
    let rtt = |back: &LinkParameters| {
        let links = [back.clone(), clean.clone()];
        PlainPath::new(links, 5, options(TcpGrowth::Bbr)).sample().srtt
    };
    assert_eq!(rtt(&clean), MS * 40);
    assert!(rtt(&jittery).abs_diff(MS * 40) > MS / 10, "{:?}", rtt(&jittery));
    assert!(rtt(&gathering) > MS * 41, "{:?}", rtt(&gathering));
}

#[test]
fn bbr_measures_an_old_smallest_rtt_anew() {
    let mut path = path(impaired(20.0, 40.0, Impairments::default()), TcpGrowth::Bbr);
    path.write(ENDLESS);
    let mut small = Vec::new();
    for step in 0..1600 {
        path.run(MS * 10);
        if path.sample().cwnd <= 4 * MSS as u64 {
            small.push(step * 10);
        }
    }
    let (first, last) = (small.first().unwrap(), small.last().unwrap());
    assert!(*first > 8000, "ten seconds after it was measured, not at {first} ms");
    assert!((200..600).contains(&(last - first)), "{first} to {last} ms");
}

#[test]
fn bbr_leaves_lost_segments_no_room() {
    let segments = |count: usize| (count * MSS) as f64;
    let mut control = Control::bbr(START);
    control.window = segments(100);
    control.lose(false, true, 60 * MSS);
    assert_eq!(control.window, segments(61), "what is in flight, and a segment");
    control.lost(10 * MSS);
    assert_eq!(control.window, segments(51));
    control.recovered();
    assert_eq!(control.window, segments(100));
}

#[test]
fn gathered_acknowledgements_end_slow_start_no_sooner_than_many_of_them() {
    let clean = impaired(16.0, 155.0, Impairments::default());
    let up = LinkParameters { aggregation: Some((MS * 68, MS * 70)), ..clean.clone() };
    let mut path = PlainPath::new([up, clean], 5, options(TcpGrowth::Linux));
    path.write(ENDLESS);
    path.run(MS * 1500);
    assert!(path.sample().ssthresh > 48 * MSS as u64, "{:?}", path.sample());
}
