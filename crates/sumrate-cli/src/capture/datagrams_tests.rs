use super::*;
use crate::status::SessionReport;
use crate::tunnel::in_memory::pipe_tunnel;
use crate::tunnel::{TunnelError, Use};
use bytes::Bytes;
use tokio::io::DuplexStream;

/// An association whose other end is in the test.
struct Pipe {
    sent: mpsc::UnboundedSender<Vec<u8>>,
    received: mpsc::UnboundedReceiver<Bytes>,
}

impl Carrier for Pipe {
    fn longest(&self) -> usize {
        100
    }

    async fn send(&mut self, message: &[u8], _rules: &ClassRules) -> io::Result<()> {
        self.sent.send(message.to_vec()).map_err(io::Error::other)
    }

    async fn receive(&mut self) -> io::Result<Option<Bytes>> {
        Ok(self.received.recv().await)
    }
}

/// A session that never opens a stream.
#[derive(Clone)]
struct Stuck;

impl Tunnel for Stuck {
    type Stream = DuplexStream;

    async fn open(&self, _purpose: Use) -> Result<DuplexStream, TunnelError> {
        std::future::pending().await
    }

    fn report(&self) -> Option<SessionReport> {
        None
    }
}

const PROGRAM: &str = "198.19.253.1:4000";

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn datagram(source: &str, destination: &str, payload: &[u8]) -> Datagram {
    let (source, destination) = (address(source), address(destination));
    Datagram { source, destination, payload: payload.to_vec() }
}

fn waiting(destination: &str, payload: &[u8]) -> Waiting {
    let room = Arc::new(Semaphore::new(1)).try_acquire_owned().unwrap();
    Waiting(datagram(PROGRAM, destination, payload), room)
}

fn outlet<T>(tunnel: T) -> Outlet<T> {
    Outlet::new(tunnel, Arc::default(), None, CancellationToken::new(), TaskTracker::new())
}

/// The protocol's number of an IPv4 packet, its source, and whether it ends so.
fn is(packet: &[u8], protocol: u8, source: &str, end: &[u8]) -> bool {
    let from = format!("{}.{}.{}.{}", packet[12], packet[13], packet[14], packet[15]);
    packet[9] == protocol && from == source && packet.ends_with(end)
}

const UDP: u8 = 17;
const ICMP: u8 = 1;

#[tokio::test(start_paused = true)]
async fn replies_come_from_whom_was_asked_and_silence_ends_it() {
    let (sent, mut at_exit) = mpsc::unbounded_channel();
    let (from_exit, received) = mpsc::unbounded_channel();
    let (queue, queued) = mpsc::unbounded_channel();
    let (replies, mut packets) = Replies::new(8);
    let started = Instant::now();
    let relayed = tokio::spawn(async move {
        let rules = ClassRules::default();
        relay(Pipe { sent, received }, address(PROGRAM), queued, &rules, &replies).await
    });
    let peers = ["203.0.113.7:7", "203.0.113.8:8"];
    for peer in peers {
        queue.send(waiting(peer, b"hello")).unwrap();
        let message = at_exit.recv().await.unwrap();
        assert_eq!(message, service::Datagram::encode(address(peer), b"hello"));
    }
    for (from, data) in [("203.0.113.9:9", "nobody"), (peers[1], "two"), (peers[0], "one")] {
        let message = service::Datagram::encode(address(from), data.as_bytes());
        from_exit.send(Bytes::from(message)).unwrap();
    }
    assert!(is(&packets.recv().await.unwrap(), UDP, "203.0.113.8", b"two"));
    assert!(is(&packets.recv().await.unwrap(), UDP, "203.0.113.7", b"one"));
    queue.send(waiting(peers[0], &[7; 100])).unwrap();
    let refused = packets.recv().await.unwrap();
    assert!(is(&refused, ICMP, "203.0.113.7", &[7; 100]), "it is longer than a message");
    tokio::time::sleep(IDLE - Duration::from_secs(1)).await;
    queue.send(waiting(peers[0], b"still there")).unwrap();
    assert!(at_exit.recv().await.is_some());
    assert!(relayed.await.unwrap().is_ok());
    let lasted = started.elapsed();
    assert!(lasted >= IDLE * 2 - Duration::from_secs(2) && lasted <= IDLE * 2, "{lasted:?}");
    assert!(queue.is_closed());
}

#[tokio::test(start_paused = true)]
async fn a_session_without_messages_refuses() {
    let (tunnel, mut requests) = pipe_tunnel();
    let (outlet, (replies, mut packets)) = (outlet(tunnel), Replies::new(8));
    for pause in [Duration::ZERO, REFUSED_FOR / 2, REFUSED_FOR] {
        tokio::time::sleep(pause).await;
        for data in [b"first", b"again"] {
            assert!(outlet.carry(datagram(PROGRAM, "203.0.113.7:443", data), &replies));
            assert!(is(&packets.recv().await.unwrap(), ICMP, "203.0.113.7", data));
        }
        let asked = requests.try_recv().is_ok();
        assert_eq!(asked, pause != REFUSED_FOR / 2, "after {pause:?}: once in a second");
        assert!(requests.try_recv().is_err(), "after {pause:?}: one request for both");
    }
}

#[tokio::test]
async fn there_are_so_many_and_no_more_and_all_end() {
    let (outlet, (replies, _packets)) = (outlet(Stuck), Replies::new(8));
    let program = |number: usize| format!("198.19.253.1:{}", 1000 + number);
    for number in 0..=ASSOCIATIONS_MAX {
        let first = datagram(&program(number), "203.0.113.7:443", b"x");
        assert!(outlet.carry(first, &replies));
    }
    let first = address(&program(0));
    {
        let associations = outlet.associations.lock().unwrap();
        assert_eq!(associations.len(), ASSOCIATIONS_MAX);
        assert!(!associations.contains_key(&first), "it was silent longest");
    }
    outlet.stop.cancel();
    assert!(!outlet.carry(datagram(&program(1), "203.0.113.7:443", b"x"), &replies));
    outlet.work.close();
    outlet.work.wait().await;
    assert!(outlet.associations.lock().unwrap().values().all(|entry| entry.queue.is_closed()));
}

#[tokio::test]
async fn what_waits_is_bounded() {
    let (outlet, (replies, _packets)) = (outlet(Stuck), Replies::new(8));
    let room = |program: &str| {
        let associations = outlet.associations.lock().unwrap();
        associations[&address(program)].room.available_permits()
    };
    for _ in 0..64 {
        outlet.carry(datagram(PROGRAM, "203.0.113.7:443", &[0; 1400]), &replies);
    }
    assert_eq!(WAITING_BYTES_MAX - room(PROGRAM), 64 * (1400 + DATAGRAM_COST), "a burst fits");
    for _ in 0..8 {
        outlet.carry(datagram(PROGRAM, "203.0.113.7:443", &[0; 60_000]), &replies);
    }
    assert!(room(PROGRAM) < 60_000, "all the room is used, and no more");
    let other = "198.19.253.1:4001";
    outlet.carry(datagram(other, "203.0.113.7:443", &[0; 60_000]), &replies);
    assert!(room(other) < WAITING_BYTES_MAX - 60_000, "another program has its own room");
}
