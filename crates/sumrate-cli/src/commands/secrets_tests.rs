//! What is shown of a value for debugging ends in logs, in panics and in messages of assertions: no
//! type that holds a secret shows it there. Fields that hold one are found by their names, too
//! (tests/layering/test_secret_fields.py).

use std::ffi::OsString;
use std::fmt::Debug;
use std::path::Path;

use clap::{CommandFactory, Parser};
use fbdt::identity::Secret;
use fbdt::{ClientConfig, CredentialLimits, Link, ServerConfig, ServerState};

use super::credential::CredentialReport;
use super::event::{ServeEvent, UpEvent};
use super::operand::{Copy, Operand};
use crate::args::{Cli, ProxyAuth};
use crate::config::{ConfigFile, ConfigSource, merge};
use crate::output;
use crate::private_text::PrivateText;
use crate::web::Token;

const PASSWORD: &str = "opensesame-correct-horse";

/// Everything that must not be shown, and everything that is.
struct Shown {
    secrets: Vec<String>,
    types: usize,
}

impl Shown {
    fn show(&mut self, name: &str, value: &impl Debug) {
        self.types += 1;
        for text in [format!("{value:?}"), format!("{value:#?}")] {
            for secret in &self.secrets {
                assert!(!text.contains(secret.as_str()), "{name} shows {secret}: {text}");
            }
            assert!(!text.is_empty());
        }
    }

    /// A command line as it is parsed.
    fn show_command(&mut self, words: &[&str]) {
        let words: Vec<&str> = ["sumrate"].into_iter().chain(words.iter().copied()).collect();
        let cli = Cli::try_parse_from(&words).unwrap_or_else(|error| panic!("{error}"));
        self.show(words[1], &cli);
    }

    fn show_configuration(&mut self, link: &str) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("config.toml");
        let text = format!(
            "[up]\nlink = \"{link}\"\nsocks-auth = \"me:{PASSWORD}\"\n[hosts]\nhome = \"{link}\"\n\
             [serve]\nlisten = [\"127.0.0.1:0\", \"{link}\"]\n"
        );
        self.show("ConfigFile", &ConfigFile::parse(&text, Path::new("c"), 0o600).unwrap());
        let text = text.split("[serve]").next().unwrap();
        output::write_private(&path, text).unwrap();
        let line = format!("sumrate up --config {}", path.display());
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let merged = merge(words.clone(), || None).unwrap();
        self.show("Merged", &merged);
        let matches = Cli::command().try_get_matches_from(merged.arguments).unwrap();
        let source = ConfigSource::new(words, matches);
        self.show("ConfigSource", &source);
        let reread = source.reread().unwrap();
        self.show("Reread", &reread);
        self.show("Accepted", &reread.accepted);
        let wrong = text.replace("me:", "me");
        let error = ConfigFile::parse(&wrong, Path::new("c"), 0o600);
        let error = error.and_then(|file| crate::config::check(&file)).unwrap_err();
        self.show("ConfigError", &error);
        assert!(!error.to_string().contains(PASSWORD), "{error}");
    }

    fn show_events(&mut self, link: &str, url: &str) {
        let (version, link) = (String::new(), PrivateText::from(link));
        let (listen, web) = (Vec::new(), Some(PrivateText::from(url)));
        let listening = ServeEvent::Listening {
            version: version.clone(),
            link: link.clone(),
            listen,
            status_socket: None,
            metrics: None,
            web: web.clone(),
        };
        self.show("ServeLine", &listening.into_line());
        let ready = UpEvent::Ready {
            version,
            socks: None,
            http: None,
            status_socket: None,
            metrics: None,
            web,
            session: None,
            paths: Vec::new(),
        };
        self.show("UpLine", &ready.into_line());
        self.show("CredentialReport", &CredentialReport { link: Some(link), ..Default::default() });
    }
}

#[test]
fn no_type_that_holds_a_secret_shows_it() {
    let directory = tempfile::tempdir().unwrap();
    let state = ServerState::open(directory.path().join("state")).unwrap();
    let credential = state.new_credential("laptop", CredentialLimits::default()).unwrap();
    let servers = vec!["192.0.2.1:7443".parse().unwrap()];
    let link = Link::new(servers, Some(state.fingerprint()), &credential);
    let text = link.to_string_with_secret();
    let secret = text.split("c=").nth(1).unwrap().to_owned();
    let token = Token::random().unwrap();
    let bytes = credential.secret.expose().iter().map(u8::to_string).collect::<Vec<_>>();
    let listed = [bytes.join(", "), bytes.join(",\n    ")];
    let auth: ProxyAuth = format!("me:{PASSWORD}").parse().unwrap();
    let url = format!("http://127.0.0.1:1/#token={}", token.secret());
    let secrets = vec![secret, PASSWORD.to_owned(), token.secret().to_owned()];
    let mut shown = Shown { secrets: [secrets, listed.to_vec()].concat(), types: 0 };

    shown.show("PrivateText", &PrivateText::from(text.as_str()));
    shown.show("Secret", &Secret::from_bytes(*credential.secret.expose()));
    shown.show("Credential", &credential);
    shown.show("Link", &link);
    shown.show("ClientConfig", &ClientConfig::new(link));
    shown.show("ServerState", &state);
    shown.show("ServerConfig", &ServerConfig::new(state, Vec::new()));
    shown.show("ProxyAuth", &auth);
    shown.show("Token", &token);
    let mut preload = sumrate_preload::config::Config::parse("1 127.0.0.1:1080").unwrap();
    preload.auth = Some((b"me".to_vec(), PASSWORD.as_bytes().to_vec()));
    let listed = PASSWORD.bytes().map(|byte| byte.to_string()).collect::<Vec<_>>();
    shown.secrets.extend([listed.join(", "), listed.join(",\n            ")]);
    shown.show("preload::Config", &preload);

    let password = format!("me:{PASSWORD}");
    shown.show_command(&["up", &text, "--socks-auth", &password]);
    shown.show_command(&["bench", &text]);
    shown.show_command(&["doctor", &text]);
    shown.show_command(&["cp", "here", &format!("{text}:there")]);
    shown.show_command(&["run", "--socks-auth", &password, "true"]);
    shown.show("Operand", &Operand::parse(&format!("{text}:there")));
    let operands = [format!("{text}:there").into(), PrivateText::from("here")];
    shown.show("Copy", &Copy::of(&operands).unwrap());
    shown.show_configuration(&text);
    shown.show_events(&text, &url);
    assert!(shown.types >= 20, "{} types", shown.types);
}

/// The search finds what a type shows that hides nothing.
#[test]
#[should_panic(expected = "a string shows opensesame")]
fn a_type_that_shows_its_secret_is_found() {
    let mut shown = Shown { secrets: vec![PASSWORD.to_owned()], types: 0 };
    shown.show("a string", &format!("me:{PASSWORD}"));
}
