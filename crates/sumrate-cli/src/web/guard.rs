//! Which requests are answered at all: a page of a stranger that runs in the user's browser can send
//! requests to this machine (DNS rebinding), so the Host header must name the address that was
//! connected to; except where what is shown was opened to everybody and is no secret.

use std::net::{IpAddr, SocketAddr};

use hyper::header::{HOST, HeaderMap};
use hyper::{Method, StatusCode};

/// Why a request is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Its Host header names something else.
    Host,
    /// It wants to change something.
    Method,
}

impl Refusal {
    /// The status of the answer.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
        }
    }

    /// What is wrong, and what to do.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::Host => {
                "use the address that sumrate printed, not a name for it; metrics are answered by \
                 every name with --metrics-open\n"
            }
            Self::Method => "only GET and HEAD are answered here\n",
        }
    }
}

/// The guard of one connection.
#[derive(Debug, Clone, Copy)]
pub struct Guard {
    /// Address and port that the client connected to.
    pub local: SocketAddr,
    /// Whether any Host header will do: one that scrapes by a name, or through a translation of
    /// addresses, names what this end does not know.
    pub any_host: bool,
}

impl Guard {
    /// Whether a request may be answered.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, method: &Method, headers: &HeaderMap) -> Result<(), Refusal> {
        if !self.any_host && !self.names_here(headers) {
            return Err(Refusal::Host);
        }
        if *method == Method::GET || *method == Method::HEAD {
            Ok(())
        } else {
            Err(Refusal::Method)
        }
    }

    /// Whether there is one Host header, and it names this end.
    fn names_here(&self, headers: &HeaderMap) -> bool {
        let mut hosts = headers.get_all(HOST).iter();
        let named = hosts.next().and_then(|host| host.to_str().ok());
        hosts.next().is_none() && named.is_some_and(|host| self.is_here(host))
    }

    /// Whether `host` is the address connected to, or `localhost` where that is the machine's own.
    fn is_here(&self, host: &str) -> bool {
        let (name, port) = match host.rsplit_once(':') {
            Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
            _ => (host, Some(80)),
        };
        if port != Some(self.local.port()) {
            return false;
        }
        let local = self.local.ip().to_canonical();
        if name.eq_ignore_ascii_case("localhost") {
            return local.is_loopback();
        }
        let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
        bare.parse::<IpAddr>().is_ok_and(|address| address.to_canonical() == local)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(local: &str, hosts: &[&str]) -> Result<(), Refusal> {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(HOST, host.parse().unwrap());
        }
        Guard { local: local.parse().unwrap(), any_host: false }.check(&Method::GET, &headers)
    }

    #[test]
    fn only_the_address_itself_is_a_host() {
        for good in ["127.0.0.1:9464", "localhost:9464", "LocalHost:9464"] {
            assert_eq!(check("127.0.0.1:9464", &[good]), Ok(()), "{good}");
        }
        assert_eq!(check("[::1]:80", &["[::1]"]), Ok(()));
        assert_eq!(check("[::ffff:10.0.0.1]:9464", &["10.0.0.1:9464"]), Ok(()));
        for bad in ["rebound.example:9464", "127.0.0.1", "127.0.0.1:1", "127.0.0.2:9464", "", ":"] {
            assert_eq!(check("127.0.0.1:9464", &[bad]), Err(Refusal::Host), "{bad}");
        }
        assert_eq!(check("10.0.0.1:9464", &["localhost:9464"]), Err(Refusal::Host));
        assert_eq!(check("127.0.0.1:1", &[]), Err(Refusal::Host));
        assert_eq!(check("127.0.0.1:1", &["127.0.0.1:1", "x"]), Err(Refusal::Host), "two of them");
    }

    #[test]
    fn what_is_open_is_answered_by_every_name() {
        let guard = Guard { local: "10.0.0.1:9464".parse().unwrap(), any_host: true };
        let mut headers = HeaderMap::new();
        assert_eq!(guard.check(&Method::GET, &headers), Ok(()));
        for name in ["gateway.example:9464", "198.51.100.7:19464"] {
            headers.insert(HOST, name.parse().unwrap());
            assert_eq!(guard.check(&Method::GET, &headers), Ok(()), "{name}");
        }
    }

    #[test]
    fn nothing_can_be_changed_here() {
        let mut headers = HeaderMap::new();
        headers.append(HOST, "127.0.0.1:1".parse().unwrap());
        for any_host in [false, true] {
            let guard = Guard { local: "127.0.0.1:1".parse().unwrap(), any_host };
            for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS] {
                assert_eq!(guard.check(&method, &headers), Err(Refusal::Method));
            }
        }
    }

    proptest! {
        #[test]
        fn no_host_panics(host in "[ -~]{0,40}") {
            let _ = check("127.0.0.1:9464", &[&host]);
        }
    }
}
