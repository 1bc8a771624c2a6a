//! What a configuration may say, and what a wrong one is told.

use std::path::Path;

use super::*;
use crate::time::SECOND;

const ENDS: &str = r#"
[link.a]
netns = "client"
interface = "wifi0"
address = ["10.1.1.1/24", "fd00:1::1/64"]
[link.b]
netns = "server"
interface = "wifi0"
"#;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("links.toml"))
}

fn one_link(before: &str, after: &str) -> Result<Config, ConfigError> {
    parse(&format!("version = 1\n[[link]]\nname = \"wifi\"\n{before}{ENDS}{after}"))
}

fn complaint(result: Result<Config, ConfigError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn directions_override_both() {
    let config = one_link("", "[link.both]\nrate_mbps = 630\nburst_bytes = 65536\ndelay_ms = 1.5\n[link.b_to_a]\nrate_mbps = 100\nburst_bytes = 0\nloss = 0.05\n").unwrap();
    let [forth, back] = &config.links[0].parameters;
    assert_eq!(forth.rate, RateSetting::Constant(630_000_000));
    assert_eq!(back.rate, RateSetting::Constant(100_000_000));
    assert_eq!((forth.delay, back.delay), (1_500_000, 1_500_000));
    assert_eq!((forth.loss, back.loss), (0.0, 0.05));
    assert_eq!((forth.burst, back.burst), (65_536, 0));
    assert_eq!(forth.queue, QueueLimit::Time(20_000_000));
}

#[test]
fn one_jitter_replaces_the_other() {
    let config = one_link("", "[link.both]\njitter_ms = 5\nreorder = true\ngather_ms = 20\npolicer = true\nburst_bytes = 9000\n[link.b_to_a]\njitter_sd_ms = 3\nreorder = false\npolicer = false\n").unwrap();
    let [forth, back] = &config.links[0].parameters;
    assert_eq!((forth.jitter, forth.reorder), (Jitter::Uniform(5_000_000), true));
    assert_eq!((back.jitter, back.reorder), (Jitter::Normal(3_000_000), false));
    assert_eq!((forth.gather, back.gather), (20_000_000, 20_000_000));
    assert_eq!((forth.policer, back.policer), (true, false));
    let shown = back.describe();
    assert_eq!((shown.jitter_ms, shown.jitter_sd_ms, shown.gather_ms), (0.0, 3.0, 20.0));
}

#[test]
fn defaults_are_an_open_link() {
    let config = one_link("", "").unwrap();
    assert_eq!(config.links[0].parameters[0], Parameters::default());
    assert_eq!(
        (config.links[0].mtu, config.links[0].backend, config.seed),
        (1500, Backend::AfPacket, 0)
    );
}

#[test]
fn a_radio_sleeps_when_both_times_are_given() {
    let config = one_link("sleep_after_ms = 500\nwake_ms = 100\n", "").unwrap();
    let sleep = Sleep { after: 500_000_000, wake: 100_000_000 };
    assert_eq!(config.links[0].sleep, Some(sleep));
    assert_eq!(one_link("", "").unwrap().links[0].sleep, None);
    let half = complaint(one_link("sleep_after_ms = 500\n", ""));
    assert!(half.contains("sleep_after_ms and wake_ms go together"), "{half}");
    let wrong = complaint(one_link("sleep_after_ms = 500\nwake_ms = -1\n", ""));
    assert!(wrong.contains("wake_ms: must be 0.001 to 3600000, not -1"), "{wrong}");
}

#[test]
fn schedules_are_sorted_and_may_repeat() {
    let config = one_link(
        "schedule_start = \"trigger\"\nschedule_every_s = 5\n",
        "[[link.schedule]]\nat_s = 4\nblackout = false\n[[link.schedule]]\nat_s = 2.0\ndirection = \"a_to_b\"\nblackout = true\nrate_mbps = \"unlimited\"\n",
    )
    .unwrap();
    let schedule = &config.links[0].schedule;
    assert_eq!((schedule.start, schedule.every), (ScheduleStart::Trigger, Some(5 * SECOND)));
    let times: Vec<_> = schedule.entries.iter().map(|entry| entry.at).collect();
    assert_eq!(times, [2 * SECOND, 4 * SECOND]);
    assert_eq!(schedule.entries[0].update.rate, Some(RateSetting::Unlimited));
}

#[test]
fn an_unknown_key_is_shown_with_its_line() {
    let message = complaint(one_link("", "[link.both]\nrate_mps = 630\n"));
    assert!(message.contains("rate_mps") && message.contains("line 13"), "{message}");
}

#[test]
fn wrong_values_name_their_key() {
    for (before, after, words) in [
        ("", "[link.a_to_b]\nloss = 1.5\n", &["wifi", "a_to_b.loss", "0 to 1"][..]),
        ("", "[link.both]\nrate_mbps = 0\n", &["rate_mbps", "blackout or hold"]),
        ("", "[link.both]\nrate_mbps = \"fast\"\n", &["rate_mbps", "unlimited"]),
        ("", "[link.both]\nrate_mbps = 5\ntrace = \"x\"\n", &["trace", "not both"]),
        ("", "[link.both]\ntrace = \"missing.trace\"\n", &["missing.trace", "cannot read"]),
        ("", "[link.both]\nqueue_ms = 5\nqueue_packets = 7\n", &["queue_packets", "not both"]),
        ("", "[link.both]\nloss = 0.9\nloss_burst = 2\n", &["loss_burst", "9"]),
        ("", "[link.both]\nburst_bytes = 2000000000\n", &["burst_bytes", "0 to 1000000000"]),
        ("", "[link.both]\njitter_ms = 5\njitter_sd_ms = 7\n", &["jitter_sd_ms", "not both"]),
        ("", "[link.both]\njitter_sd_ms = -1\n", &["jitter_sd_ms", "0 to 3600000"]),
        ("", "[link.both]\ngather_ms = 1e9\n", &["gather_ms", "0 to 3600000"]),
        ("", "[link.both]\npolicer = true\n", &["a_to_b.policer", "burst_bytes", "1500"]),
        (
            "mtu = 9000\n",
            "[link.b_to_a]\npolicer = true\nburst_bytes = 8999\n",
            &["b_to_a.policer", "9000"],
        ),
        ("mtu = 1000\n", "", &["mtu", "1280"]),
        ("", "[[link.schedule]]\nat_s = 1\n", &["schedule[0]", "nothing"]),
        ("", "[[link.schedule]]\nblackout = true\n", &["schedule[0].at_s"]),
        ("", "[[link.schedule]]\nat_s = 1\nblack = true\n", &["schedule[0]", "black"]),
        (
            "",
            "[[link.schedule]]\nat_s = 1\ndirection = \"up\"\nloss = 0.1\n",
            &["direction", "a_to_b"],
        ),
        (
            "schedule_every_s = 1\n",
            "[[link.schedule]]\nat_s = 2\nloss = 0.1\n",
            &["schedule_every_s", "2 s"],
        ),
    ] {
        let message = complaint(one_link(before, after));
        assert!(words.iter().all(|word| message.contains(word)), "{words:?} not in: {message}");
    }
}

#[test]
fn wrong_files_say_what_is_missing() {
    assert!(complaint(parse("version = 2\n")).contains("must be 1"));
    assert!(complaint(parse("version = 1\n")).contains("[[link]]"));
    let link = format!("[[link]]\nname = \"wifi\"\n{ENDS}");
    assert!(complaint(parse(&format!("version = 1\n{link}{link}"))).contains("two links"));
    assert!(
        complaint(parse(&format!("version = 1\n{}", link.replace("10.1.1.1/24", "10.1.1.1"))))
            .contains("prefix")
    );
    assert!(
        complaint(parse(&format!(
            "version = 1\n{}",
            link.replace("\"wifi0\"", "\"an-interface-name-too-long\"")
        )))
        .contains("a.interface")
    );
}
