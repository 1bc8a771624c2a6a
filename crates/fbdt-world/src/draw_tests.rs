//! Each row of the table of conditions, over many seeds.

use super::*;

const SEEDS: u64 = 2000;

fn draws() -> Vec<Draw> {
    (0..SEEDS).map(Draw::from_seed).collect()
}

/// Paths that are drawn by themselves: not the second of two on one bottleneck.
fn paths(draws: &[Draw]) -> Vec<&PathDraw> {
    let own = |draw: &&Draw| !draw.shared;
    draws.iter().filter(own).flat_map(|draw| &draw.paths).collect()
}

fn share<T>(all: &[T], has: impl Fn(&T) -> bool) -> f64 {
    all.iter().filter(|one| has(one)).count() as f64 / all.len() as f64
}

/// Whether a share is within three standard deviations of the expected one, and a bit.
fn is_near(share: f64, expected: f64, count: usize) -> bool {
    let deviation = (expected * (1.0 - expected) / count as f64).sqrt();
    (share - expected).abs() < 3.5 * deviation
}

/// Whether values are log-uniform between two ends: by their range, mean and quartiles.
fn assert_log_uniform(what: &str, values: impl Iterator<Item = f64>, least: f64, most: f64) {
    let (slack, span) = (1e-6 * least, (most / least).ln());
    let mut places = Vec::new();
    for value in values {
        assert!(value >= least - slack && value <= most * (1.0 + 1e-6), "{what}: {value}");
        places.push((value / least).ln() / span);
    }
    assert!(places.len() > 100, "{what}: {} values", places.len());
    for quarter in [0.25, 0.5, 0.75] {
        let below = share(&places, |place| *place < quarter);
        assert!(is_near(below, quarter, places.len()), "{what}: {below} below {quarter}");
    }
}

#[test]
fn a_seed_gives_one_draw_and_another_seed_another() {
    for seed in 0..50 {
        assert_eq!(Draw::from_seed(seed), Draw::from_seed(seed));
        assert_ne!(Draw::from_seed(seed).paths, Draw::from_seed(seed + 1).paths);
    }
}

#[test]
fn a_draw_survives_json() {
    for draw in draws().into_iter().take(200) {
        let text = serde_json::to_string(&draw).unwrap();
        let again: Draw = serde_json::from_str(&text).unwrap();
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-12 * a.abs();
        assert_eq!((again.seed, again.work.name()), (draw.seed, draw.work.name()));
        for (a, b) in again.paths.iter().zip(&draw.paths) {
            assert!(near(a.down_mbps, b.down_mbps) && near(a.rtt_ms, b.rtt_ms));
            assert_eq!(a.outages.len(), b.outages.len());
        }
    }
}

#[test]
fn paths_control_buffers_and_work_have_their_shares() {
    let draws = draws();
    let near = |has: &dyn Fn(&Draw) -> bool, expected: f64| {
        let share = share(&draws, has);
        assert!(is_near(share, expected, draws.len()), "{share} instead of {expected}");
    };
    near(&|d| d.paths.len() == 2, 0.6);
    near(&|d| d.paths.len() == 3, 0.25);
    near(&|d| d.paths.len() == 4, 0.15);
    near(&|d| d.shared, 0.1);
    near(&|d| d.control == Control::Bbr, 0.5);
    near(&|d| d.work == Work::BulkDown, 0.5);
    near(&|d| d.work == Work::BulkUp, 0.15);
    near(&|d| matches!(d.work, Work::Short { .. }), 0.15);
    near(&|d| matches!(d.work, Work::Stream { .. }), 0.1);
    near(&|d| matches!(d.work, Work::Messages { .. }), 0.1);
    let buffers = draws.iter().map(|d| d.buffer_bytes as f64 + 0.5);
    assert_log_uniform("buffer", buffers, 65_536.0, 67_108_865.0);
}

#[test]
fn paths_have_the_distributions_of_the_table() {
    let draws = draws();
    let paths = paths(&draws);
    let near = |has: &dyn Fn(&&PathDraw) -> bool, expected: f64| {
        let share = share(&paths, has);
        assert!(is_near(share, expected, paths.len()), "{share} instead of {expected}");
    };
    let of = |value: fn(&PathDraw) -> Option<f64>| paths.iter().filter_map(move |p| value(p));
    assert_log_uniform("rate", of(|p| Some(p.down_mbps)), 0.06, 2000.0);
    assert_log_uniform("upload", of(|p| Some(p.down_mbps / p.up_mbps)), 1.0, 20.0);
    assert_log_uniform("RTT", of(|p| Some(p.rtt_ms)), 1.0, 700.0);
    near(&|p| matches!(p.bottleneck, Bottleneck::PolicerMs(_)), 0.15);
    let queue = of(|p| match p.bottleneck {
        Bottleneck::QueueMs(ms) => Some(ms),
        Bottleneck::PolicerMs(_) => None,
    });
    assert_log_uniform("queue", queue, 5.0, 1000.0);
    let policer = of(|p| match p.bottleneck {
        Bottleneck::QueueMs(_) => None,
        Bottleneck::PolicerMs(ms) => Some(ms),
    });
    assert_log_uniform("policer", policer, 10.0, 1000.0);
    near(&|p| p.burst_bytes > 0, 0.5);
    let burst = of(|p| (p.burst_bytes > 0).then_some(p.burst_bytes as f64 + 0.5));
    assert_log_uniform("burst", burst, 16_384.0, 4_194_305.0);
    near(&|p| p.loss > 0.0, 0.5);
    near(&|p| p.loss_run > 1.0, 0.25);
    assert_log_uniform("loss", of(|p| (p.loss > 0.0).then_some(p.loss)), 1e-4, 0.05);
    assert_log_uniform("run", of(|p| (p.loss_run > 1.0).then_some(p.loss_run)), 2.0, 20.0);
    near(&|p| p.jitter_ms > 0.0, 0.6);
    near(&|p| p.overtaking, 0.06);
    let jitter = of(|p| (p.jitter_ms > 0.0).then_some(p.jitter_ms / p.rtt_ms));
    assert_log_uniform("jitter", jitter, 0.02, 1.0);
    near(&|p| p.gathered_ms > 0.0, 0.2);
    assert_log_uniform(
        "gathered",
        of(|p| (p.gathered_ms > 0.0).then_some(p.gathered_ms)),
        4.0,
        150.0,
    );
    near(&|p| p.sleep.is_some(), 0.2);
    assert_log_uniform("rest", of(|p| p.sleep.map(|s| s.rest_ms)), 40.0, 500.0);
    assert_log_uniform("wake", of(|p| p.sleep.map(|s| s.wake_ms)), 10.0, 200.0);
    near(&|p| p.others > 0, 0.25);
    for others in 1..=4 {
        near(&|p| p.others == others, 0.25 / 4.0);
    }
    let factors = paths.iter().flat_map(|p| p.steps.iter().map(|step| step.factor));
    let (mut count, mut below) = (0, 0);
    for factor in factors {
        assert!((0.1..=1.0).contains(&factor));
        count += 1;
        below += usize::from(factor < 0.1_f64.sqrt());
    }
    assert!(is_near(below as f64 / f64::from(count), 0.5, count as usize));
}

#[test]
fn outages_and_rate_changes_come_as_often_as_the_table_says() {
    let mut dice = Dice(ChaCha8Rng::seed_from_u64(1));
    let silent: Vec<Vec<Outage>> = (0..SEEDS).map(|_| outages(&mut dice)).collect();
    // Of those that have outages some begin after the longest draw.
    let some = share(&silent, |outages| !outages.is_empty());
    assert!((0.33..0.41).contains(&some), "{some}");
    for outages in &silent {
        for pair in outages.windows(2) {
            assert!(pair[1].at_s > pair[0].at_s + pair[0].length_s, "one after the other");
        }
    }
    let lengths: Vec<f64> = silent.iter().flatten().map(|outage| outage.length_s).collect();
    let mean = lengths.iter().sum::<f64>() / lengths.len() as f64;
    assert!((0.1..2.0).contains(&mean), "{mean}");
    let changing: Vec<Vec<RateStep>> = (0..SEEDS).map(|_| steps(&mut dice)).collect();
    let some = share(&changing, |steps| !steps.is_empty());
    assert!(is_near(some, 0.3, changing.len()), "{some}");
    let every = changing.iter().filter_map(|steps| steps.first().map(|step| step.at_s));
    assert_log_uniform("interval", every, 0.2, 10.0);
}

#[test]
fn the_second_path_over_a_bottleneck_has_an_rtt_of_its_own_and_all_else_of_the_first() {
    let draws = draws();
    let shared: Vec<&Draw> = draws.iter().filter(|draw| draw.shared).collect();
    for draw in &shared {
        let [first, second, ..] = &draw.paths[..] else { panic!("two paths at least") };
        assert_eq!(second.others, 0);
        let alike = PathDraw { rtt_ms: first.rtt_ms, others: first.others, ..second.clone() };
        assert_eq!(&alike, first);
        assert_ne!(second.rtt_ms.to_bits(), first.rtt_ms.to_bits());
    }
}

#[test]
fn a_draw_is_short_and_holds_many_of_its_rtts() {
    for draw in draws() {
        let rtt = draw.longest_rtt();
        assert!(draw.time_s <= LONGEST && draw.time_s >= (SHORTEST + 12.0 * rtt).min(LONGEST));
        let changes = draw.paths.iter().flat_map(|path| {
            path.outages.iter().map(|o| o.at_s).chain(path.steps.iter().map(|s| s.at_s))
        });
        assert!(changes.into_iter().all(|at| at < draw.time_s));
        for path in &draw.paths {
            for upload in [true, false] {
                let least = path.queue(upload) * path.rate(upload) + path.bucket(upload) as f64;
                assert!(least >= LEAST_BYTES - 1.0, "{least}");
            }
        }
    }
}
