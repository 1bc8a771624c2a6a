//! Punishments and caps, on one path.

use super::*;

#[test]
fn a_punished_path_holds_half_and_comes_back() {
    let config = Config { commit: crate::CommitRule::Window, ..Config::default() };
    let mut path = PathState::new(PathId(0), "a");
    path.attach(Instant::ZERO, SubflowId(0), config.suspect_floor);
    let mut sample = SubflowSample {
        srtt: Duration::from_millis(100),
        min_rtt: Duration::from_millis(100),
        cwnd: 100_000,
        mss: 1000,
        delivery_rate: 1_000_000,
        ..SubflowSample::default()
    };
    path.update(Instant::ZERO, &sample, &config);
    assert_eq!((path.window(), path.commit_limit()), (100_000, 108_192));
    path.punish();
    assert_eq!((path.window(), path.commit_limit()), (50_000, 50_000));
    path.punish();
    assert_eq!(path.window(), 25_000);
    sample.acked_total = 50_000;
    path.update(Instant::from_nanos(1_000_000), &sample, &config);
    assert_eq!((path.window(), path.commit_limit()), (50_000, 58_192));
    sample.acked_total = 200_000;
    path.update(Instant::from_nanos(2_000_000), &sample, &config);
    assert_eq!(path.window(), 100_000);
}

#[test]
fn no_room_of_slow_start_undoes_a_punishment() {
    let config = Config { commit: crate::CommitRule::Window, ..Config::default() };
    let mut path = PathState::new(PathId(0), "a");
    path.attach(Instant::ZERO, SubflowId(0), config.suspect_floor);
    let sample = SubflowSample {
        srtt: Duration::from_millis(20),
        min_rtt: Duration::from_millis(20),
        cwnd: 100_000,
        ssthresh: 80_000,
        mss: 1000,
        delivery_rate: 5_000_000,
        ..SubflowSample::default()
    };
    path.update(Instant::ZERO, &sample, &config);
    assert_eq!(path.commit_limit(), 110_000, "slow start is over");
    path.punish();
    path.update(Instant::from_nanos(1_000_000), &sample, &config);
    assert_eq!((path.window(), path.commit_limit()), (50_000, 60_000), "half, and the slack");
}

#[test]
fn a_path_whose_cap_holds_it_back_is_not_ready() {
    let mut path = PathState::new(PathId(0), "a");
    path.attach(Instant::ZERO, SubflowId(0), Duration::from_millis(50));
    let rate_cap = fbdt_wire::RateCap::from_kilobits(1000);
    path.set_policy(Instant::ZERO, PathPolicy { rate_cap, ..PathPolicy::default() });
    let later = Instant::from_nanos(1_000_000_000);
    assert!(path.view(later, false).ready);
    path.spend(later, 1 << 20);
    assert!(path.has_room() && !path.view(later, false).ready);
}
