//! What becomes of `--cc lia`: the kernel's, or, without the privilege to load it, scaled windows.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use fbdt::Coupling;
use sumrate_cc::{Algorithm, Coupler, CouplingError, load};

/// What was made of a wish for coupled congestion control.
#[derive(Debug, Clone, Default)]
pub enum CouplingState {
    /// Nobody wished it.
    #[default]
    None,
    /// The kernel couples the sockets that it is told of.
    Kernel(Arc<Coupler>),
    /// The kernel cannot; windows are scaled instead.
    Scaled,
    /// The control that couples nothing cannot be loaded; the kernel's own Reno stands for it.
    OwnReno,
}

impl CouplingState {
    /// Loads what `--cc` names, if it is one of ours. To be called while there are privileges: what
    /// it gives needs none. What cannot be loaded, for whatever reason, is stood in for.
    pub fn of(wish: &str) -> Self {
        let Ok(algorithm) = wish.parse::<Algorithm>() else { return Self::None };
        // `reno` is the kernel's own.
        if wish == Algorithm::Reno.name() {
            return Self::None;
        }
        match load(algorithm) {
            Ok(coupler) => Self::Kernel(Arc::new(coupler)),
            Err(error) => Self::without_kernel(algorithm, wish, &error),
        }
    }

    /// What stands for `algorithm` where it cannot be loaded.
    fn without_kernel(algorithm: Algorithm, wish: &str, error: &CouplingError) -> Self {
        if algorithm == Algorithm::Reno {
            tracing::warn!("--cc {wish}: {error}; the kernel's own reno is used instead");
            return Self::OwnReno;
        }
        tracing::warn!(
            "--cc {wish}: {error}; instead, all paths (or those of --shared-bottleneck) together send \
             no faster than the fastest alone would"
        );
        Self::Scaled
    }

    /// What the transport tells of its sockets.
    pub fn transport(&self) -> Option<Arc<dyn Coupling>> {
        match self {
            Self::Kernel(coupler) => Some(Arc::new(Told(coupler.clone()))),
            Self::None | Self::Scaled | Self::OwnReno => None,
        }
    }
}

#[derive(Debug)]
struct Told(Arc<Coupler>);

impl Coupling for Told {
    fn join(&self, socket: BorrowedFd<'_>, session: u64) -> io::Result<()> {
        self.0.join(socket, session)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_ours_is_left_to_the_kernel() {
        for name in ["cubic", "reno", "auto", "nonsense"] {
            let state = CouplingState::of(name);
            assert!(matches!(state, CouplingState::None) && state.transport().is_none());
        }
    }

    #[test]
    fn what_cannot_be_loaded_is_stood_in_for_by_what_couples_as_much() {
        for algorithm in Algorithm::ALL {
            let old_kernel = CouplingError::Refused { algorithm, detail: "no BTF".to_owned() };
            for error in [CouplingError::NotBuilt(algorithm), old_kernel] {
                let wish = algorithm.kernel_name();
                let state = CouplingState::without_kernel(algorithm, wish, &error);
                let scaled = matches!(state, CouplingState::Scaled);
                assert_eq!(scaled, Algorithm::COUPLED.contains(&algorithm), "{error}: {state:?}");
                assert!(scaled || matches!(state, CouplingState::OwnReno));
            }
        }
    }
}
