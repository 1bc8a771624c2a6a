use super::*;

fn path(name: &str, health: Health) -> PathLook {
    let name = name.to_owned();
    PathLook { name, health, withheld: None, down: 0, up: 0, carried: 0, rtt_us: 0 }
}

fn session(id: &str, client: Option<&str>, paths: Vec<PathLook>) -> SessionLook {
    SessionLook { id: id.to_owned(), client: client.map(str::to_owned), paths }
}

fn look(paths: Vec<PathLook>) -> Look {
    Look { sessions: vec![session("a", None, paths)], outage: None }
}

fn words(events: &Events) -> Vec<String> {
    events.report(0.0).into_iter().map(|event| event.words).collect()
}

fn kinds(events: &Events) -> Vec<String> {
    events.report(0.0).into_iter().map(|event| event.event).collect()
}

#[test]
fn a_path_that_is_lost_and_back_is_told_with_how_long_it_was() {
    let mut events = Events::default();
    events.observe(1.0, &look(vec![path("wlan0", Health::Active)]));
    events.observe(2.0, &look(vec![path("wlan0", Health::Active)]));
    events.observe(3.0, &look(vec![path("wlan0", Health::Suspect)]));
    let usb0 = || path("usb0", Health::Active);
    events.observe(4.0, &look(vec![path("wlan0", Health::Dead), usb0()]));
    events.observe(9.0, &look(vec![path("wlan0", Health::Active), usb0()]));
    let wanted = ["path-up", "path-silent", "path-up", "path-lost", "path-back"];
    assert_eq!(kinds(&events), wanted);
    assert_eq!(words(&events)[3], "wlan0 is lost; the others carry on");
    assert_eq!(words(&events)[4], "wlan0 is back after 6 s", "since it was silent");
    let report = events.report(10.0);
    assert!((report[4].ago_s - 1.0).abs() < 1e-9 && report[3].level == EventLevel::Bad);
    assert_eq!(report[0].path.as_deref(), Some("wlan0"));
}

#[test]
fn a_lost_server_is_one_event_and_not_one_for_each_path() {
    let mut events = Events::default();
    let both = || vec![path("wlan0", Health::Active), path("usb0", Health::Active)];
    events.observe(1.0, &look(both()));
    let outage = Some(OutageLook { words: "no path to it".to_owned(), is_spent: false });
    events.observe(2.0, &Look { sessions: Vec::new(), outage });
    events.observe(7.0, &Look::default());
    events.observe(8.0, &look(both()));
    let wanted = ["path-up", "path-up", "server-lost", "server-back", "path-up", "path-up"];
    assert_eq!(kinds(&events), wanted);
    assert_eq!(words(&events)[2], "the server does not answer: no path to it");
    assert_eq!(words(&events)[3], "the server answers again after 5 s");
}

#[test]
fn a_used_up_quota_pauses_a_path_and_a_removed_path_is_gone() {
    let mut events = Events::default();
    let spent = PathLook { withheld: Some(Withheld::Spent), ..path("usb0", Health::Dead) };
    events.observe(1.0, &look(vec![path("usb0", Health::Active)]));
    events.observe(2.0, &look(vec![spent]));
    events.observe(3.0, &look(vec![path("usb0", Health::Active)]));
    events.observe(4.0, &look(vec![path("wlan0", Health::Dead)]));
    events.changed(5.0, "wlan0", "wlan0 is a backup now".to_owned());
    let wanted = ["path-up", "quota-used-up", "quota-free", "path-gone", "path-changed"];
    assert_eq!(kinds(&events), wanted, "a path that was never up is not lost");
}

#[test]
fn a_change_that_dials_a_path_anew_is_no_loss_and_a_pause_is_one_event() {
    let mut events = Events::default();
    events.observe(1.0, &look(vec![path("usb0", Health::Active)]));
    events.changed(1.5, "usb0", "usb0: backup".to_owned());
    events.observe(2.0, &look(vec![path("usb0", Health::Dead)]));
    events.observe(3.0, &look(vec![path("usb0", Health::Active)]));
    events.changed(9.0, "usb0", "usb0: paused".to_owned());
    let paused = PathLook { withheld: Some(Withheld::Paused), ..path("usb0", Health::Dead) };
    events.observe(10.0, &look(vec![paused]));
    events.changed(20.0, "usb0", "usb0: in use again".to_owned());
    events.observe(21.0, &look(vec![path("usb0", Health::Dead)]));
    events.observe(22.0, &look(vec![path("usb0", Health::Active)]));
    let wanted = ["path-up", "path-changed", "path-changed", "path-changed", "path-up"];
    assert_eq!(kinds(&events), wanted);
    events.observe(30.0, &look(vec![path("usb0", Health::Dead)]));
    assert_eq!(kinds(&events)[5], "path-lost", "later it is");
    assert_eq!(words(&events)[5], "usb0 is lost", "there is no other path");
}

#[test]
fn used_up_quotas_are_no_fault_of_the_server() {
    let outage = |words: &str, is_spent| Look {
        outage: Some(OutageLook { words: words.to_owned(), is_spent }),
        ..Look::default()
    };
    let mut events = Events::default();
    events.observe(1.0, &outage("every path has used up its quota", true));
    events.observe(5.0, &Look::default());
    events.observe(6.0, &outage("every path has used up its quota", true));
    events.observe(7.0, &outage("no path reaches it", false));
    events.observe(9.0, &Look::default());
    let wanted = [
        "every path has used up its quota",
        "data is carried again after 4 s",
        "every path has used up its quota",
        "the server does not answer: no path reaches it",
        "the server answers again after 2 s",
    ];
    assert_eq!(words(&events), wanted);
}

#[test]
fn a_server_tells_who_came_and_who_left() {
    let mut events = Events::default();
    let office = || session("a", Some("office"), vec![path("wlan0", Health::Active)]);
    events.observe(1.0, &Look { sessions: vec![office()], outage: None });
    let home = session("b", Some("home"), vec![path("wlan0", Health::Dead)]);
    events.observe(2.0, &Look { sessions: vec![office(), home], outage: None });
    events.observe(3.0, &Look { sessions: vec![office()], outage: None });
    let wanted = ["client-joined", "path-up", "client-joined", "client-left"];
    assert_eq!(kinds(&events), wanted);
    assert_eq!(words(&events)[3], "home disconnected");
}

#[test]
fn only_the_last_events_are_kept() {
    let mut events = Events::default();
    for second in 0..1000u32 {
        let health = if second % 2 == 0 { Health::Active } else { Health::Dead };
        events.observe(f64::from(second), &look(vec![path("wlan0", health)]));
    }
    assert_eq!(events.report(1000.0).len(), KEPT);
}
