//! The fault vocabulary.

use serde::{Deserialize, Serialize};

use super::plan::Operation;

macro_rules! faults {
    ($($name:ident $text:literal $words:literal,)*) => {
        /// What can go wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub enum Fault {
            $(#[doc = $words] $name,)*
        }

        impl Fault {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its name in reports.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// What it is.
            #[must_use]
            pub const fn words(self) -> &'static str {
                match self { $(Self::$name => $words,)* }
            }
        }
    };
}

faults! {
    Loss "loss" "segments are lost, in one direction or both",
    Stall "stall" "what is sent waits and nothing is dropped",
    Blackout "blackout" "nothing gets through in either direction",
    AsymmetricCut "asymmetric-cut" "nothing gets through in one direction",
    Held "held" "a proxy on the way acknowledges bytes and keeps them",
    Reset "reset" "connections are reset at both ends",
    HalfReset "half-reset" "connections are reset at one end; the other learns of it later",
    Reorder "reorder" "a path's delay jumps, so that other paths overtake it",
    Rate "rate" "a path's rate changes",
    SlowReader "slow-reader" "a reader takes little at a time, or nothing",
    SlowWriter "slow-writer" "a writer writes little at a time",
    ClockJump "clock-jump" "one end's clock is suddenly later",
    Suspend "suspend" "one end's process does not run for a while; its kernel does",
    PathAdded "path-added" "a path is added",
    PathRemoved "path-removed" "a path's interface disappears, with or without a word to the server",
    PathReaddressed "path-readdressed" "a path comes back with another address over another link",
    PeerRestarted "peer-restarted" "the server is killed and started anew without its sessions",
    MemoryLimit "memory-limit" "readers stop and more is written than may be held",
    StreamClosed "stream-closed" "a stream is finished, reset, stopped or dropped",
    SessionClosed "session-closed" "one end closes the session",
}

impl Operation {
    /// The fault that this is; `None` for ordinary work.
    #[must_use]
    pub const fn fault(&self) -> Option<Fault> {
        Some(match self {
            Self::Open { .. }
            | Self::Write { .. }
            | Self::Message { .. }
            | Self::Advance { .. }
            | Self::Heal { .. }
            | Self::FullSpeed { .. }
            | Self::RestorePath { .. } => return None,
            Self::Finish { .. }
            | Self::ResetStream { .. }
            | Self::StopStream { .. }
            | Self::ReleaseStream { .. } => Fault::StreamClosed,
            Self::Close { .. } => Fault::SessionClosed,
            Self::Loss { .. } => Fault::Loss,
            Self::Stall { .. } => Fault::Stall,
            Self::Blackout { .. } => Fault::Blackout,
            Self::AsymmetricCut { .. } => Fault::AsymmetricCut,
            Self::Held { .. } => Fault::Held,
            Self::Reset { .. } => Fault::Reset,
            Self::HalfReset { .. } => Fault::HalfReset,
            Self::Reorder { .. } => Fault::Reorder,
            Self::Rate { .. } => Fault::Rate,
            Self::SlowReader { .. } => Fault::SlowReader,
            Self::SlowWriter { .. } => Fault::SlowWriter,
            Self::ClockJump { .. } => Fault::ClockJump,
            Self::Suspend { .. } => Fault::Suspend,
            Self::AddPath { .. } => Fault::PathAdded,
            Self::RemovePath { .. } => Fault::PathRemoved,
            Self::ReaddressPath { .. } => Fault::PathReaddressed,
            Self::RestartPeer => Fault::PeerRestarted,
            Self::FillMemory { .. } => Fault::MemoryLimit,
        })
    }
}
