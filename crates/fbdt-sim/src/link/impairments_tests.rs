//! Each impairment by itself.

use super::*;
use crate::START;
use crate::link::{Crossing, Link, LinkParameters};
use rand::SeedableRng;

const MS: Duration = Duration::from_millis(1);

fn at(ms: f64) -> Instant {
    START + Duration::from_secs_f64(ms / 1e3)
}

/// A link of 11.584 Mbit/s, a segment in a millisecond, with a one-way delay of 10 ms.
fn link(impairments: Impairments) -> Link {
    let parameters = LinkParameters { impairments, ..LinkParameters::new(11.584, 20.0) };
    Link::new(parameters, ChaCha8Rng::seed_from_u64(7))
}

fn cross(link: &mut Link, ms: f64, segments: usize) -> Crossing {
    link.cross(at(ms), segments * MSS).unwrap()
}

/// The only segments that are lost.
fn lost(crossing: &Crossing) -> (usize, usize) {
    assert_eq!(crossing.lost.len(), 1, "{crossing:?}");
    (crossing.lost[0].start / MSS, crossing.lost[0].end / MSS)
}

fn since(at: Instant, from: f64) -> f64 {
    at.saturating_since(self::at(from)).as_secs_f64() * 1e3
}

fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let square = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (mean, (square / values.len() as f64).sqrt())
}

#[test]
fn without_impairments_a_burst_takes_its_time_and_the_delay() {
    let mut link = link(Impairments::default());
    let crossing = cross(&mut link, 0.0, 4);
    assert!((since(crossing.first, 0.0) - 10.0).abs() < 1e-3);
    assert!((since(crossing.last, 0.0) - 14.0).abs() < 1e-3);
    assert!(crossing.lost.is_empty());
}

#[test]
fn jitter_has_its_mean_and_deviation_and_overtakes_if_it_may() {
    let jitter = Impairments { jitter: MS * 2, overtaking: true, ..Impairments::default() };
    let mut free = link(jitter.clone());
    let mut ordered = link(Impairments { overtaking: false, ..jitter });
    let (mut delays, mut acks, mut overtaken) = (Vec::new(), Vec::new(), 0);
    let (mut last, mut before) = (Instant::ZERO, Instant::ZERO);
    for step in 0..20_000 {
        let ms = f64::from(step) * 3.0;
        let crossing = cross(&mut free, ms, 1);
        delays.push(since(crossing.last, ms) - 1.0);
        acks.push(since(free.cross_back(at(ms)), ms));
        overtaken += usize::from(crossing.last < last);
        last = crossing.last;
        let arrives = cross(&mut ordered, ms, 1).last;
        assert!(arrives >= before, "in order");
        before = arrives;
    }
    for values in [delays, acks] {
        let (mean, deviation) = mean_and_deviation(&values);
        assert!((mean - 10.0).abs() < 0.05, "{mean}");
        assert!((deviation - 2.0).abs() < 0.05, "{deviation}");
    }
    assert!(overtaken > 2000, "{overtaken} of 20000");
}

#[test]
fn a_delay_is_never_negative() {
    let jitter = MS * 40;
    let mut link = link(Impairments { jitter, overtaking: true, ..Impairments::default() });
    let none = (0..1000).filter(|step| {
        let ms = f64::from(*step) * 3.0;
        let delay = since(cross(&mut link, ms, 1).last, ms) - 1.0;
        assert!(delay > -1e-3, "{delay}");
        delay < 1e-3
    });
    let none = none.count();
    // P(N < -10 / 40) = 0.40
    assert!((350..450).contains(&none), "{none} of 1000");
}

#[test]
fn the_last_byte_of_a_long_burst_has_the_greatest_of_many_delays() {
    // A thousand times as fast: a burst of 44 segments takes 44 us.
    let impairments = Impairments { jitter: MS * 2, overtaking: true, ..Impairments::default() };
    let parameters = LinkParameters { impairments, ..LinkParameters::new(11_584.0, 20.0) };
    let delays = |segments: usize| {
        let mut link = Link::new(parameters.clone(), ChaCha8Rng::seed_from_u64(7));
        let one =
            |step: i32| since(cross(&mut link, f64::from(step), segments).last, f64::from(step));
        mean_and_deviation(&(0..5000).map(one).collect::<Vec<_>>()).0
    };
    let (one, many) = (delays(1), delays(44));
    // The greatest of 44 normal draws is 2.2 deviations above the mean.
    assert!((one - 10.0).abs() < 0.2, "{one}");
    assert!((many - 14.4).abs() < 0.2, "{many}");
}

#[test]
fn a_bucket_lets_its_depth_pass_at_once_and_fills_at_the_rate() {
    let mut link = link(Impairments { burst: 10 * MSS as u64, ..Impairments::default() });
    let crossing = cross(&mut link, 0.0, 10);
    assert!((since(crossing.last, 0.0) - 10.0).abs() < 1e-3, "ten segments at once");
    let crossing = cross(&mut link, 0.0, 5);
    assert!((since(crossing.last, 0.0) - 15.0).abs() < 1e-3, "and then at the rate");
    assert!(crossing.lost.is_empty());
    // After 5 ms of queue and 4 ms more it has four segments again.
    let crossing = cross(&mut link, 9.0, 4);
    assert!((since(crossing.last, 9.0) - 10.0).abs() < 1e-2, "{crossing:?}");
}

#[test]
fn a_queue_drops_what_does_not_fit_into_it() {
    let mut link = link(Impairments { burst: 10 * MSS as u64, ..Impairments::default() });
    // 10 at once, 20 in the queue of 20 ms, and one that is being sent.
    let crossing = cross(&mut link, 0.0, 40);
    assert_eq!(lost(&crossing), (31, 40));
}

#[test]
fn a_policer_drops_beyond_its_burst_and_delays_nothing() {
    let burst = 10 * MSS as u64;
    let mut link = link(Impairments { burst, policer: true, ..Impairments::default() });
    let crossing = cross(&mut link, 0.0, 12);
    assert_eq!(lost(&crossing), (10, 12));
    assert!((since(crossing.last, 0.0) - 10.0).abs() < 1e-3);
    assert_eq!(lost(&cross(&mut link, 0.5, 1)), (0, 1), "it has half a token");
    let crossing = cross(&mut link, 3.5, 5);
    assert_eq!(lost(&crossing), (3, 5), "three segments' tokens came meanwhile");
}

#[test]
fn losses_have_their_share_and_the_length_of_their_runs() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for (loss, run) in [(0.01, 0.0), (0.05, 1.0), (0.02, 4.0), (0.05, 20.0), (0.0, 5.0)] {
        let (mut losses, mut lost, mut runs, mut end) = (Losses::default(), 0, 0, u64::MAX);
        let (bursts, count) = (100_000, 23);
        for burst in 0..bursts {
            for range in losses.next(count, (loss, run), &mut rng) {
                assert!(range.start < range.end && range.end <= count);
                lost += range.end - range.start;
                runs += u64::from(burst * count + range.start != end);
                end = burst * count + range.end;
            }
        }
        let share = lost as f64 / (bursts * count) as f64;
        assert!((share - loss).abs() <= 0.05 * loss, "{share} instead of {loss}, runs of {run}");
        if loss > 0.0 {
            let mean = lost as f64 / runs as f64;
            let expected = if run > 1.0 { run } else { 1.0 / (1.0 - loss) };
            assert!((mean / expected - 1.0).abs() < 0.05, "{mean} instead of {expected}");
        }
    }
}

#[test]
fn rates_change_while_the_queue_drains() {
    // 4 ms at a segment in a millisecond, then a quarter of it, and from 20 ms on none.
    let rate = 1448e3;
    let rates = vec![(MS * 4, rate / 4.0), (MS * 20, 0.0), (MS * 30, rate)];
    let mut link = link(Impairments { rates, ..Impairments::default() });
    let crossing = cross(&mut link, 0.0, 6);
    assert!((since(crossing.last, 0.0) - 22.0).abs() < 1e-3, "4 + 2 x 4 ms and the delay");
    let crossing = cross(&mut link, 0.0, 4);
    assert!((since(crossing.last, 0.0) - 42.0).abs() < 1e-3, "two until 20 ms, two from 30 on");
    assert!(link.is_dark(at(25.0)) && !link.is_dark(at(35.0)));
}

#[test]
fn both_directions_of_a_radio_sleep_and_wake_together() {
    let sleep = Some(Sleep { rest: MS * 100, wake: MS * 50 });
    let parameters = || LinkParameters {
        impairments: Impairments { sleep, ..Impairments::default() },
        ..LinkParameters::new(11.584, 20.0)
    };
    let [mut up, mut down] = Link::seeded_pair([parameters(), parameters()], 1);
    assert!((since(cross(&mut up, 0.0, 1).last, 0.0) - 61.0).abs() < 1e-3, "it slept");
    assert!((since(cross(&mut down, 20.0, 1).last, 20.0) - 41.0).abs() < 1e-3, "it wakes");
    assert!((since(cross(&mut down, 140.0, 1).last, 140.0) - 11.0).abs() < 1e-3, "it is awake");
    assert!((since(cross(&mut up, 230.0, 1).last, 230.0) - 11.0).abs() < 1e-3, "of the other's");
    assert!((since(cross(&mut down, 340.0, 1).last, 340.0) - 61.0).abs() < 1e-3, "it slept again");
}

#[test]
fn a_bucket_waits_for_what_a_changing_rate_brings() {
    let slow = 11.584e6 / 8.0 / 10.0;
    let rates = vec![(MS * 20, slow)];
    let burst = 50 * MSS as u64;
    let mut link = link(Impairments { burst, rates, ..Impairments::default() });
    let crossing = cross(&mut link, 0.0, 50);
    assert!((since(crossing.last, 0.0) - 10.0).abs() < 1e-3, "the bucket has all of it");
    // The rate brings a segment in a millisecond until it is a tenth of that.
    let crossing = cross(&mut link, 0.0, 20);
    assert!((since(crossing.last, 0.0) - 30.0).abs() < 1e-3, "{}", since(crossing.last, 0.0));
    let crossing = cross(&mut link, 20.0, 1);
    assert!((since(crossing.last, 20.0) - 20.0).abs() < 1e-3, "{}", since(crossing.last, 20.0));
}
