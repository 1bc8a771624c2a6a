//! Which requests are answered at all: a page of a stranger that runs in the user's browser can send
//! requests to this machine (DNS rebinding), so the Host header must name the address that was
//! connected to; except where what is shown was opened to everybody and is no secret. A change is
//! accepted from the page itself alone, as the browser says in headers that no script can set.

use std::net::{IpAddr, SocketAddr};

use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::{Method, StatusCode};

/// Why a request is not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// Its Host header names something else.
    Host,
    /// It wants to change something.
    Method,
    /// It wants to change something, and does not come from the page itself.
    Origin,
    /// It wants to change something, and is no JSON.
    Form,
}

impl Refusal {
    /// The status of the answer.
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Origin => StatusCode::FORBIDDEN,
            Self::Form => StatusCode::UNSUPPORTED_MEDIA_TYPE,
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
            Self::Origin => "changes are accepted from the status page itself alone\n",
            Self::Form => "send the change as application/json\n",
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
    /// Where changes are taken with POST, if they are.
    pub changes_at: Option<&'static str>,
}

/// Set by browsers: how a request's origin is related to this end.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

impl Guard {
    /// Whether a request may be answered.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, method: &Method, path: &str, headers: &HeaderMap) -> Result<(), Refusal> {
        if !self.any_host && !self.names_here(headers) {
            return Err(Refusal::Host);
        }
        match *method {
            Method::GET | Method::HEAD => Ok(()),
            Method::POST if self.changes_at == Some(path) => self.check_change(headers),
            _ => Err(Refusal::Method),
        }
    }

    /// Whether a change comes from the page itself: the browser of a stranger's page says so in
    /// `Origin` and `Sec-Fetch-Site`, and sends no JSON without asking first, which is refused.
    fn check_change(&self, headers: &HeaderMap) -> Result<(), Refusal> {
        let only = |name: &HeaderName| {
            let mut values = headers.get_all(name).iter();
            let value = values.next().and_then(|value| value.to_str().ok());
            value.filter(|_| values.next().is_none())
        };
        let origin = only(&ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
        let is_same = origin.is_some_and(|host| self.is_here(host) && only(&HOST) == Some(host));
        let site = headers.contains_key(SEC_FETCH_SITE).then(|| only(&SEC_FETCH_SITE));
        if !is_same || site.is_some_and(|site| site != Some("same-origin")) {
            return Err(Refusal::Origin);
        }
        match only(&CONTENT_TYPE) {
            Some("application/json") => Ok(()),
            _ => Err(Refusal::Form),
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
        guard(local, None).check(&Method::GET, "/", &headers)
    }

    fn guard(local: &str, changes_at: Option<&'static str>) -> Guard {
        Guard { local: local.parse().unwrap(), any_host: false, changes_at }
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
        let guard = Guard { any_host: true, ..guard("10.0.0.1:9464", None) };
        let mut headers = HeaderMap::new();
        assert_eq!(guard.check(&Method::GET, "/", &headers), Ok(()));
        for name in ["gateway.example:9464", "198.51.100.7:19464"] {
            headers.insert(HOST, name.parse().unwrap());
            assert_eq!(guard.check(&Method::GET, "/", &headers), Ok(()), "{name}");
        }
    }

    #[test]
    fn nothing_can_be_changed_here() {
        let headers = change(&[]);
        for (any_host, changes_at) in [(false, None), (true, None), (false, Some("/api/path"))] {
            let guard = Guard { any_host, ..guard("127.0.0.1:1", changes_at) };
            for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS] {
                for path in ["/", "/api/status", "/api/path/", "/api/pat"] {
                    assert_eq!(guard.check(&method, path, &headers), Err(Refusal::Method));
                }
                if method != Method::POST || changes_at.is_none() {
                    let checked = guard.check(&method, "/api/path", &headers);
                    assert_eq!(checked, Err(Refusal::Method), "{method}");
                }
            }
        }
    }

    /// The headers of a change by the page itself, with some of them replaced or left out.
    fn change(replaced: &[(&'static str, Option<&str>)]) -> HeaderMap {
        let usual = [
            ("host", "127.0.0.1:1"),
            ("origin", "http://127.0.0.1:1"),
            ("sec-fetch-site", "same-origin"),
            ("content-type", "application/json"),
        ];
        let mut headers = HeaderMap::new();
        for (name, value) in usual {
            let other = replaced.iter().find(|(replaced, _)| *replaced == name);
            if let Some(value) = other.map_or(Some(value), |(_, other)| *other) {
                headers.append(HeaderName::from_static(name), value.parse().unwrap());
            }
        }
        headers
    }

    #[test]
    fn a_change_is_taken_from_the_page_itself_alone() {
        let guard = guard("127.0.0.1:1", Some("/api/path"));
        let checked = |headers: &HeaderMap| guard.check(&Method::POST, "/api/path", headers);
        assert_eq!(checked(&change(&[])), Ok(()));
        assert_eq!(checked(&change(&[("sec-fetch-site", None)])), Ok(()), "an older browser");
        let by_name = [("host", Some("localhost:1")), ("origin", Some("http://localhost:1"))];
        assert_eq!(checked(&change(&by_name)), Ok(()));
        let origins = [
            None,
            Some("null"),
            Some("http://evil.example"),
            Some("https://127.0.0.1:1"),
            Some("http://127.0.0.1:2"),
            Some("http://127.0.0.1"),
            Some("http://localhost:1"),
            Some("127.0.0.1:1"),
        ];
        for origin in origins {
            let headers = change(&[("origin", origin)]);
            assert_eq!(checked(&headers), Err(Refusal::Origin), "{origin:?}");
        }
        for site in ["cross-site", "same-site", "none", ""] {
            let headers = change(&[("sec-fetch-site", Some(site))]);
            assert_eq!(checked(&headers), Err(Refusal::Origin), "{site}");
        }
        let forms = [
            None,
            Some("text/plain"),
            Some("application/x-www-form-urlencoded"),
            Some("text/plain; application/json"),
        ];
        for form in forms {
            let headers = change(&[("content-type", form)]);
            assert_eq!(checked(&headers), Err(Refusal::Form), "{form:?}");
        }
        let mut twice = change(&[]);
        twice.append(ORIGIN, "http://127.0.0.1:1".parse().unwrap());
        assert_eq!(checked(&twice), Err(Refusal::Origin), "two of them");
        let foreign = change(&[("host", Some("evil.example:1"))]);
        assert_eq!(checked(&foreign), Err(Refusal::Host));
    }

    proptest! {
        #[test]
        fn no_host_panics(host in "[ -~]{0,40}") {
            let _ = check("127.0.0.1:9464", &[&host]);
        }
    }
}
