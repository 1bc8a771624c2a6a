//! The status page: its files for everybody who reaches the port, the status for those with the token.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderMap, HeaderName,
    HeaderValue, REFERRER_POLICY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Response, StatusCode};

use super::{Answer, text};
use crate::args::same_secret;
use crate::status::StatusReport;

/// Nothing but this site's own files, nowhere to send anything to, in nobody's frame.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
const FILES: [(&str, &str, &str); 3] = [
    ("/", "text/html; charset=utf-8", include_str!("page.html")),
    ("/page.css", "text/css; charset=utf-8", include_str!("page.css")),
    ("/page.js", "text/javascript; charset=utf-8", include_str!("page.js")),
];
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

/// The answer to a request for `path`.
pub fn page(
    token: &Token,
    path: &str,
    headers: &HeaderMap,
    report: impl FnOnce() -> StatusReport,
) -> Answer {
    let mut answer = match FILES.iter().find(|(known, ..)| *known == path) {
        Some((_, kind, content)) => file(kind, Bytes::from_static(content.as_bytes())),
        None if path == "/api/status" && token.opens(headers) => {
            match serde_json::to_vec(&report()) {
                Ok(json) => file("application/json", json.into()),
                Err(_) => text(StatusCode::INTERNAL_SERVER_ERROR, "no status\n"),
            }
        }
        None if path == "/api/status" => {
            let mut refusal = text(StatusCode::UNAUTHORIZED, "the token is missing or wrong\n");
            refusal.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            refusal
        }
        None => text(StatusCode::NOT_FOUND, "there is no such page\n"),
    };
    protect(answer.headers_mut());
    answer
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

    fn get(token: &Token, path: &str, authorization: Option<&str>) -> Answer {
        let mut headers = HeaderMap::new();
        if let Some(value) = authorization {
            headers.insert(AUTHORIZATION, value.parse().unwrap());
        }
        page(token, path, &headers, report)
    }

    #[test]
    fn the_status_needs_the_token_and_the_files_do_not() {
        let token = Token::random().unwrap();
        let right = format!("Bearer {}", token.secret());
        assert_eq!(get(&token, "/api/status", Some(&right)).status(), 200);
        let wrong = format!("{right}x");
        for bad in [None, Some(""), Some("Bearer "), Some(token.secret()), Some(wrong.as_str())] {
            assert_eq!(get(&token, "/api/status", bad).status(), 401, "{bad:?}");
        }
        assert_ne!(token.secret(), Token::random().unwrap().secret());
        assert!(token.secret().len() >= 32 && !format!("{token:?}").contains(token.secret()));
        for (path, kind, _) in FILES {
            let answer = get(&token, path, None);
            assert_eq!(answer.headers()[CONTENT_TYPE], kind);
            assert!(answer.headers().contains_key(CONTENT_SECURITY_POLICY));
        }
        for bad in ["/../page.js", "/page.html", "//", "/api/status/", "/api"] {
            assert_eq!(get(&token, bad, Some(&right)).status(), 404, "{bad}");
        }
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
