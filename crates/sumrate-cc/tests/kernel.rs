//! The programs in this machine's kernel, where this process may load them; elsewhere the refusal.
//!
//! One test, because the kernel's list of congestion controls is one for all.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, SockRef, Socket, Type};
use sumrate_cc::{Algorithm, Coupler, CouplingError, Group, GroupedBy, load, loaded, unload};

#[path = "kernel/growth.rs"]
mod growth;

const SESSION: u64 = 0x5e55_1077;
const BYTES: usize = 8 << 20;
/// A hung test fails after this time; nothing else is timed.
const PATIENCE: Duration = Duration::from_secs(30);
const LOOPBACK: [u8; 4] = [127, 0, 0, 1];
/// Names an algorithm, or a part, where the test runs again in a network namespace of its own.
const INSIDE: &str = "SUMRATE_CC_INSIDE";
const TEST: &str = "the_kernel_runs_them_and_subflows_find_each_other";
/// The two addresses there, both on the loopback interface.
const ADDRESSES: [[u8; 4]; 2] = [[10, 77, 0, 1], [10, 77, 0, 2]];

/// Takes out what was not there before.
struct Borrowed(Vec<Algorithm>);

impl Drop for Borrowed {
    fn drop(&mut self) {
        for algorithm in loaded().into_iter().filter(|algorithm| !self.0.contains(algorithm)) {
            unload(algorithm).unwrap();
        }
    }
}

#[test]
fn the_kernel_runs_them_and_subflows_find_each_other() {
    match std::env::var(INSIDE).as_deref() {
        Ok(growth::SENDER) => return growth::coupled_subflows_grow_less(),
        Ok(growth::RECEIVER) => return growth::receive(),
        Ok(name) => return couples_both_subflows(name),
        Err(_) => {}
    }
    let _borrowed = Borrowed(loaded());
    for algorithm in Algorithm::ALL {
        let coupler = match load(algorithm) {
            Ok(coupler) => coupler,
            Err(error) => return refused(&error),
        };
        assert!(loaded().contains(&algorithm));
        // A second process finds the same.
        let again = load(algorithm).unwrap();
        couples_sockets_that_a_process_names(&coupler, &again);
        couples_a_kernel_mptcp_connection(&coupler);
        inside(algorithm.kernel_name());
    }
    inside(growth::SENDER);
}

fn refused(error: &CouplingError) {
    test_skip::skipped(&error.to_string());
    match error {
        CouplingError::NotBuilt(_) => assert!(error.to_string().contains("clang")),
        error => {
            assert!(error.is_privilege(), "{error}");
            assert!(error.to_string().contains("CAP_"), "{error}");
            assert!(matches!(
                unload(Algorithm::Lia),
                Err(CouplingError::NotLoaded { .. } | CouplingError::Unreachable { .. })
            ));
        }
    }
}

fn couples_sockets_that_a_process_names(coupler: &Coupler, again: &Coupler) {
    let algorithm = coupler.algorithm();
    let listener = listening(Protocol::TCP, LOOPBACK, 0).unwrap();
    let pairs = [(); 2].map(|()| connected(algorithm, &listener).unwrap());
    for (sender, _) in &pairs {
        coupler.join(sender.as_fd(), SESSION).unwrap();
    }
    let shown = said("ss -tin").unwrap();
    assert!(shown.contains(algorithm.kernel_name()), "{shown}");
    let ends = pairs.map(|(sender, receiver)| transfer(sender, receiver));
    let own = Group { number: SESSION, by: GroupedBy::Process, subflows: 2 };
    assert!(again.groups().unwrap().contains(&own), "{:?}", again.groups());
    drop(ends);
    // The last one out deletes it, once the connection has ended.
    let begun = Instant::now();
    while coupler.groups().unwrap().iter().any(|group| group.number == SESSION) {
        assert!(begun.elapsed() < PATIENCE, "{:?}", coupler.groups());
        thread::yield_now();
    }
}

fn couples_a_kernel_mptcp_connection(coupler: &Coupler) {
    let Ok(listener) = listening(Protocol::MPTCP, LOOPBACK, 0) else {
        return test_skip::skipped("this kernel has no MPTCP");
    };
    let (sender, receiver) = connected(coupler.algorithm(), &listener).unwrap();
    let ends = transfer(sender, receiver);
    let groups = coupler.groups().unwrap();
    let found = groups.iter().filter(|group| group.by == GroupedBy::Mptcp && group.subflows == 1);
    assert!(found.count() >= 1, "{groups:?}");
    drop(ends);
}

/// Runs the test again in a namespace: what is named takes its part there.
fn inside(part: &str) {
    if let Err(reason) = ran("unshare -n true") {
        return test_skip::skipped(&format!(
            "no right to make a network namespace, {part} is not shown: {reason}"
        ));
    }
    let status = again_in_a_namespace(part).status().unwrap();
    assert!(status.success(), "{part}: the test failed in its namespace");
}

fn again_in_a_namespace(part: &str) -> Command {
    let mut command = Command::new("unshare");
    command.arg("-n").arg(std::env::current_exe().unwrap());
    command.args(["--exact", TEST, "--nocapture"]).env(INSIDE, part);
    command
}

fn ran(command: &str) -> Result<(), String> {
    said(command).map(drop)
}

/// What a command has said, or why it failed.
fn said(command: &str) -> Result<String, String> {
    let mut words = command.split(' ');
    let done = Command::new(words.next().unwrap_or_default()).args(words).output();
    let done = done.map_err(|error| format!("`{command}`: {error}"))?;
    if done.status.success() {
        return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
    }
    Err(format!("`{command}`: {}", String::from_utf8_lossy(&done.stderr).trim()))
}

/// Both subflows of one MPTCP connection are in one group, which has the connection's token.
fn couples_both_subflows(name: &str) {
    let mut all = Algorithm::ALL.into_iter();
    let algorithm = all.find(|algorithm| algorithm.kernel_name() == name).unwrap();
    let coupler = load(algorithm).unwrap();
    if let Err(reason) = two_endpoints() {
        return test_skip::skipped(&format!("two subflows are not shown: {reason}"));
    }
    let Ok(listener) = listening(Protocol::MPTCP, ADDRESSES[0], 0) else {
        return test_skip::skipped("this kernel has no MPTCP: two subflows are not shown");
    };
    let (mut sender, mut receiver) = connected(algorithm, &listener).unwrap();
    let begun = Instant::now();
    loop {
        // Bytes are counted, not compared: over two subflows on one loopback interface a 6.18 kernel
        // delivers some at wrong places, with its own cubic, reno and bbr too.
        (sender, receiver, _) = carry(sender, receiver);
        let shown = said("ss -tin").unwrap();
        let groups = coupler.groups().unwrap();
        // Each subflow of the sender shows its own token behind that of the other end.
        let here =
            |group: &&Group| shown.matches(&format!("/{:04x}(id:", group.number)).count() == 2;
        let found = groups.iter().filter(|group| group.by == GroupedBy::Mptcp).find(here);
        if found.is_some_and(|group| group.subflows == 2) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{groups:?}\n{shown}");
    }
}

/// Two addresses on the loopback interface; connections get a subflow from the second one too.
fn two_endpoints() -> Result<(), String> {
    let [first, second] = ADDRESSES.map(|address| Ipv4Addr::from(address).to_string());
    for command in [
        "ip link set lo up".to_owned(),
        format!("ip address add {first}/32 dev lo"),
        format!("ip address add {second}/32 dev lo"),
        "ip mptcp limits set subflows 2 add_addr_accepted 2".to_owned(),
        format!("ip mptcp endpoint add {second} dev lo subflow"),
    ] {
        ran(&command)?;
    }
    Ok(())
}

/// What accepts connections; further subflows of one come to it as well.
fn listening(protocol: Protocol, address: [u8; 4], port: u16) -> std::io::Result<Socket> {
    let listener = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol))?;
    listener.bind(&SocketAddr::from((address, port)).into())?;
    listener.listen(1)?;
    Ok(listener)
}

/// A connection over loopback whose sender uses the algorithm.
fn connected(algorithm: Algorithm, listener: &Socket) -> std::io::Result<(TcpStream, TcpStream)> {
    let protocol = listener.protocol()?;
    let sender = Socket::new(Domain::IPV4, Type::STREAM, protocol)?;
    sender.set_tcp_congestion(algorithm.kernel_name().as_bytes()).unwrap();
    sender.connect(&listener.local_addr()?)?;
    let (receiver, _) = listener.accept()?;
    let name = SockRef::from(&sender).tcp_congestion().unwrap();
    assert!(name.starts_with(algorithm.kernel_name().as_bytes()));
    Ok((sender.into(), receiver.into()))
}

/// Every byte arrives as it was sent.
fn transfer(sender: TcpStream, receiver: TcpStream) -> (TcpStream, TcpStream) {
    let (sender, receiver, received) = carry(sender, receiver);
    assert!(received == pattern(), "a byte differs");
    (sender, receiver)
}

fn pattern() -> Vec<u8> {
    (0..BYTES).map(|at| (at % 251) as u8).collect()
}

/// As many bytes arrive as were sent; what they are is returned.
fn carry(mut sender: TcpStream, mut receiver: TcpStream) -> (TcpStream, TcpStream, Vec<u8>) {
    let reading = thread::spawn(move || {
        let mut bytes = vec![0; BYTES];
        receiver.read_exact(&mut bytes).unwrap();
        (bytes, receiver)
    });
    sender.write_all(&pattern()).unwrap();
    let (received, receiver) = reading.join().unwrap();
    (sender, receiver, received)
}
