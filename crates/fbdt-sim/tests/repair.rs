//! Who speaks meanwhile does not wait until what a path owed is repaired.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use fbdt_proto::{Class, MessageOptions};
use fbdt_sim::{LinkChange, LinkParameters, Scenario, Simulation};

const MS: Duration = Duration::from_millis(1);

/// A call of 200 bytes each 10 ms over the slower radio while the faster one is dark and owes megabytes
/// of a download, if there is one: how late its messages were at most, and its bytes.
fn call_in_the_dark(download: bool) -> (Duration, Duration) {
    let links = vec![LinkParameters::new(300.0, 40.0), LinkParameters::new(20.0, 40.0)];
    let scenario = Scenario { log: false, ..Scenario::new(3, links) };
    let mut both = Simulation::new(scenario).unwrap();
    both.run(MS * 500).unwrap();
    if download {
        let stream = both.open(false, Class::Background).unwrap();
        both.write(false, stream, 400 << 20);
    }
    let [spoken, written] = [0, 1].map(|_| both.open(false, Class::Conversational).unwrap());
    let (mut sent, mut late) = (0, 0);
    for index in 0..400 {
        // What is in the air then is lost, too.
        if index == 200 || index == 204 {
            both.change(0, &LinkChange::Blackout(true), index == 204, true);
        }
        both.send_message(false, spoken, 192, MessageOptions::default()).unwrap();
        both.write(false, written, 200);
        sent += 400;
        both.run(MS * 10).unwrap();
        let here = both.stats()[0].classes[Class::Conversational as usize].received_bytes;
        let spoken = both.messages().len() as u64 * 200;
        late = late.max(sent / 2 - (here - spoken));
    }
    both.run(MS * 2000).unwrap();
    let arrived = both.messages().iter().filter(|arrival| arrival.stream == spoken);
    let latencies: Vec<Duration> = arrived.map(|arrival| arrival.latency).collect();
    assert_eq!(latencies.len(), 400, "every one arrived");
    let written = MS * 10 * u32::try_from(late / 200).unwrap();
    (latencies.into_iter().max().unwrap(), written)
}

#[test]
fn f11_a_call_does_not_wait_until_a_download_is_repaired() {
    let alone = call_in_the_dark(false);
    let beside = call_in_the_dark(true);
    // The time until the path is suspect, and what is in the queue of the other one.
    let bound = MS * 150;
    assert!(
        beside.0 < alone.0 + bound && beside.1 < alone.1 + bound,
        "messages and bytes {beside:?}, without the download {alone:?}"
    );
}
