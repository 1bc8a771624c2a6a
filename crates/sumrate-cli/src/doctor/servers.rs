//! How far each network leads to the servers of a link: names, keys, families. Unlike the other checks,
//! these ask and connect.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use fbdt::{NameReport, NetworkReport, PathTrouble};

use super::{Finding, Level};
use crate::exit::is_private;
use crate::status::list;

/// A name that every name server knows, and its addresses (RFC 7050): who says otherwise lies.
pub(crate) const WITNESS: &str = "ipv4only.arpa";
const WITNESS_ADDRESSES: [Ipv4Addr; 2] =
    [Ipv4Addr::new(192, 0, 0, 170), Ipv4Addr::new(192, 0, 0, 171)];
/// A page that portals redirect to their own.
const OPEN_PAGE: &str = "http://neverssl.com/";

/// What was found of all networks; `system` are the system's name servers.
pub(crate) fn findings(networks: &[NetworkReport], system: &[IpAddr]) -> Vec<Finding> {
    let mut findings: Vec<Finding> =
        system.iter().filter_map(|server| name_server(*server, networks, system)).collect();
    for network in networks {
        let of_network = [portal(network, networks), server(network, networks)];
        findings.extend(of_network.into_iter().flatten());
    }
    findings
}

/// Whether the server has proven its key over this network.
fn is_reached(network: &NetworkReport) -> bool {
    network.servers.iter().any(|server| server.trouble.is_none())
}

/// A problem only where no network leads to the server.
fn level(networks: &[NetworkReport]) -> Level {
    if networks.iter().any(is_reached) { Level::Warning } else { Level::Problem }
}

/// A name server of the system that answers over no network: each look-up waits for it.
fn name_server(server: IpAddr, networks: &[NetworkReport], system: &[IpAddr]) -> Option<Finding> {
    let answers = |report: &&NameReport| report.addresses.is_some();
    let said = || networks.iter().flat_map(|network| &network.names);
    if server.is_loopback() || said().filter(answers).any(|report| report.server == server) {
        return None;
    }
    let others = said().filter(answers);
    let works = others.clone().any(|report| system.contains(&report.server));
    let found = format!(
        "the name server {server} of /etc/resolv.conf answers over no network, so that each look-up of a \
         program waits for it"
    );
    let level = if works { Level::Warning } else { Level::Problem };
    let finding = Finding::new("name-server", level, found);
    let known = networks.iter().find_map(|network| {
        let answering = network.names.iter().find(answers)?;
        Some(format!("resolvectl dns {} {}", network.interface, answering.server))
    });
    Some(match known {
        Some(command) => finding.mend(command),
        None => finding,
    })
}

/// A network that pretends to be others: its name server lies, or another key answers.
fn portal(network: &NetworkReport, networks: &[NetworkReport]) -> Option<Finding> {
    let lies = network.names.iter().find_map(|report| lie(report, networks));
    let other_key = network.servers.iter().find(|server| {
        server.trouble.as_ref().is_some_and(|(trouble, _)| *trouble == PathTrouble::OtherKey)
    });
    let found = match (lies, other_key) {
        (Some((report, address)), _) => format!(
            "the name server {} says that {} is {address}: a captive portal, or a filter of names",
            report.server, report.name
        ),
        (None, Some(server)) => format!(
            "{} shows another key than the link's: a captive portal or another server answers there",
            server.server
        ),
        (None, None) => return None,
    };
    let name = &network.interface;
    let found = format!(
        "{found}; log in by a browser, at {OPEN_PAGE}, or leave the network out until then"
    );
    let finding = Finding::new("captive-portal", level(networks), found).of(name);
    Some(finding.mend(format!("sumrate up LINK --not {name}")))
}

/// The answer, and the address in it that cannot be right.
fn lie<'a>(report: &'a NameReport, networks: &[NetworkReport]) -> Option<(&'a NameReport, IpAddr)> {
    let addresses = report.addresses.as_deref().unwrap_or_default();
    let wrong = match report.name == WITNESS {
        true => addresses.iter().find(|address| match address {
            IpAddr::V4(v4) => !WITNESS_ADDRESSES.contains(v4),
            IpAddr::V6(_) => false,
        }),
        // A server at home has a private address, and then everybody says so.
        false => addresses.iter().find(|address| {
            let others = networks.iter().flat_map(|network| &network.names);
            let of_name = others.filter(|other| other.name == report.name);
            let mut said = of_name.flat_map(|other| other.addresses.iter().flatten());
            is_private(**address) && said.any(|other| !is_private(*other))
        }),
    };
    wrong.map(|address| (report, *address))
}

/// Whether the server is reached over this network, and why not.
fn server(network: &NetworkReport, networks: &[NetworkReport]) -> Option<Finding> {
    let name = &network.interface;
    if let Some(reached) = network.servers.iter().find(|server| server.trouble.is_none()) {
        let by = if network.has_ipv4 || reached.server.is_ipv4() { "" } else { " over IPv6" };
        let found = format!("{} answers{by} and has the link's key", reached.server);
        return Some(Finding::ok("server", found).of(name));
    }
    if let Some((trouble, words)) = &network.no_server {
        let finding = Finding::new("server", level(networks), words.clone()).of(name);
        return Some(match trouble {
            PathTrouble::NoNat64 => finding
                .mend("on the server: sumrate serve --listen 0.0.0.0:PORT --listen '[::]:PORT'"),
            _ => finding,
        });
    }
    let (failed, trouble, words) = network.servers.iter().find_map(|server| {
        let (trouble, words) = server.trouble.as_ref()?;
        (*trouble != PathTrouble::OtherKey).then_some((server.server, *trouble, words))
    })?;
    Some(unreached(network, networks, (failed, trouble, words)))
}

/// That nothing comes back from the server over this network.
fn unreached(
    network: &NetworkReport,
    networks: &[NetworkReport],
    (server, trouble, words): (SocketAddr, PathTrouble, &str),
) -> Finding {
    let reached: Vec<&str> = networks
        .iter()
        .filter(|other| is_reached(other))
        .map(|other| other.interface.as_str())
        .collect();
    let works = network.names.iter().any(|report| report.addresses.is_some());
    let finding =
        |found: String| Finding::new("server", level(networks), found).of(&network.interface);
    match (trouble, works, reached.is_empty()) {
        (PathTrouble::NoAnswer | PathTrouble::ConnectionRefused, true, false) => finding(format!(
            "{server} does not answer here, but over {}, and this network works: the server may have \
             banned this network's address (`ufw limit`, fail2ban), or a firewall blocks the port",
            list(&reached)
        ))
        .mend("on the server: fail2ban-client unban --all"),
        (PathTrouble::NoAnswer, true, true) => finding(format!(
            "{server} does not answer over any network: is `sumrate serve` running there, and does its \
             firewall let this TCP port in?"
        ))
        .mend(format!("on the server: ufw allow {}/tcp", server.port())),
        (PathTrouble::NoAnswer, false, _) => {
            finding(format!("neither {server} nor a name server answers: the network leads nowhere"))
        }
        _ => finding(words.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fbdt::ServerReach;

    fn network(name: &str, names: &[(&str, &str, Option<&str>)]) -> NetworkReport {
        let report = |(server, name, address): &(&str, &str, Option<&str>)| NameReport {
            server: server.parse().unwrap(),
            name: (*name).to_owned(),
            addresses: address.map(|address| vec![address.parse().unwrap()]),
        };
        NetworkReport {
            interface: name.to_owned(),
            has_ipv4: true,
            names: names.iter().map(report).collect(),
            servers: Vec::new(),
            no_server: None,
        }
    }

    fn with(
        mut network: NetworkReport,
        server: &str,
        trouble: Option<PathTrouble>,
    ) -> NetworkReport {
        let trouble = trouble.map(|trouble| (trouble, "words".to_owned()));
        network.servers.push(ServerReach { server: server.parse().unwrap(), trouble });
        network
    }

    const SERVER: &str = "198.51.100.1:7443";
    const GOOD: (&str, &str, Option<&str>) = ("8.8.8.8", WITNESS, Some("192.0.0.170"));

    fn found(networks: &[NetworkReport], system: &[&str]) -> Vec<(String, Option<String>, Level)> {
        let system: Vec<IpAddr> = system.iter().map(|server| server.parse().unwrap()).collect();
        let findings = findings(networks, &system);
        findings.into_iter().map(|f| (f.check, f.interface, f.level)).collect()
    }

    fn of(check: &str, name: &str, level: Level) -> (String, Option<String>, Level) {
        (check.to_owned(), Some(name.to_owned()), level)
    }

    #[test]
    fn a_network_that_leads_to_the_server_is_fine() {
        let fine = with(network("wifi0", &[GOOD]), SERVER, None);
        assert_eq!(found(&[fine], &["8.8.8.8", "127.0.0.53"]), [of("server", "wifi0", Level::Ok)]);
    }

    #[test]
    fn a_portal_is_known_by_lies_and_by_another_key() {
        let lying = network("wifi0", &[("10.1.0.1", WITNESS, Some("10.1.0.1"))]);
        let fine = || with(network("lte0", &[GOOD]), SERVER, None);
        let warned = found(&[lying.clone(), fine()], &[]);
        assert_eq!(warned[0], of("captive-portal", "wifi0", Level::Warning));
        assert_eq!(found(&[lying], &[])[0].2, Level::Problem, "no other network is there");
        let local = network("wifi0", &[("10.1.0.1", "a.example", Some("10.1.0.1"))]);
        let right = network("lte0", &[("8.8.8.8", "a.example", Some("198.51.101.1"))]);
        assert!(found(&[local.clone(), right], &[]).len() == 1);
        assert!(found(&[local], &[]).is_empty(), "a server at home");
        let other = with(network("wifi0", &[GOOD]), "10.1.0.1:7443", Some(PathTrouble::OtherKey));
        let findings = findings(&[other, fine()], &[]);
        assert_eq!(findings[0].mend.as_deref(), Some("sumrate up LINK --not wifi0"));
    }

    #[test]
    fn a_name_server_behind_a_dead_uplink_is_named_with_one_that_answers() {
        let dead = network("wifi0", &[("10.1.0.1", WITNESS, None), ("8.8.8.8", WITNESS, None)]);
        let alive = network("lte0", &[("10.1.0.1", WITNESS, None), GOOD]);
        let system = ["10.1.0.1".parse().unwrap()];
        let finding = &findings(&[dead.clone(), alive], &system)[0];
        assert_eq!((finding.check.as_str(), finding.level), ("name-server", Level::Problem));
        assert_eq!(finding.mend.as_deref(), Some("resolvectl dns lte0 8.8.8.8"));
        let finding = &findings(&[dead], &system)[0];
        assert_eq!(finding.mend, None, "nobody answers");
    }

    #[test]
    fn silence_over_one_network_alone_may_be_a_ban() {
        let silent = || with(network("wifi0", &[GOOD]), SERVER, Some(PathTrouble::NoAnswer));
        let fine = with(network("lte0", &[GOOD]), SERVER, None);
        let finding = &findings(&[silent(), fine], &[])[0];
        assert!(finding.found.contains("but over lte0"), "{}", finding.found);
        assert_eq!(finding.level, Level::Warning);
        let finding = &findings(&[silent()], &[])[0];
        assert_eq!(finding.level, Level::Problem);
        assert_eq!(finding.mend.as_deref(), Some("on the server: ufw allow 7443/tcp"));
        let nowhere = with(network("wifi0", &[]), SERVER, Some(PathTrouble::NoAnswer));
        assert!(findings(&[nowhere], &[])[0].found.contains("leads nowhere"));
    }

    #[test]
    fn a_missing_nat64_is_the_servers_to_mend() {
        let mut only_ipv6 = network("wifi0", &[]);
        only_ipv6.has_ipv4 = false;
        only_ipv6.no_server = Some((PathTrouble::NoNat64, "no NAT64".to_owned()));
        let finding = &findings(&[only_ipv6], &[])[0];
        assert_eq!(finding.level, Level::Problem);
        assert!(finding.mend.as_ref().unwrap().contains("--listen '[::]:PORT'"));
    }
}
