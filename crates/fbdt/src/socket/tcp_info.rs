//! TCP_INFO: what the kernel knows about a connection.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::AsRawFd;
use std::time::Duration;

use fbdt_proto::SubflowSample;
use nix::libc;

/// Bytes asked for; `struct tcp_info` of Linux 6.x has about 250.
const SIZE: usize = 280;

/// Slow-start threshold before the first loss, in segments.
const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

/// `struct tcp_info` of linux/tcp.h as the kernel filled it in. Fields that an older kernel does
/// not have read as zero.
pub(crate) struct TcpInfo {
    bytes: [u8; SIZE],
    queued: u64,
}

/// Offsets of the fields in linux/tcp.h, in bytes.
mod offset {
    pub(super) const APP_LIMITED: usize = 7;
    pub(super) const SND_MSS: usize = 16;
    pub(super) const SACKED: usize = 28;
    pub(super) const RTT: usize = 68;
    pub(super) const RTTVAR: usize = 72;
    pub(super) const SND_SSTHRESH: usize = 76;
    pub(super) const SND_CWND: usize = 80;
    #[cfg(test)]
    pub(super) const MAX_PACING_RATE: usize = 112;
    pub(super) const BYTES_ACKED: usize = 120;
    pub(super) const BYTES_RECEIVED: usize = 128;
    pub(super) const NOTSENT_BYTES: usize = 144;
    pub(super) const MIN_RTT: usize = 148;
    pub(super) const DELIVERY_RATE: usize = 160;
    pub(super) const BYTES_SENT: usize = 200;
    pub(super) const BYTES_RETRANS: usize = 208;
}

/// Bytes that the kernel has been given and that are not acknowledged, sent or not (SIOCOUTQ).
fn queued(socket: &impl AsRawFd) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: TIOCOUTQ writes one int, which outlives the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    if result == 0 {
        Ok(u64::try_from(bytes).unwrap_or(0))
    } else {
        Err(io::Error::last_os_error())
    }
}

impl TcpInfo {
    /// Asks the kernel.
    pub(crate) fn of(socket: &impl AsRawFd) -> io::Result<Self> {
        let mut bytes = [0u8; SIZE];
        let mut length = SIZE as libc::socklen_t;
        // SAFETY: the pointer and length describe `bytes`, which outlives the call; the kernel
        // writes at most `length` bytes and any byte pattern is a valid [u8].
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                bytes.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { bytes, queued: queued(socket)? })
    }

    /// Whether SO_MAX_PACING_RATE was set to anything but 'no limit'.
    #[cfg(test)]
    pub(crate) fn is_paced(&self) -> bool {
        self.u64_at(offset::MAX_PACING_RATE) != u64::MAX
    }

    fn u32_at(&self, offset: usize) -> u32 {
        let mut field = [0; 4];
        field.copy_from_slice(&self.bytes[offset..offset + 4]);
        u32::from_ne_bytes(field)
    }

    fn u64_at(&self, offset: usize) -> u64 {
        let mut field = [0; 8];
        field.copy_from_slice(&self.bytes[offset..offset + 8]);
        u64::from_ne_bytes(field)
    }

    /// The measurements that the protocol wants (F7), with `held` bytes in user space that the
    /// kernel does not know of.
    pub(crate) fn sample(&self, held: usize) -> SubflowSample {
        let mss = self.u32_at(offset::SND_MSS);
        let packets = |offset| u64::from(self.u32_at(offset)) * u64::from(mss);
        let micros = |offset| Duration::from_micros(u64::from(self.u32_at(offset)));
        let acked_total = self.u64_at(offset::BYTES_ACKED);
        let unsent = u64::from(self.u32_at(offset::NOTSENT_BYTES));
        SubflowSample {
            srtt: micros(offset::RTT),
            rttvar: micros(offset::RTTVAR),
            min_rtt: self.min_rtt(),
            cwnd: packets(offset::SND_CWND),
            ssthresh: match self.u32_at(offset::SND_SSTHRESH) {
                INFINITE_SSTHRESH.. => u64::MAX,
                segments => u64::from(segments) * u64::from(mss),
            },
            mss,
            // Not bytes_sent - bytes_retrans - bytes_acked: bytes_sent also counts segments that
            // a full queue on this host refused, each time, so the difference only ever grows.
            in_flight: self.queued.saturating_sub(unsent),
            sacked: packets(offset::SACKED),
            unsent: unsent + held as u64,
            acked_total,
            delivery_rate: self.u64_at(offset::DELIVERY_RATE),
            app_limited: self.bytes[offset::APP_LIMITED] & 1 != 0,
            sent_total: self.u64_at(offset::BYTES_SENT),
            retransmitted_total: self.u64_at(offset::BYTES_RETRANS),
            received_total: self.u64_at(offset::BYTES_RECEIVED),
        }
    }

    /// The smallest RTT; the smoothed one where the kernel has no minimum yet.
    pub(crate) fn min_rtt(&self) -> Duration {
        match self.u32_at(offset::MIN_RTT) {
            0 | u32::MAX => Duration::from_micros(u64::from(self.u32_at(offset::RTT))),
            micros => Duration::from_micros(u64::from(micros)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::process::Command;

    use socket2::SockRef;

    use super::*;
    use crate::socket::set_congestion_control;

    #[test]
    fn counts_what_was_sent_and_acknowledged() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(&[7; 10_000]).unwrap();
        server.read_exact(&mut [0; 10_000]).unwrap();
        // An answer carries the acknowledgement of everything before it.
        server.write_all(b"x").unwrap();
        client.read_exact(&mut [0]).unwrap();
        let sample = TcpInfo::of(&client).unwrap().sample(5);
        assert!((10_000..=10_001).contains(&sample.acked_total));
        assert_eq!(sample.in_flight, 0);
        assert_eq!(sample.received_total, 1);
        assert_eq!(sample.unsent, 5);
        assert_eq!(sample.ssthresh, u64::MAX, "nothing was lost yet");
        assert!(sample.mss > 500 && sample.cwnd >= u64::from(sample.mss));
        assert!(sample.srtt > Duration::ZERO && sample.min_rtt > Duration::ZERO);
        assert!(sample.min_rtt < Duration::from_secs(60));
    }

    const INSIDE: &str = "FBDT_TEST_INSIDE_SHORT_QUEUE";
    const TEST: &str =
        "socket::tcp_info::tests::segments_that_the_local_queue_refused_are_not_in_flight";

    /// Runs itself again in a network namespace of its own, which needs no root.
    #[test]
    fn segments_that_the_local_queue_refused_are_not_in_flight() {
        if std::env::var_os(INSIDE).is_some() {
            return over_a_short_queue();
        }
        if !Command::new("unshare").args(["-Urn", "true"]).status().unwrap().success() {
            return test_skip::skipped("this machine allows no user namespaces");
        }
        let mut again = Command::new("unshare");
        again.args(["-Urn", "--"]).arg(std::env::current_exe().unwrap());
        again.args(["--exact", TEST, "--nocapture"]).env(INSIDE, "1");
        assert!(again.status().unwrap().success(), "the test failed inside its namespace");
    }

    fn over_a_short_queue() {
        for command in [
            "ip link set lo mtu 1500 gso_max_segs 1 up",
            "tc qdisc add dev lo root tbf rate 200mbit burst 20k limit 60k",
        ] {
            let mut words = command.split(' ');
            let done = Command::new(words.next().unwrap()).args(words).output().unwrap();
            assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        set_congestion_control(&SockRef::from(&client), "reno").unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let size = 8 << 20;
        let writer = std::thread::spawn(move || {
            client.write_all(&vec![7; size]).unwrap();
            client.read_exact(&mut [0]).unwrap();
            client
        });
        server.read_exact(&mut vec![0; size]).unwrap();
        server.write_all(b"x").unwrap();
        let client = writer.join().unwrap();
        let sample = TcpInfo::of(&client).unwrap().sample(0);
        let first_sent = sample.sent_total - sample.retransmitted_total;
        assert!(first_sent > size as u64 + 1, "nothing was refused: this would prove nothing");
        assert_eq!(sample.outstanding(), 0);
    }
}
