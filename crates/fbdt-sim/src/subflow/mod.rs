//! One direction of an emulated TCP connection: reliable and in order.

mod bursts;
mod linux;

use std::time::Duration;

use fbdt_proto::{Instant, SubflowSample};

use self::bursts::BurstTcp;
use self::linux::LinuxTcp;
use crate::growth::TcpGrowth;
use crate::link::Link;

/// Sender and receiver of one direction.
#[derive(Debug)]
pub(crate) enum TcpDirection {
    /// The growths of the fixed matrix.
    Bursts(Box<BurstTcp>),
    /// Linux's loss detection, with cubic or BBR.
    Linux(Box<LinuxTcp>),
}

/// Calls a method of whichever TCP it is.
macro_rules! either {
    ($self:ident, $tcp:ident => $call:expr) => {
        match $self {
            Self::Bursts($tcp) => $call,
            Self::Linux($tcp) => $call,
        }
    };
}

impl TcpDirection {
    pub(crate) fn new(now: Instant, rtt: Duration, growth: TcpGrowth) -> Self {
        match growth {
            TcpGrowth::Linux | TcpGrowth::Bbr => {
                Self::Linux(Box::new(LinuxTcp::new(now, rtt, growth)))
            }
            _ => Self::Bursts(Box::new(BurstTcp::new(now, rtt, growth))),
        }
    }

    /// Whether it spreads what it sends over the RTT from now on, as a paced socket does.
    pub(crate) fn paced(mut self, paced: bool) -> Self {
        self.pace(paced);
        self
    }

    /// See [`Self::paced`].
    pub(crate) fn pace(&mut self, paced: bool) {
        either!(self, tcp => tcp.pace(paced));
    }

    /// The peer's receive buffer, in bytes; only [`TcpGrowth::Linux`] and [`TcpGrowth::Bbr`] know it.
    pub(crate) fn received_into(self, buffer: u64) -> Self {
        match self {
            Self::Linux(tcp) => Self::Linux(Box::new(tcp.received_into(buffer))),
            bursts @ Self::Bursts(_) => bursts,
        }
    }

    pub(crate) fn has_room(&self) -> bool {
        either!(self, tcp => tcp.has_room())
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) {
        either!(self, tcp => tcp.write(bytes));
    }

    /// Whether everything that was written has left the socket.
    pub(crate) fn is_flushed(&self) -> bool {
        either!(self, tcp => tcp.is_flushed())
    }

    /// The socket is closed by reset: what is still in it is never sent.
    pub(crate) fn drop_unsent(&mut self) {
        either!(self, tcp => tcp.drop_unsent());
    }

    /// Sends what the congestion window allows.
    pub(crate) fn pump(&mut self, now: Instant, link: &mut Link, back: &mut Link) {
        match self {
            Self::Bursts(tcp) => tcp.pump(now, link),
            Self::Linux(tcp) => tcp.pump(now, link, back),
        }
    }

    /// Bytes that reach the peer by now, in order.
    pub(crate) fn deliver(&mut self, now: Instant, link: &Link, out: &mut Vec<u8>) {
        either!(self, tcp => tcp.deliver(now, link, out));
    }

    /// Acknowledgements, what they tell to be lost, and timers.
    pub(crate) fn advance(&mut self, now: Instant, link: &mut Link, back: &mut Link) {
        match self {
            Self::Bursts(tcp) => tcp.advance(now, link, back),
            Self::Linux(tcp) => tcp.advance(now, link, back),
        }
    }

    /// When something happens here next.
    pub(crate) fn next_event(&self, back: &Link) -> Option<Instant> {
        match self {
            Self::Bursts(tcp) => tcp.next_event(back),
            Self::Linux(tcp) => tcp.next_event(),
        }
    }

    pub(crate) fn sample(&self) -> SubflowSample {
        either!(self, tcp => tcp.sample())
    }

    /// Bytes that the socket holds: sent and not acknowledged in order, and unsent.
    pub(crate) fn outstanding(&self) -> u64 {
        match self {
            Self::Bursts(tcp) => tcp.sample().outstanding(),
            Self::Linux(tcp) => tcp.outstanding(),
        }
    }
}
