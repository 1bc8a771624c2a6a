use super::*;

fn servers(named: &[&str]) -> Arc<Servers> {
    let named: Vec<ServerAddress> = named.iter().map(|text| text.parse().unwrap()).collect();
    Servers::new(&named, &KnownServers::default(), None)
}

fn numbered() -> Arc<Servers> {
    servers(&["10.1.1.2:1", "10.2.1.2:2", "[fd00::1]:3"])
}

fn ips(texts: &[&str]) -> Vec<IpAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn ports(candidates: Result<Vec<SocketAddr>, NoServer>) -> Vec<u16> {
    candidates.unwrap().iter().map(SocketAddr::port).collect()
}

#[test]
fn each_path_starts_with_another_server_of_the_link() {
    let servers = numbered();
    let any = PathSpec::default();
    let opener = Some("10.1.1.2:1".parse().unwrap());
    assert_eq!(ports(servers.candidates(0, &any, None)), [1, 2, 3]);
    assert_eq!(ports(servers.candidates(1, &any, opener)), [2, 3, 1]);
    assert_eq!(ports(servers.candidates(4, &any, None)), [2, 3, 1]);
}

#[test]
fn a_path_uses_servers_of_its_family_or_its_own() {
    let servers = numbered();
    let from = |local: &str| PathSpec {
        local: LocalBinding::Address(local.parse().unwrap()),
        ..PathSpec::default()
    };
    let mut spec = from("10.9.9.9");
    assert_eq!(ports(servers.candidates(2, &spec, None)), [1, 2]);
    spec.server = Some(("192.0.2.1".parse().unwrap(), None));
    assert_eq!(servers.candidates(2, &spec, None).unwrap(), ["192.0.2.1:1".parse().unwrap()]);
    let ipv4 = self::servers(&["192.0.2.1:1"]);
    let none = ipv4.candidates(0, &from("fd00::9"), None).unwrap_err();
    assert!(matches!(none, NoServer::NoNat64(_)), "{none}");
    assert!(none.to_string().contains("192.0.2.1") && none.to_string().contains("NAT64"));
    let none = self::servers(&["[fd00::1]:1"]).candidates(0, &from("10.9.9.9"), None).unwrap_err();
    assert!(matches!(none, NoServer::NoIpv6(_)), "{none}");
}

#[test]
fn paths_to_a_name_begin_where_the_session_was_opened() {
    let servers = servers(&["a.example:7"]);
    let any = PathSpec::default();
    assert!(matches!(servers.candidates(0, &any, None), Err(NoServer::Unresolved(_))));
    servers.learn(None, 0, ips(&["192.0.2.1", "192.0.2.2", "192.0.2.3"]));
    let first = |opener: &str| {
        let opener = opener.parse().unwrap();
        servers.candidates(1, &any, Some(opener)).unwrap()[0].ip()
    };
    assert_eq!(first("192.0.2.2:7"), ips(&["192.0.2.2"])[0]);
    assert_eq!(first("192.0.2.9:7"), ips(&["192.0.2.1"])[0], "another server's");
}

#[test]
fn a_network_counts_before_others_and_what_was_proven_stays() {
    let servers = servers(&["a.example:7"]);
    let (wifi, lte) = (Some("wifi".to_owned()), Some("lte".to_owned()));
    servers.learn(None, 0, ips(&["10.1.0.1"]));
    servers.learn(wifi, 0, ips(&["10.1.0.1"]));
    servers.learn(lte.clone(), 0, ips(&["192.0.2.1", "192.0.2.2"]));
    let of = |network: Option<&str>| servers.all_of(&servers.learnt(), network, 0);
    assert_eq!(of(Some("lte")), ips(&["192.0.2.1", "192.0.2.2", "10.1.0.1"]));
    assert_eq!(of(Some("wifi")), ips(&["10.1.0.1", "192.0.2.1", "192.0.2.2"]));
    servers.prove("192.0.2.2:7".parse().unwrap());
    assert_eq!(of(Some("lte"))[0], ips(&["192.0.2.2"])[0]);
    assert_eq!(of(Some("wifi"))[1], ips(&["192.0.2.2"])[0]);
    servers.learn(lte, 0, ips(&["10.1.0.1"]));
    assert_eq!(of(Some("lte")), ips(&["10.1.0.1", "192.0.2.2"]));
    servers.prove("198.51.100.1:7".parse().unwrap());
    assert_eq!(of(Some("lte")).len(), 2, "nobody said that it is the server's");
}

#[test]
fn ipv4_servers_are_dialled_behind_the_networks_nat64() {
    let prefix = Nat64Prefix::new("64:ff9b::".parse().unwrap(), 96).unwrap();
    let all = ["192.0.2.1:7".parse().unwrap(), "[2001:db8::1]:8".parse().unwrap()];
    let reach = |ipv4, ipv6, nat64: &[Nat64Prefix]| {
        let reach = Reach { ipv4, ipv6, nat64: nat64.to_vec(), is_asked: false };
        let found = reach.candidates(&all).unwrap_or_default();
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(reach(false, true, &[prefix]), ["[2001:db8::1]:8", "[64:ff9b::c000:201]:7"]);
    assert_eq!(reach(true, true, &[prefix]), ["192.0.2.1:7", "[2001:db8::1]:8"]);
    assert_eq!(reach(true, false, &[]), ["192.0.2.1:7"]);
}

#[tokio::test]
async fn a_name_that_cannot_be_looked_up_is_where_it_was() {
    // No name, so that nobody is asked.
    let nameless = ServerAddress { host: "no..name".to_owned(), port: 7 };
    let known = KnownServers::default();
    let named = [nameless.clone()];
    let unknown = Servers::new(&named, &known, None).resolve(&[LocalBinding::Any]).await;
    assert!(matches!(unknown, Err(ConnectError::Resolve { host, .. }) if host == "no..name"));
    known.remember(&nameless, &["192.0.2.7:7".parse().unwrap()]);
    let servers = Servers::new(&named, &known.clone(), None);
    servers.resolve(&[LocalBinding::Any]).await.unwrap();
    assert_eq!(ports(servers.candidates(0, &PathSpec::default(), None)), [7]);
    assert_eq!(servers.addresses(), ips(&["192.0.2.7"]));
}
