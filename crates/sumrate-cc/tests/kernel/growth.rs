//! Two coupled subflows over one path grow less than two uncoupled ones do for the same bytes.
//!
//! The receiver is a process in a namespace of its own behind a pair of interfaces. Its
//! acknowledgements pass a queue of a fixed rate: both subflows have its waiting time as their RTT,
//! and nothing is lost. Slow start ends at two segments, so that every growth is the algorithm's.
//! Windows are compared once the same bytes have been acknowledged; when that is does not matter.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::process::Child;
use std::thread;
use std::time::Instant;

use socket2::{Domain, Protocol, Socket, Type};
use sumrate_cc::{Algorithm, load};

use crate::{PATIENCE, again_in_a_namespace, listening, ran, said};

/// Which part the test has where it runs again in a namespace.
pub(crate) const SENDER: &str = "sender";
pub(crate) const RECEIVER: &str = "receiver";

const SUBFLOWS: usize = 2;
const BYTES: usize = 3 << 20;
/// Of each subflow: what a connection begins with, RFC 6928.
const FIRST_WINDOW: u32 = 10;
/// Two equal subflows of one path grow together as one TCP, each by a quarter of a TCP's growth per
/// acknowledgement. With window^2 = first window^2 + 2 x acknowledged that comes to 0.43 of what two
/// TCPs grow by here. BALIA grows as LIA where paths are equal; OLIA moves windows to and fro.
const MOST_OF_UNCOUPLED: f64 = 0.85;
/// A segment that overtakes another is a loss until it is undone: such a transfer shows nothing.
const ATTEMPTS: usize = 5;
const ADDRESSES: [[u8; 4]; 2] = [[10, 78, 0, 1], [10, 78, 0, 2]];
const NETWORK: &str = "10.78.0.0/24";
/// Slow start ends at two segments, and a machine that stands still is no loss.
const METRICS: &str = "ssthresh lock 2 rto_min 5s";
const PORT: u16 = 4000;

/// Ends with the test.
struct Receiver(Child);

impl Drop for Receiver {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

/// In the receiver's namespace: reads all bytes of every connection, and says so with one.
pub(crate) fn receive() {
    let listener = listening(Protocol::TCP, [0; 4], PORT).unwrap();
    // More than any window here.
    listener.set_recv_buffer_size(1 << 20).unwrap();
    loop {
        let (socket, _) = listener.accept().unwrap();
        thread::spawn(move || {
            let mut stream = TcpStream::from(socket);
            if stream.read_exact(&mut vec![0; BYTES]).is_ok() {
                stream.write_all(&[1]).unwrap();
            }
        });
    }
}

/// In the sender's namespace.
pub(crate) fn coupled_subflows_grow_less() {
    let _receiver = match path() {
        Ok(receiver) => receiver,
        Err(reason) => return test_skip::skipped(&format!("growth is not shown: {reason}")),
    };
    let growth = |algorithm| (0..ATTEMPTS).find_map(|_| growth_without_loss(algorithm));
    let uncoupled = growth(Algorithm::Reno).unwrap();
    for algorithm in Algorithm::COUPLED {
        let coupled = growth(algorithm).unwrap();
        println!("{algorithm}: windows grow by {coupled}, uncoupled by {uncoupled} segments");
        assert!(
            coupled > 0 && f64::from(coupled) < MOST_OF_UNCOUPLED * f64::from(uncoupled),
            "{algorithm}: windows grow by {coupled} segments, uncoupled ones by {uncoupled}"
        );
    }
}

/// The pair of interfaces, the queue behind it, and who listens there.
fn path() -> Result<Receiver, String> {
    let receiver = Receiver(again_in_a_namespace(RECEIVER).spawn().unwrap());
    let pid = receiver.0.id().to_string();
    let namespace = |of: &str| fs::read_link(format!("/proc/{of}/ns/net")).unwrap();
    wait_until("in a namespace of its own", || namespace(&pid) != namespace("self"));
    let [own, other] = ADDRESSES.map(|address| Ipv4Addr::from(address).to_string());
    // A segment is a packet: few acknowledgements of large ones would hardly queue.
    ran("ip link add near gso_max_segs 1 type veth peer name far")?;
    ran(&format!("ip link set far netns {pid}")).unwrap();
    ran(&format!("ip address add {own}/24 dev near")).unwrap();
    ran("ip link set near up").unwrap();
    ran(&format!("ip route change {NETWORK} dev near src {own} {METRICS}")).unwrap();
    for setting in ["tcp_no_metrics_save", "tcp_no_ssthresh_metrics_save"] {
        ran(&format!("sysctl -q -w net.ipv4.{setting}=0")).unwrap();
    }
    let there = format!("nsenter -t {pid} -n");
    ran(&format!("{there} ip address add {other}/24 dev far")).unwrap();
    ran(&format!("{there} ip link set far up")).unwrap();
    // Acknowledgements wait longer here than anything does elsewhere.
    ran(&format!("{there} tc qdisc add dev far root tbf rate 1mbit burst 2kb limit 1mb"))?;
    wait_until("listening", || TcpStream::connect((other.as_str(), PORT)).is_ok());
    // The kernel takes a threshold from the route when a connection ends, for the next one.
    wait_until("known", || said("ip tcp_metrics show").is_ok_and(|s| s.contains(" ssthresh 2 ")));
    Ok(receiver)
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < PATIENCE, "the receiver is not {what}");
        thread::yield_now();
    }
}

/// By how much the windows of both subflows together have grown once all bytes are acknowledged;
/// nothing where a loss has moved the threshold.
fn growth_without_loss(algorithm: Algorithm) -> Option<u32> {
    let coupler = load(algorithm).unwrap();
    let subflows = [(); SUBFLOWS].map(|()| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP)).unwrap();
        socket.set_tcp_congestion(algorithm.kernel_name().as_bytes()).unwrap();
        socket.connect(&SocketAddr::from((ADDRESSES[1], PORT)).into()).unwrap();
        coupler.join(socket.as_fd(), 1).unwrap();
        TcpStream::from(socket)
    });
    let sent = subflows.map(|mut stream| {
        thread::spawn(move || {
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            stream.write_all(&vec![0; BYTES]).unwrap();
            stream.read_exact(&mut [0]).unwrap();
            stream
        })
    });
    let ended = sent.map(|thread| thread.join().unwrap());
    let shown = said("ss -tinH").unwrap();
    let of_it = || shown.lines().filter(|line| line.contains(algorithm.kernel_name()));
    assert_eq!(of_it().count(), SUBFLOWS, "{shown}");
    drop(ended);
    let windows = of_it().map(|line| number(line, "cwnd:").unwrap()).sum::<u32>();
    let thresholds = of_it().all(|line| number(line, "ssthresh:") == Some(2));
    thresholds.then(|| windows - FIRST_WINDOW * u32::try_from(SUBFLOWS).unwrap())
}

fn number(line: &str, name: &str) -> Option<u32> {
    line.split(' ').find_map(|word| word.strip_prefix(name))?.parse().ok()
}
