//! What clap says about a wrong command line quotes what it was given, and that is logged by a service.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The same error; where it quotes the value of a flag that takes a password, without that value.
pub(crate) fn without_passwords(mut error: clap::Error) -> clap::Error {
    let takes_password = |value: &ContextValue| match value {
        ContextValue::String(argument) => argument.contains("PASSWORD"),
        _ => false,
    };
    if error.get(ContextKind::InvalidArg).is_some_and(takes_password) {
        let hidden = ContextValue::String("<redacted>".to_owned());
        error.insert(ContextKind::InvalidValue, hidden);
    }
    error
}

/// What else helps: where a join link comes from.
pub(crate) fn advice(error: &clap::Error) -> Option<&'static str> {
    let missing = match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::MissingRequiredArgument, Some(ContextValue::Strings(missing))) => missing,
        _ => return None,
    };
    let is_link = missing.iter().any(|argument| argument.contains("LINK"));
    is_link.then_some("run `sumrate serve` on the server: it prints the link")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::Cli;

    fn said(words: &[&str]) -> String {
        let words = ["sumrate"].iter().chain(words);
        without_passwords(Cli::try_parse_from(words).unwrap_err()).render().to_string()
    }

    #[test]
    fn who_has_no_link_reads_where_it_comes_from() {
        let error =
            |words: &[&str]| Cli::try_parse_from(["sumrate"].iter().chain(words)).unwrap_err();
        assert!(advice(&error(&["up"])).is_some_and(|words| words.contains("sumrate serve")));
        assert_eq!(advice(&error(&["serve"])), None);
    }

    #[test]
    fn a_malformed_password_is_not_quoted_and_other_values_are() {
        let long = "y".repeat(300);
        for password in ["opensesame", "opensesame:", ":opensesame", &format!("opensesame:{long}")]
        {
            for words in [
                &["up", "@l", "--socks-auth", password][..],
                &["run", "--socks-auth", password, "x"],
            ] {
                let said = said(words);
                assert!(said.contains("'<redacted>' for '--socks-auth"), "{said}");
                assert!(!said.contains("opensesame") && !said.contains("yyy"), "{said}");
                assert!(said.contains("must be USER:PASSWORD"), "what to do is said: {said}");
            }
        }
        assert!(said(&["up", "@l", "--socks", "nowhere"]).contains("'nowhere'"));
    }
}
