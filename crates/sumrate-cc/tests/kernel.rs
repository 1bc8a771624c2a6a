//! The programs in this machine's kernel, where this process may load them; elsewhere the refusal.
//!
//! One test, because the kernel's list of congestion controls is one for all.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, SockRef, Socket, Type};
use sumrate_cc::{Algorithm, Coupler, CouplingError, Group, GroupedBy, load, loaded, unload};

const SESSION: u64 = 0x5e55_1077;
const BYTES: usize = 8 << 20;
/// A hung test fails after this time; nothing else is timed.
const PATIENCE: Duration = Duration::from_secs(30);

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
    }
}

fn refused(error: &CouplingError) {
    println!("{error}");
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
    let pairs = [(); 2].map(|()| connected(algorithm, Protocol::TCP).unwrap());
    for (sender, _) in &pairs {
        coupler.join(sender.as_fd(), SESSION).unwrap();
    }
    let shown = Command::new("ss").args(["-tin"]).output().unwrap();
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
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
    let Ok((sender, receiver)) = connected(coupler.algorithm(), Protocol::MPTCP) else {
        println!("this kernel has no MPTCP: nothing to show");
        return;
    };
    let ends = transfer(sender, receiver);
    let groups = coupler.groups().unwrap();
    let found = groups.iter().filter(|group| group.by == GroupedBy::Mptcp && group.subflows == 1);
    assert!(found.count() >= 1, "{groups:?}");
    drop(ends);
}

/// A connection over loopback whose sender uses the algorithm.
fn connected(algorithm: Algorithm, protocol: Protocol) -> std::io::Result<(TcpStream, TcpStream)> {
    let listener = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol))?;
    listener.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into())?;
    listener.listen(1)?;
    let sender = Socket::new(Domain::IPV4, Type::STREAM, Some(protocol))?;
    sender.set_tcp_congestion(algorithm.kernel_name().as_bytes()).unwrap();
    sender.connect(&listener.local_addr()?)?;
    let (receiver, _) = listener.accept()?;
    let name = SockRef::from(&sender).tcp_congestion().unwrap();
    assert!(name.starts_with(algorithm.kernel_name().as_bytes()));
    Ok((sender.into(), receiver.into()))
}

/// Every byte arrives.
fn transfer(mut sender: TcpStream, mut receiver: TcpStream) -> (TcpStream, TcpStream) {
    let reading = thread::spawn(move || {
        let mut bytes = vec![0; BYTES];
        receiver.read_exact(&mut bytes).unwrap();
        (bytes, receiver)
    });
    let sent: Vec<u8> = (0..BYTES).map(|at| (at % 251) as u8).collect();
    sender.write_all(&sent).unwrap();
    let (received, receiver) = reading.join().unwrap();
    assert!(received == sent, "a byte differs");
    (sender, receiver)
}
