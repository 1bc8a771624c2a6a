//! The status page: its files for everybody who reaches the port; the status, the history and changes for
//! those with the token.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName,
    HeaderValue, REFERRER_POLICY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;

use super::{Answer, text};
use crate::args::same_secret;
use crate::control::{ControlAnswer, ControlRequest};
use crate::history::HistoryReport;
use crate::status::StatusReport;

/// Nothing but this site's own files, nowhere to send anything to, in nobody's frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const FILES: [(&str, &str, &str); 7] = [
    ("/", "text/html; charset=utf-8", include_str!("page.html")),
    ("/page.css", "text/css; charset=utf-8", include_str!("page.css")),
    ("/page.js", SCRIPT, include_str!("page.js")),
    ("/cards.js", SCRIPT, include_str!("cards.js")),
    ("/chart.js", SCRIPT, include_str!("chart.js")),
    ("/internals.js", SCRIPT, include_str!("internals.js")),
    ("/words.js", SCRIPT, include_str!("words.js")),
];
const SCRIPT: &str = "text/javascript; charset=utf-8";
/// Bytes of randomness in a token.
const TOKEN_BYTES: usize = 24;

/// What opens the status: it is in the fragment of the printed URL, which browsers send nowhere.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    /// A new one.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn random() -> std::io::Result<Self> {
        let mut bytes = [0u8; TOKEN_BYTES];
        let got = rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())?;
        if got != TOKEN_BYTES {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// The token itself.
    pub fn secret(&self) -> &str {
        &self.0
    }

    fn opens(&self, headers: &HeaderMap) -> bool {
        let given = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        let given = given.and_then(|value| value.strip_prefix(b"Bearer "));
        given.is_some_and(|given| same_secret(self.0.as_bytes(), given))
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Where the page sends changes of paths.
pub const CHANGES_AT: &str = "/api/path";
/// Says in an answer with the status whether changes are taken.
const CONTROLS: HeaderName = HeaderName::from_static("sumrate-controls");

/// Changes how a path is used, or says why not.
type Change = Box<dyn Fn(&ControlRequest) -> Result<(), String> + Send + Sync>;

/// The answers of the status page.
pub struct Site {
    token: Token,
    status: Box<dyn Fn() -> StatusReport + Send + Sync>,
    history: Box<dyn Fn() -> HistoryReport + Send + Sync>,
    change: Option<Change>,
}

impl Site {
    /// A page that shows the status and the history to those with the token.
    pub fn new(
        token: Token,
        status: impl Fn() -> StatusReport + Send + Sync + 'static,
        history: impl Fn() -> HistoryReport + Send + Sync + 'static,
    ) -> Self {
        Self { token, status: Box::new(status), history: Box::new(history), change: None }
    }

    /// The page with controls, which `change` carries out.
    #[must_use]
    pub fn with_controls(
        mut self,
        change: impl Fn(&ControlRequest) -> Result<(), String> + Send + Sync + 'static,
    ) -> Self {
        self.change = Some(Box::new(change));
        self
    }

    /// The answer to a request that the [`Guard`](super::Guard) admits.
    pub fn answer(&self, request: &Request<Bytes>) -> Answer {
        let path = request.uri().path();
        let mut answer = match FILES.iter().find(|(known, ..)| *known == path) {
            Some((_, kind, content)) => file(kind, Bytes::from_static(content.as_bytes())),
            None if !["/api/status", "/api/history", CHANGES_AT].contains(&path) => {
                text(StatusCode::NOT_FOUND, "there is no such page\n")
            }
            None if !self.token.opens(request.headers()) => {
                let mut refusal = text(StatusCode::UNAUTHORIZED, "the token is missing or wrong\n");
                refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                refusal
            }
            None if path == CHANGES_AT => self.change(request),
            None if path == "/api/history" => json(&(self.history)()),
            None => self.status(),
        };
        protect(answer.headers_mut());
        answer
    }

    /// The status without refused destinations: they are private, and an open page is unencrypted.
    fn status_report(&self) -> StatusReport {
        let mut report = (self.status)();
        if let Some(refusals) = &mut report.refusals {
            refusals.latest.clear();
        }
        report
    }

    fn status(&self) -> Answer {
        let mut answer = json(&self.status_report());
        let controls = if self.change.is_some() { "yes" } else { "no" };
        answer.headers_mut().insert(CONTROLS, HeaderValue::from_static(controls));
        answer
    }

    fn change(&self, request: &Request<Bytes>) -> Answer {
        let Some(change) = &self.change else {
            return text(StatusCode::FORBIDDEN, "this page takes no changes\n");
        };
        if *request.method() != Method::POST {
            return text(StatusCode::METHOD_NOT_ALLOWED, "a change is sent with POST\n");
        }
        match ControlRequest::parse(request.body()) {
            Ok(request) => json(&ControlAnswer::new(change(&request).err())),
            Err(error) => text(StatusCode::BAD_REQUEST, format!("{error}\n")),
        }
    }
}

fn json(value: &impl Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(json) => file("application/json", json.into()),
        Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "no answer can be written\n"),
    }
}

fn file(kind: &'static str, content: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(content));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

fn protect(headers: &mut HeaderMap) {
    let fixed = [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use hyper::http::request as http;

    use super::*;
    use crate::status::STATUS_SCHEMA;

    fn report() -> StatusReport {
        StatusReport {
            schema: STATUS_SCHEMA.to_owned(),
            version: "0".to_owned(),
            role: "client".to_owned(),
            pid: 1,
            uptime_s: 0.5,
            ..StatusReport::default()
        }
    }

    fn site(token: &Token) -> Site {
        Site::new(token.clone(), report, HistoryReport::default)
    }

    fn ask(site: &Site, request: http::Builder, authorization: Option<&str>, body: &str) -> Answer {
        let request = match authorization {
            Some(value) => request.header(AUTHORIZATION, value),
            None => request,
        };
        site.answer(&request.body(Bytes::copy_from_slice(body.as_bytes())).unwrap())
    }

    fn get(site: &Site, path: &str, authorization: Option<&str>) -> Answer {
        ask(site, Request::get(path), authorization, "")
    }

    #[test]
    fn the_status_needs_the_token_and_the_files_do_not() {
        let token = Token::random().unwrap();
        let site = site(&token);
        let right = format!("Bearer {}", token.secret());
        let wrong = format!("{right}x");
        for path in ["/api/status", "/api/history"] {
            assert_eq!(get(&site, path, Some(&right)).status(), 200);
            for bad in [None, Some(""), Some("Bearer "), Some(token.secret()), Some(wrong.as_str())]
            {
                assert_eq!(get(&site, path, bad).status(), 401, "{path} {bad:?}");
            }
        }
        assert_ne!(token.secret(), Token::random().unwrap().secret());
        assert!(token.secret().len() >= 32 && !format!("{token:?}").contains(token.secret()));
        for (path, kind, _) in FILES {
            let answer = get(&site, path, None);
            assert_eq!(answer.headers()[CONTENT_TYPE], kind);
            assert!(answer.headers().contains_key(CONTENT_SECURITY_POLICY));
        }
        for bad in ["/../page.js", "/page.html", "//", "/api/status/", "/api"] {
            assert_eq!(get(&site, bad, Some(&right)).status(), 404, "{bad}");
        }
    }

    #[test]
    fn the_page_gets_no_refused_destination() {
        let token = Token::random().unwrap();
        let refused = crate::refusals::RefusedReport {
            destination: "secret.example:80".to_owned(),
            reason: "port".to_owned(),
            words: "secret.example:80 is not allowed".to_owned(),
            count: 1,
            ago_s: 0,
        };
        let refusals = crate::refusals::RefusalsReport {
            reasons: [("port".to_owned(), 1)].into(),
            latest: vec![refused],
        };
        let report = StatusReport { refusals: Some(refusals), ..StatusReport::default() };
        let site = Site::new(token.clone(), move || report.clone(), HistoryReport::default);
        assert!(serde_json::to_string(&(site.status)()).unwrap().contains("secret.example"));
        let body = site.status_report();
        assert_eq!(body.refusals.as_ref().map(|refusals| refusals.reasons["port"]), Some(1));
        assert!(!serde_json::to_string(&body).unwrap().contains("secret.example"));
    }

    #[test]
    fn a_change_needs_the_token_and_a_page_with_controls() {
        let token = Token::random().unwrap();
        let right = format!("Bearer {}", token.secret());
        let pause = r#"{"schema":"sumrate.control.v1","path":"lte","set":{"paused":true}}"#;
        let post = |site: &Site, authorization: Option<&str>, body: &str| {
            ask(site, Request::post(CHANGES_AT), authorization, body)
        };
        let reader = site(&token);
        assert_eq!(post(&reader, Some(&right), pause).status(), 403);
        assert_eq!(get(&reader, "/api/status", Some(&right)).headers()[CONTROLS], "no");
        let site = site(&token).with_controls(|request| match request.set.paused {
            Some(true) if request.path == "lte" => Ok(()),
            _ => Err("refused".to_owned()),
        });
        assert_eq!(get(&site, "/api/status", Some(&right)).headers()[CONTROLS], "yes");
        assert_eq!(post(&site, Some(&right), pause).status(), 200);
        for bad in [None, Some("Bearer x")] {
            assert_eq!(post(&site, bad, pause).status(), 401, "{bad:?}");
        }
        assert_eq!(get(&site, CHANGES_AT, Some(&right)).status(), 405);
        let other_schema = pause.replace("control.v1", "control.v9");
        for bad in ["", "{}", "[]", &other_schema] {
            assert_eq!(post(&site, Some(&right), bad).status(), 400, "{bad}");
        }
        let refused = post(&site, Some(&right), &pause.replace("lte", "x"));
        let body = format!("{:?}", refused.into_body());
        assert!(body.contains("refused"), "{body}");
    }

    #[test]
    fn the_page_loads_nothing_from_elsewhere() {
        for (path, _, content) in FILES {
            let own = content.replace("http://www.w3.org/2000/svg", "");
            for foreign in ["http://", "https://", "//cdn", "innerHTML", "eval(", "style="] {
                assert!(!own.contains(foreign), "{path} has {foreign}");
            }
        }
    }
}
