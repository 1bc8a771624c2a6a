//! Sessions over links with jitter, policers, bursts of losses, rate steps and radio sleep.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use fbdt_proto::Class;
use fbdt_sim::{Impairments, LinkParameters, Scenario, Simulation, Sleep, TcpGrowth};

const MS: Duration = Duration::from_millis(1);

/// Mbit/s of a transfer over such links, each with an upload of a fifth of its rate, and the log's length.
fn transfer(tcp: TcpGrowth, upload: bool, links: &[LinkParameters]) -> (f64, usize) {
    let mut scenario = Scenario::new(5, Vec::new());
    (scenario.tcp, scenario.paced) = (tcp, true);
    let mut simulation = Simulation::new(scenario).unwrap();
    for (index, down) in links.iter().enumerate() {
        let up = LinkParameters { rate: down.rate / 5.0, ..down.clone() };
        simulation.add_path_of([up, down.clone()], index as u64);
    }
    simulation.run(MS * 500).unwrap();
    let stream = simulation.open(upload, Class::Background).unwrap();
    simulation.write(upload, stream, 1 << 40);
    simulation.run(MS * 5000).unwrap();
    let delivered = simulation.delivered()[usize::from(upload)];
    (delivered as f64 * 8e-6 / 5.0, simulation.log().len())
}

fn impaired(mbps: f64, rtt: f64, impairments: Impairments) -> LinkParameters {
    let queue = MS * 100;
    LinkParameters { queue, impairments, ..LinkParameters::new(mbps, rtt) }
}

fn all() -> Vec<(&'static str, LinkParameters)> {
    let plain = Impairments::default;
    vec![
        ("clean", impaired(20.0, 40.0, plain())),
        ("jitter", impaired(20.0, 40.0, Impairments { jitter: MS * 10, ..plain() })),
        (
            "overtaking",
            impaired(20.0, 40.0, Impairments { jitter: MS * 4, overtaking: true, ..plain() }),
        ),
        ("bucket", impaired(20.0, 40.0, Impairments { burst: 1 << 20, ..plain() })),
        ("policer", impaired(20.0, 40.0, Impairments { burst: 250_000, policer: true, ..plain() })),
        (
            "bursts of losses",
            LinkParameters {
                loss: 0.002,
                ..impaired(20.0, 40.0, Impairments { loss_run: 8.0, ..plain() })
            },
        ),
        (
            "rate steps",
            impaired(20.0, 40.0, Impairments { rates: vec![(MS * 2000, 1e6)], ..plain() }),
        ),
        (
            "sleep",
            impaired(
                20.0,
                40.0,
                Impairments { sleep: Some(Sleep { rest: MS * 100, wake: MS * 100 }), ..plain() },
            ),
        ),
    ]
}

#[test]
fn transfers_go_on_under_each_impairment_in_both_directions() {
    for tcp in [TcpGrowth::Linux, TcpGrowth::Bbr] {
        for (name, link) in all() {
            let links = [link, LinkParameters::new(5.0, 20.0)];
            let (down, _) = transfer(tcp, false, &links);
            let (up, _) = transfer(tcp, true, &links);
            assert!((4.0..27.0).contains(&down), "{tcp:?}, {name}: {down} Mbit/s down");
            assert!((0.8..9.0).contains(&up), "{tcp:?}, {name}: {up} Mbit/s up");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_session() {
    for (name, link) in all() {
        let links = [link, LinkParameters::new(5.0, 20.0)];
        let once = transfer(TcpGrowth::Linux, false, &links);
        assert_eq!(once, transfer(TcpGrowth::Linux, false, &links), "{name}");
    }
}
