//! `bpf/coupled.h`, compiled for user space, against the formulas in floating point.
#![allow(unsafe_code)]

use proptest::prelude::*;

const PATHS: usize = 8;
const ONE: f64 = (1_u64 << 40) as f64;

/// `struct path`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Path {
    pub(crate) owner: u64,
    heard: u64,
    run: u64,
    pub(crate) window: u32,
    rtt: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Group {
    pub(crate) path: [Path; PATHS],
}

type GrowthFn = unsafe extern "C" fn(*const Group, u32, u64) -> i64;
type LossFn = unsafe extern "C" fn(*const Group, u32, u64) -> u32;

unsafe extern "C" {
    fn sumrate_reno_growth(group: *const Group, me: u32, now: u64) -> i64;
    fn sumrate_lia_growth(group: *const Group, me: u32, now: u64) -> i64;
    fn sumrate_olia_growth(group: *const Group, me: u32, now: u64) -> i64;
    fn sumrate_balia_growth(group: *const Group, me: u32, now: u64) -> i64;
    fn sumrate_halved(group: *const Group, me: u32, now: u64) -> u32;
    fn sumrate_balia_after_loss(group: *const Group, me: u32, now: u64) -> u32;
    fn sumrate_grown(saved: *mut i64, window: u32, growth: i64, acked: u32) -> u32;
    fn sumrate_threshold_of(threshold: u32, window: u32) -> u32;
    fn sumrate_quality(amount: u64, rtt: u64) -> u64;
    fn sumrate_run_on_ack(run: u64, acked: u64, lost_at: u64) -> u64;
    fn sumrate_run_after_loss(acked: u64, lost_at: *mut u64) -> u64;
}

/// Segments per acknowledged segment.
fn growth(function: GrowthFn, group: &Group, me: usize) -> f64 {
    // SAFETY: the group is valid for the call, and `me` is one of its paths.
    let growth = unsafe { function(group, u32::try_from(me).unwrap(), 0) };
    growth as f64 / ONE
}

fn after_loss(function: LossFn, group: &Group, me: usize) -> u32 {
    // SAFETY: as above.
    unsafe { function(group, u32::try_from(me).unwrap(), 0) }
}

fn quality(amount: u64, rtt: u64) -> u64 {
    // SAFETY: it takes and gives numbers.
    unsafe { sumrate_quality(amount, rtt) }
}

fn grown(saved: &mut i64, window: u32, growth: i64, acked: u32) -> u32 {
    // SAFETY: the reference is valid for the call.
    unsafe { sumrate_grown(saved, window, growth, acked) }
}

fn threshold_of(threshold: u32, window: u32) -> u32 {
    // SAFETY: it takes and gives numbers.
    unsafe { sumrate_threshold_of(threshold, window) }
}

fn group(paths: &[(u32, u32, u64)]) -> Group {
    let mut group = Group::default();
    for (place, &(window, rtt, run)) in group.path.iter_mut().zip(paths) {
        *place = Path { owner: 1, heard: 0, run, window, rtt };
    }
    group
}

fn counted(group: &Group) -> Vec<&Path> {
    group.path.iter().filter(|path| path.owner > 0).collect()
}

fn rate(path: &Path) -> f64 {
    f64::from(path.window) / f64::from(path.rtt)
}

fn total(group: &Group) -> f64 {
    counted(group).into_iter().map(rate).sum()
}

/// RFC 6356: min(alpha / total, 1 / w_i), alpha = total x max(w / rtt^2) / (sum of w / rtt)^2.
fn lia(group: &Group, me: usize) -> f64 {
    let windows: f64 = counted(group).iter().map(|path| f64::from(path.window)).sum();
    let best = counted(group).iter().map(|p| rate(p) / f64::from(p.rtt)).fold(0.0, f64::max);
    let alpha = windows * best / total(group).powi(2);
    (alpha / windows).min(1.0 / f64::from(group.path[me].window))
}

/// (w_r / rtt_r^2) / (sum of w / rtt)^2 + epsilon_r / w_r.
fn olia(group: &Group, me: usize) -> f64 {
    let paths = counted(group);
    let worth = |p: &Path| p.run as f64 / f64::from(p.rtt).powi(2);
    let best = paths.iter().map(|p| worth(p)).fold(0.0, f64::max);
    let widest = paths.iter().map(|p| p.window).max().unwrap();
    let collected = |p: &Path| p.window < widest && worth(p) >= best * (1.0 - 1e-12);
    let n = paths.len() as f64;
    let good = paths.iter().filter(|p| collected(p)).count() as f64;
    let wide = paths.iter().filter(|p| p.window == widest).count() as f64;
    let own = &group.path[me];
    let epsilon = match () {
        () if good == 0.0 => 0.0,
        () if collected(own) => 1.0 / (n * good),
        () if own.window == widest => -1.0 / (n * wide),
        () => 0.0,
    };
    rate(own) / f64::from(own.rtt) / total(group).powi(2) + epsilon / f64::from(own.window)
}

fn ratio_to_fastest(group: &Group, me: usize) -> f64 {
    counted(group).into_iter().map(rate).fold(0.0, f64::max) / rate(&group.path[me])
}

/// x_r / (rtt_r (sum x)^2) x (1 + a) / 2 x (4 + a) / 5, a = max x / x_r.
fn balia(group: &Group, me: usize) -> f64 {
    let (own, a) = (&group.path[me], ratio_to_fastest(group, me));
    rate(own) / f64::from(own.rtt) / total(group).powi(2) * ((1.0 + a) / 2.0) * ((4.0 + a) / 5.0)
}

fn assert_close(got: f64, expected: f64, scale: f64, group: &Group) {
    // Shares are good to 2^-29, rates to 2^-16 at the slowest; growth has 40 bits after the point.
    let allowed = 1e-4 * expected.abs() + 2e-8 * scale + 4.0 / ONE;
    assert!((got - expected).abs() <= allowed, "{got} instead of {expected}: {group:?}");
}

prop_compose! {
    fn any_group()(paths in prop::collection::vec(
        (1_u32..1 << 20, 1_u32..1 << 24, 0_u64..1 << 50), 2..=PATHS)) -> (Group, usize) {
        (group(&paths), paths.len())
    }
}

prop_compose! {
    /// Windows and RTTs as networks have them.
    fn usual_group()(paths in prop::collection::vec(
        (2_u32..3000, 500_u32..700_000, 0_u64..1 << 34), 2..=PATHS)) -> (Group, usize) {
        (group(&paths), paths.len())
    }
}

proptest! {
    #[test]
    fn growth_is_that_of_the_formulas((group, paths) in prop_oneof![any_group(), usual_group()]) {
        for me in 0..paths {
            let reno = 1.0 / f64::from(group.path[me].window);
            assert_close(growth(sumrate_reno_growth, &group, me), reno, reno, &group);
            assert_close(growth(sumrate_lia_growth, &group, me), lia(&group, me), reno, &group);
            assert_close(growth(sumrate_olia_growth, &group, me), olia(&group, me), reno, &group);
            assert_close(growth(sumrate_balia_growth, &group, me), balia(&group, me), reno, &group);
        }
    }

    /// What lets every process choose them.
    #[test]
    fn none_grows_faster_than_one_and_a_half_reno((group, paths) in any_group()) {
        for me in 0..paths {
            let reno = growth(sumrate_reno_growth, &group, me);
            prop_assert!(growth(sumrate_lia_growth, &group, me) <= reno);
            prop_assert!(growth(sumrate_balia_growth, &group, me) <= reno);
            let olia = growth(sumrate_olia_growth, &group, me);
            prop_assert!(olia.abs() <= 1.5 * reno + 2.0 / ONE);
        }
    }

    #[test]
    fn a_loss_takes_what_the_formulas_say((group, paths) in usual_group()) {
        for me in 0..paths {
            let window = f64::from(group.path[me].window);
            let reno = (window / 2.0).floor().max(2.0);
            prop_assert_eq!(f64::from(after_loss(sumrate_halved, &group, me)), reno);
            let cut = window / 2.0 * ratio_to_fastest(&group, me).min(1.5);
            let got = f64::from(after_loss(sumrate_balia_after_loss, &group, me));
            prop_assert!((got - (window - cut).max(2.0)).abs() <= 1.01, "{} {}", got, window - cut);
        }
    }

    #[test]
    fn qualities_compare_as_amount_over_rtt_squared(
        a in (1_u64..1 << 62, 1_u64..1 << 24), b in (1_u64..1 << 62, 1_u64..1 << 24)
    ) {
        let exact = |(amount, rtt): (u64, u64)| amount as f64 / (rtt as f64).powi(2);
        if (exact(a) / exact(b) - 1.0).abs() > 1e-9 {
            prop_assert_eq!(quality(a.0, a.1) > quality(b.0, b.1), exact(a) > exact(b));
        }
    }

    #[test]
    fn nothing_that_was_saved_up_is_lost(
        window in 2_u32..1000, steps in prop::collection::vec((-0.5_f64..1.5, 1_u32..100), 1..100)
    ) {
        let (mut saved, mut now, mut exact) = (0, window + 20_000, i128::from(window + 20_000) << 40);
        for (per_window, acked) in steps {
            let growth = (per_window / f64::from(window) * ONE) as i64;
            now = grown(&mut saved, now, growth, acked);
            exact += i128::from(growth) * i128::from(acked);
            prop_assert_eq!((i128::from(now) << 40) + i128::from(saved), exact);
        }
    }
}

/// Two paths alike share what one TCP would have: 1 / 4 of a segment per RTT and path ...
#[test]
fn equal_paths_grow_as_worked_out_by_hand() {
    let pair = group(&[(10, 20_000, 5), (10, 20_000, 5)]);
    for function in [sumrate_lia_growth as GrowthFn, sumrate_olia_growth] {
        assert!((growth(function, &pair, 0) - 0.25 / 10.0).abs() < 1e-9);
    }
    // ... BALIA with a = 1 the same; with windows 10 and 30, a = 3 on the first:
    // (1/16) / 10 x (4 / 2) x (7 / 5) = 0.0175 and, a = 1, (9/16) / 30 = 0.01875.
    assert!((growth(sumrate_balia_growth, &pair, 0) - 0.25 / 10.0).abs() < 1e-9);
    let uneven = group(&[(10, 20_000, 5), (30, 20_000, 5)]);
    assert!((growth(sumrate_balia_growth, &uneven, 0) - 0.0175).abs() < 1e-9);
    assert!((growth(sumrate_balia_growth, &uneven, 1) - 0.01875).abs() < 1e-9);
    assert_eq!(after_loss(sumrate_balia_after_loss, &uneven, 0), 2, "10 - 5 x 1.5, rounded down");
    assert_eq!(after_loss(sumrate_balia_after_loss, &uneven, 1), 15);
}

/// OLIA's epsilon: the path that loses least has the smaller window, so one moves to it.
#[test]
fn olia_moves_windows_to_the_path_that_loses_least() {
    let pair = group(&[(10, 20_000, 9_000_000), (30, 20_000, 1_000_000)]);
    let expected = [(1.0 / 16.0 + 0.5) / 10.0, (9.0 / 16.0 - 0.5) / 30.0];
    for (me, expected) in expected.into_iter().enumerate() {
        assert!((growth(sumrate_olia_growth, &pair, me) - expected).abs() < 1e-9);
    }
    let worse = group(&[(10, 20_000, 9_000_000), (11, 20_000, 1_000_000), (3, 90_000, 5)]);
    assert!(growth(sumrate_olia_growth, &worse, 1) < 0.0, "the widest shrinks");
}

/// A loss leaves the window at the threshold. What shrinks from there must not be slow start.
#[test]
fn a_window_that_olia_shrinks_stays_below_its_old_threshold() {
    // The narrow path loses least, and the widest one gives way to it.
    let mut paths = [(100, 20_000, 100_000), (90, 20_000, 100_000), (10, 20_000, 100_000_000)];
    let (mut saved, mut threshold) = (0, 100);
    for _ in 0..50_000 {
        let now = group(&paths);
        let growth = olia_growth_of(&now);
        if growth >= 0 {
            break;
        }
        let window = paths[0].0;
        assert!(window >= threshold, "slow start would take {window} back to {threshold}");
        paths[0].0 = grown(&mut saved, window, growth, 1);
        threshold = threshold_of(threshold, paths[0].0);
    }
    assert!(paths[0].0 < 95, "{}", paths[0].0);
    assert_eq!(threshold_of(u32::MAX, 7), 7);
    assert_eq!(threshold_of(5, 7), 5);
}

/// What the first path's window grows by for an acknowledged segment, in 2^-40.
fn olia_growth_of(group: &Group) -> i64 {
    // SAFETY: the group is valid for the call, and 0 is one of its paths.
    unsafe { sumrate_olia_growth(group, 0, 0) }
}

/// l_r = max(bytes between the last two losses, bytes since the last one).
#[test]
fn olias_run_is_the_longer_of_the_last_two() {
    let (mut run, mut lost_at) = (0, 0);
    // Acknowledged so far, whether it was lost then, and l_r as worked out by hand.
    for (acked, lost, expected) in [
        (40, false, 40),
        (100, true, 100),
        (150, false, 100),
        (250, false, 150),
        (260, true, 160),
        (270, true, 10),
        (275, false, 10),
        (300, false, 30),
    ] {
        // SAFETY: they take numbers, and a reference that is valid for the call.
        run = unsafe {
            if lost {
                sumrate_run_after_loss(acked, &raw mut lost_at)
            } else {
                sumrate_run_on_ack(run, acked, lost_at)
            }
        };
        assert_eq!(run, expected, "{acked} bytes acknowledged");
    }
}

#[test]
fn a_path_alone_idle_or_unmeasured_grows_as_reno_does() {
    for function in [sumrate_lia_growth as GrowthFn, sumrate_olia_growth, sumrate_balia_growth] {
        let alone = group(&[(10, 20_000, 5)]);
        assert!((growth(function, &alone, 0) - 0.1).abs() < 1e-9);
        let mut pair = group(&[(10, 20_000, 5), (10, 0, 5)]);
        assert!((growth(function, &pair, 0) - 0.1).abs() < 1e-9, "no RTT yet");
        pair.path[1].rtt = 20_000;
        pair.path[0].heard = 2_000_000;
        // SAFETY: as in `growth`.
        let later = unsafe { function(&raw const pair, 0, 2_000_000) } as f64 / ONE;
        assert!((later - 0.1).abs() < 1e-9, "a silent sibling holds nobody back");
    }
}

#[test]
fn windows_never_shrink_below_two_segments() {
    let mut saved = 0;
    assert_eq!(grown(&mut saved, 3, -(1 << 40), 60), 2);
    assert_eq!(saved, 0);
}
