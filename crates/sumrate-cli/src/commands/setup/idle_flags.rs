//! Flags that change nothing beside others: said at the start and at each reload.

use fbdt::CongestionControl;
use fbdt_proto::{Config, CouplingMode, SchedulerKind, SharedBottleneck, WindowMode};

use crate::args::ProtocolArgs;
use crate::coupling::CouplingState;

/// Says which of the given flags change nothing; `config` is what `args` were made to, `paths` how many
/// there will be, if that is known.
pub(in crate::commands) fn warn(
    args: &ProtocolArgs,
    config: &Config,
    cc: &CongestionControl,
    paths: Option<usize>,
) {
    for sentence in idle(config, cc, paths).into_iter().chain(coupled_already(args, config)) {
        tracing::warn!("{sentence}");
    }
}

/// A flag for paths that a loaded congestion control couples, which was left out of `config`.
fn coupled_already(args: &ProtocolArgs, config: &Config) -> Option<String> {
    let CouplingState::Kernel(coupler) = &args.coupling else { return None };
    let left_out =
        !args.shared_bottleneck.is_empty() && config.shared_bottleneck == SharedBottleneck::None;
    left_out.then(|| {
        let algorithm = coupler.algorithm();
        format!("--shared-bottleneck changes nothing: {algorithm} is loaded, and couples all paths")
    })
}

fn idle(config: &Config, cc: &CongestionControl, paths: Option<usize>) -> Vec<String> {
    let scheduler = config.scheduler;
    let windows = scheduler == SchedulerKind::TwoEnded;
    let mut found = Vec::new();
    if let Some(name) = config.forward.as_ref().filter(|_| !windows) {
        found.push(format!(
            "--forward {name} changes nothing: with --scheduler {} no path is the forward one",
            scheduler.name()
        ));
    }
    if config.window_mode == WindowMode::Thesis && !windows {
        found.push(format!(
            "--window-mode thesis changes nothing: --scheduler {} opens no windows; two-ended does",
            scheduler.name()
        ));
    }
    if scheduler == SchedulerKind::MuSher && paths.is_some_and(|paths| paths > 2) {
        found.push("--scheduler musher sends on two paths only, whichever they are".to_owned());
    }
    if config.coupling == CouplingMode::Fair && !falls_by_loss(cc) {
        found.push(format!(
            "--coupling fair changes nothing: it leaves paths with --cc {cc} as they are; it is for \
             cubic and reno"
        ));
    }
    if config.shared_bottleneck != SharedBottleneck::None && *cc == CongestionControl::Bbr {
        found.push(
            "--shared-bottleneck changes nothing: bbr fills its link with what is left of a window; \
             it is for cubic and reno"
                .to_owned(),
        );
    }
    found
}

/// Whether fair coupling takes its windows on (F17).
fn falls_by_loss(cc: &CongestionControl) -> bool {
    match cc {
        CongestionControl::Cubic | CongestionControl::Auto => true,
        CongestionControl::Bbr => false,
        CongestionControl::Named(name) => name == "reno",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(config: &Config, cc: &str, paths: usize) -> Vec<String> {
        idle(config, &cc.parse().unwrap(), Some(paths))
    }

    #[test]
    fn what_changes_something_is_not_mentioned() {
        let two_ended = Config {
            window_mode: WindowMode::Thesis,
            forward: Some("wigig".to_owned()),
            coupling: CouplingMode::Fair,
            ..Config::default().with_scheduler(SchedulerKind::TwoEnded)
        };
        for cc in ["cubic", "reno", "auto"] {
            assert!(said(&two_ended, cc, 3).is_empty(), "{cc}");
        }
        assert!(said(&Config::default(), "bbr", 3).is_empty());
        let musher = Config::default().with_scheduler(SchedulerKind::MuSher);
        assert!(said(&musher, "cubic", 2).is_empty());
        assert!(idle(&musher, &CongestionControl::Cubic, None).is_empty(), "nobody knows");
    }

    #[test]
    fn every_flag_that_changes_nothing_is_named_with_the_reason() {
        let config = Config {
            window_mode: WindowMode::Thesis,
            forward: Some("wigig".to_owned()),
            coupling: CouplingMode::Fair,
            ..Config::default().with_scheduler(SchedulerKind::MuSher)
        };
        let [forward, windows, paths, coupling] =
            said(&config, "sumrate_lia", 3).try_into().expect("four sentences");
        assert!(forward.contains("--forward wigig") && forward.contains("--scheduler musher"));
        assert!(windows.contains("--window-mode thesis") && windows.contains("two-ended"));
        assert!(paths.contains("two paths only"));
        assert!(coupling.contains("--cc sumrate_lia") && coupling.contains("cubic and reno"));
        let shared = Config { shared_bottleneck: SharedBottleneck::All, ..Config::default() };
        assert!(said(&shared, "cubic", 2).is_empty());
        let [bottleneck] = said(&shared, "bbr", 2).try_into().expect("one sentence");
        assert!(
            bottleneck.contains("--shared-bottleneck") && bottleneck.contains("cubic and reno")
        );
    }
}
