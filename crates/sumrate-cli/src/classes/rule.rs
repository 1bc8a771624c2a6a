//! Rules of `--class-rule`.

use std::net::IpAddr;
use std::str::FromStr;

use fbdt::Class;

/// What a rule names.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Named {
    Port(u16),
    Address(IpAddr),
    /// A name, and with a dot in front all below it, too.
    Host(String),
}

/// One `--class-rule`: connections to this port or host are of this class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassRule {
    named: Named,
    class: Class,
}

/// Why a `--class-rule` was refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClassRuleError {
    /// No port or host in front of a `=`.
    #[error(
        "`{0}` is not a rule; write PORT=CLASS or HOST=CLASS, such as 22=conversational or .example.org=background"
    )]
    Form(String),
    /// A port that cannot be.
    #[error("`{0}` is not a port; write one of 1 to 65535")]
    Port(String),
    /// A name with letters that names do not have on the wire.
    #[error("`{0}` has letters outside ASCII; write the name as DNS has it, xn--...")]
    Letters(String),
    /// A name of digits and signs only.
    #[error(
        "`{0}` is not a port, address or name; write one port, one address (no network) or one name"
    )]
    Name(String),
    /// No such class.
    #[error("`{0}` is not a class; write conversational, interactive, streaming or background")]
    Class(String),
}

impl FromStr for ClassRule {
    type Err = ClassRuleError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || ClassRuleError::Form(text.to_owned());
        let (named, class) = text.rsplit_once('=').ok_or_else(bad)?;
        let class = Class::from_name(class).ok_or_else(|| ClassRuleError::Class(class.into()))?;
        let digits = !named.is_empty() && named.bytes().all(|byte| byte.is_ascii_digit());
        let named = if digits {
            let port = named.parse().ok().filter(|port| *port > 0);
            Named::Port(port.ok_or_else(|| ClassRuleError::Port(named.into()))?)
        } else if let Ok(address) = named.trim_matches(['[', ']']).parse::<IpAddr>() {
            Named::Address(address.to_canonical())
        } else {
            let fits = |c: char| c.is_alphanumeric() || ".-_".contains(c);
            let host = named.strip_suffix('.').unwrap_or(named);
            if host.trim_start_matches('.').is_empty() {
                return Err(bad());
            }
            if !host.is_ascii() {
                return Err(ClassRuleError::Letters(named.into()));
            }
            // The last part of a name has letters; ranges, networks and HOST:PORT are none.
            let named_by_letters = host.bytes().any(|byte| byte.is_ascii_alphabetic());
            if !named_by_letters || !host.chars().all(fits) {
                return Err(ClassRuleError::Name(named.into()));
            }
            Named::Host(host.to_lowercase())
        };
        Ok(Self { named, class })
    }
}

impl ClassRule {
    fn covers(&self, host: &str, port: u16) -> bool {
        match &self.named {
            Named::Port(named) => *named == port,
            Named::Address(named) => {
                host.parse::<IpAddr>().is_ok_and(|address| address.to_canonical() == *named)
            }
            Named::Host(named) => {
                let host = host.strip_suffix('.').unwrap_or(host).to_lowercase();
                match named.strip_prefix('.') {
                    Some(domain) => host == domain || host.ends_with(named),
                    None => host == *named,
                }
            }
        }
    }
}

/// All rules, in the order in which they were given: the first that fits counts.
#[derive(Debug, Clone, Default)]
pub struct ClassRules(Vec<ClassRule>);

impl ClassRules {
    /// These rules.
    pub fn new(rules: Vec<ClassRule>) -> Self {
        Self(rules)
    }

    /// Whether any is for a name, which only those have who ask for it.
    pub fn name_hosts(&self) -> bool {
        self.0.iter().any(|rule| matches!(rule.named, Named::Host(_)))
    }

    /// The class of connections to `host`:`port`, if a rule says it.
    pub fn class_of(&self, host: &str, port: u16) -> Option<Class> {
        self.0.iter().find(|rule| rule.covers(host, port)).map(|rule| rule.class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(texts: &[&str]) -> ClassRules {
        ClassRules::new(texts.iter().map(|text| text.parse().unwrap()).collect())
    }

    #[test]
    fn the_first_rule_that_fits_counts() {
        let rules = rules(&[
            "call.example.org=conversational",
            ".example.org=streaming",
            "22=interactive",
            "10.0.0.1=background",
            "[2001:db8::1]=background",
        ]);
        for (host, port, class) in [
            ("call.example.org", 443, Some(Class::Conversational)),
            ("Call.Example.Org.", 443, Some(Class::Conversational)),
            ("video.example.org", 22, Some(Class::Streaming)),
            ("example.org", 1, Some(Class::Streaming)),
            ("badexample.org", 443, None),
            ("other.net", 22, Some(Class::Interactive)),
            ("10.0.0.1", 443, Some(Class::Background)),
            ("::ffff:10.0.0.1", 443, Some(Class::Background)),
            ("2001:db8:0::1", 443, Some(Class::Background)),
            ("10.0.0.2", 443, None),
        ] {
            assert_eq!(rules.class_of(host, port), class, "{host}:{port}");
        }
        assert!(rules.name_hosts());
        assert!(!self::rules(&["22=interactive", "10.0.0.1=background"]).name_hosts());
    }

    #[test]
    fn what_is_no_rule_is_refused_with_advice() {
        for (bad, advice) in [
            ("", "PORT=CLASS"),
            ("=background", "PORT=CLASS"),
            ("22", "PORT=CLASS"),
            (".=streaming", "PORT=CLASS"),
            ("0=background", "1 to 65535"),
            ("70000=streaming", "1 to 65535"),
            ("1-100=background", "one port"),
            ("a b=streaming", "one name"),
            ("10.0.0.0/8=streaming", "no network"),
            ("host:22=streaming", "one name"),
            ("b\u{fc}cher.example=background", "xn--"),
            ("22=fast", "conversational"),
        ] {
            let said = bad.parse::<ClassRule>().unwrap_err().to_string();
            assert!(said.contains(advice), "{bad}: {said}");
        }
        assert!("xn--bcher-kva.example=background".parse::<ClassRule>().is_ok());
    }
}
