//! What a report says of the process beside its sessions.

use fbdt::{LeftOutInterfaces, WhyLeftOut};
use serde::{Deserialize, Serialize};

use crate::output::counted;

/// A server that cannot be reached.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OutageReport {
    /// Seconds that it has lasted.
    pub since_s: f64,
    /// What the session ended with, or the last attempt failed with.
    pub last_error: String,
    /// Seconds until a new session is tried next; absent while one is being tried.
    pub next_attempt_s: Option<f64>,
    /// Nothing is tried: every path has used up its quota.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quotas_spent: bool,
}

/// One of several servers of a client.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerReport {
    /// Its addresses, as its link has them.
    pub server: String,
    /// Whether new connections go by it.
    pub in_use: bool,
    /// Seconds that they have done so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since_s: Option<f64>,
    /// What the last attempt to reach it failed with, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// Seconds since then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_ago_s: Option<f64>,
}

/// An interface that is up but is no path.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOutReport {
    /// Its name.
    pub interface: String,
    /// Why, in one word: `no-route`, `tunnel` or `not-wanted`.
    pub why: String,
    /// The same in words.
    pub words: String,
}

impl LeftOutReport {
    /// All that a client leaves out.
    pub(crate) fn list(left_out: &LeftOutInterfaces) -> Vec<Self> {
        let report = |(interface, why): (String, WhyLeftOut)| Self {
            interface,
            why: why.name().to_owned(),
            words: why.to_string(),
        };
        left_out.list().into_iter().map(report).collect()
    }

    /// Those that lack a route alone, as earlier versions have them.
    pub(crate) fn unrouted(list: &[Self]) -> Vec<String> {
        let unrouted = list.iter().filter(|left_out| left_out.why == WhyLeftOut::NoRoute.name());
        unrouted.map(|left_out| left_out.interface.clone()).collect()
    }

    /// One sentence for each reason, with the interfaces.
    pub(crate) fn words_of_all(left_out: &[Self]) -> Vec<String> {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for Self { interface, words, .. } in left_out {
            match reasons.iter_mut().find(|(known, _)| known == words) {
                Some((_, interfaces)) => interfaces.push(interface),
                None => reasons.push((words, vec![interface])),
            }
        }
        let said = |(words, interfaces): (&str, Vec<&str>)| {
            format!("not used: {} ({words})", interfaces.join(", "))
        };
        reasons.into_iter().map(|(words, interfaces)| said((words, interfaces))).collect()
    }
}

/// Reloads since the start, and what became of the last one. Flags by their long names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReloadReport {
    /// How many there were.
    pub count: u64,
    /// Flags whose new values count.
    pub applied: Vec<String>,
    /// Flags whose new values wait for a restart.
    pub needs_restart: Vec<String>,
    /// Why nothing was changed, if so.
    pub error: Option<String>,
    /// Whether that is because what was read is wrong.
    #[serde(default)]
    pub wrong_configuration: bool,
}

/// Addresses of the proxies of a client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyReport {
    /// SOCKS5, if it runs.
    pub socks: Option<String>,
    /// HTTP CONNECT, if it runs.
    pub http: Option<String>,
}

/// Connections that are taken from programs that know nothing of the client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CaptureReport {
    /// `redirect`, `tproxy` or `tun`.
    pub method: String,
    /// Whether those of machines behind this one are taken too.
    pub gateway: bool,
    /// Who is asked instead of name servers, if their questions are taken.
    pub dns: Option<String>,
    /// Only what programs of these users do; of all if there are none.
    pub only_user: Vec<String>,
    /// Only what programs in these cgroups do; in all if there are none.
    pub only_cgroup: Vec<String>,
    /// Only what goes to these networks; to all if there are none.
    pub only_to: Vec<String>,
    /// What goes to these networks is left alone.
    pub direct: Vec<String>,
    /// How many were taken so far.
    pub connections: u64,
    /// Nothing is captured yet, as the server was not reached so far: connections go directly.
    #[serde(default)]
    pub waits: bool,
    /// IPv6 is refused, as the server has no way to it.
    #[serde(default)]
    pub ipv6_refused: bool,
    /// How often somebody removed or changed rules, routes or the device, and they were made again.
    #[serde(default)]
    pub restored: u64,
    /// What of them somebody removed and cannot be made again, if so: connections are refused.
    #[serde(default)]
    pub broken: Option<String>,
}

/// What a server does for clients before their connections are made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptsReport {
    /// Connections that are being made, names that are looked up for them included.
    pub connecting: u64,
    /// Names that are being looked up.
    pub resolving: u64,
    /// Attempts that were given up since the start, because too many others were under way.
    pub gave_way: u64,
}

impl AttemptsReport {
    /// The same for people.
    pub(crate) fn words(&self) -> String {
        let mut words = counted(self.connecting, "connection is", "connections are");
        words += " being made";
        if self.resolving > 0 {
            words += &format!(", {} looked up", counted(self.resolving, "name is", "names are"));
        }
        if self.gave_way > 0 {
            words +=
                &format!("; {} gave way to others", counted(self.gave_way, "attempt", "attempts"));
        }
        words
    }
}

/// UDP flows of `--tun` and of clients of the SOCKS5 proxy; at a server, those of all its clients.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpReport {
    /// Open now.
    pub flows: u64,
    /// Since the start.
    pub opened: u64,
    /// Datagrams that this end gave to a path.
    pub sent_datagrams: u64,
    /// Their bytes, without headers.
    pub sent_bytes: u64,
    /// Datagrams that arrived.
    pub received_datagrams: u64,
    /// Their bytes, without headers.
    pub received_bytes: u64,
    /// Datagrams that this end dropped: they came faster than they could be passed on, or nobody knew
    /// their name.
    #[serde(default)]
    pub dropped_datagrams: u64,
    /// Their bytes, without headers.
    #[serde(default)]
    pub dropped_bytes: u64,
}

/// A daemon that stops and lets its streams finish.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StoppingReport {
    /// Open streams.
    pub streams: u64,
    /// Seconds after which those that are left are cut off.
    pub most_s: f64,
}

impl StoppingReport {
    /// The same for people.
    pub(crate) fn words(&self) -> String {
        let streams = counted(self.streams, "connection", "connections");
        format!("stopping: {streams} left to finish, at most {:.0} s", self.most_s)
    }
}
