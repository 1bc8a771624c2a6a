//! Flags of how a client reaches its server, common to `up`, `bench` and `cp`.

use clap::Args;

use super::PathArg;

/// Which networks are used, and what they see of TLS.
#[derive(Debug, Clone, Default, Args)]
pub struct ReachArgs {
    /// Use this path: NAME=IFACE or NAME=LOCAL_IP[@SERVER_IP[:PORT]], with ,backup at the end for a
    /// backup [default: every usable interface but tunnels]
    #[arg(long, help_heading = "Paths", value_name = "NAME=LOCAL")]
    pub path: Vec<PathArg>,
    /// Backup path or interface, or a pattern as in enx*: used only while no other works
    #[arg(long, help_heading = "Paths", value_name = "NAME")]
    pub backup: Vec<String>,
    /// Interface that is not used as a path, or a pattern as in veth*; repeat it for several
    #[arg(long = "not", help_heading = "Paths", value_name = "NAME", conflicts_with = "path")]
    pub not_wanted: Vec<String>,
    /// Server name that networks see in the TLS handshake (SNI) [default: the host name in the link, if it
    /// has one]
    #[arg(long, help_heading = "Paths", value_name = "HOST", value_parser = server_name)]
    pub sni: Option<String>,
    /// Application protocol that networks see in the TLS handshake (ALPN), such as h2; `serve` needs the
    /// same --alpn
    #[arg(long, help_heading = "Paths", value_name = "NAME", value_parser = protocol)]
    pub alpn: Vec<String>,
}

/// A host name as TLS carries it.
fn server_name(text: &str) -> Result<String, String> {
    let fine = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
    let is_address = text.parse::<std::net::IpAddr>().is_ok();
    let labels = |text: &str| text.split('.').all(|label| (1..=63).contains(&label.len()));
    if is_address || text.len() > 253 || !text.chars().all(fine) || !labels(text) {
        return Err(format!("`{text}` is not a host name; write for example www.example.org"));
    }
    Ok(text.to_owned())
}

/// The name of an application protocol as TLS carries it.
pub(super) fn protocol(text: &str) -> Result<String, String> {
    if text.is_empty() || text.len() > 255 || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(format!("`{text}` is not the name of a protocol; write for example h2"));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_tls_cannot_carry_is_refused() {
        assert_eq!(server_name("www.example.org").unwrap(), "www.example.org");
        for bad in ["", "192.0.2.1", "::1", "a..b", "a b", "é", &"a".repeat(64)] {
            assert!(server_name(bad).is_err(), "{bad}");
        }
        assert_eq!(protocol("http/1.1").unwrap(), "http/1.1");
        for bad in ["", "a b", "é", &"a".repeat(256)] {
            assert!(protocol(bad).is_err(), "{bad}");
        }
    }
}
