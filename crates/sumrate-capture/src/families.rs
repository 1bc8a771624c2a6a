//! Listeners for IPv4 and IPv6. A machine that has no IPv6 needs none for it: rules refuse what comes
//! later. Where IPv6 is in use, a missing listener would leave it direct: nothing starts then.

use std::{fs, io};

use nix::errno::Errno;

use crate::guardian::CaptureError;

/// Addresses of IPv6, with the interface last.
const ADDRESSES: &str = "/proc/net/if_inet6";
/// Routes of IPv6, with the interface last.
const ROUTES: &str = "/proc/net/ipv6_route";

/// Listens on IPv4 and, unless this machine has none, on IPv6. `listen` is told whether it is IPv6.
///
/// # Errors
/// [`CaptureError`]: no listener for a family that is in use.
pub fn listen_on_both<T>(
    action: &'static str,
    listen: impl Fn(bool) -> io::Result<T>,
) -> Result<[Option<T>; 2], CaptureError> {
    let failed = |error| CaptureError::System { action, error };
    let v4 = listen(false).map_err(failed)?;
    let v6 = match listen(true) {
        Ok(listener) => Some(listener),
        Err(error) => {
            let interface = interface_with_ipv6()
                .map_err(|error| CaptureError::System { action: "look for IPv6", error })?;
            without_ipv6(action, error, interface)?;
            None
        }
    };
    Ok([Some(v4), v6])
}

/// Accepts that there is no listener for IPv6 because there is no IPv6.
fn without_ipv6(
    action: &'static str,
    error: io::Error,
    interface: Option<String>,
) -> Result<(), CaptureError> {
    let code = error.raw_os_error().map(Errno::from_raw);
    match (code, interface) {
        (Some(Errno::EADDRNOTAVAIL | Errno::EAFNOSUPPORT), None) => {
            tracing::info!(%error, "this machine has no IPv6: what comes of it later is refused");
            Ok(())
        }
        (Some(Errno::EADDRNOTAVAIL | Errno::EAFNOSUPPORT), Some(interface)) => {
            Err(CaptureError::Ipv6 { action, error, interface })
        }
        _ => Err(CaptureError::System { action, error }),
    }
}

/// An interface other than lo that has an IPv6 address or route.
fn interface_with_ipv6() -> io::Result<Option<String>> {
    for file in [ADDRESSES, ROUTES] {
        match fs::read_to_string(file) {
            Ok(text) => match other_than_loopback(&text) {
                Some(found) => return Ok(Some(found)),
                None => continue,
            },
            // A kernel without IPv6 has no such file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

fn other_than_loopback(text: &str) -> Option<String> {
    let interfaces = text.lines().filter_map(|line| line.split_whitespace().last());
    interfaces.filter(|name| *name != "lo").map(str::to_owned).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NULL: &str = "00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
                        00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo\n";

    fn refused(code: Errno, interface: Option<&str>) -> Option<String> {
        let interface = interface.map(str::to_owned);
        let checked = without_ipv6("listen", io::Error::from(code), interface);
        checked.err().map(|error| error.to_string())
    }

    #[test]
    fn ipv6_in_use_is_never_left_out() {
        assert_eq!(refused(Errno::EADDRNOTAVAIL, None), None);
        assert_eq!(refused(Errno::EAFNOSUPPORT, None), None);
        let said = refused(Errno::EADDRNOTAVAIL, Some("wlan0")).unwrap();
        assert!(said.contains("IPv6 is in use on wlan0"), "{said}");
        assert!(said.contains("sysctl net.ipv6.conf.lo.disable_ipv6=0"), "{said}");
        assert!(refused(Errno::EAFNOSUPPORT, Some("wlan0")).is_some());
    }

    #[test]
    fn other_failures_are_no_missing_family() {
        for code in [Errno::EMFILE, Errno::ENFILE, Errno::EACCES, Errno::ENOMEM] {
            assert!(refused(code, None).is_some(), "{code}");
        }
        let full = |ipv6| if ipv6 { Err(Errno::EMFILE.into()) } else { Ok(1) };
        assert!(listen_on_both("listen", full).is_err());
        let no_ipv4 = |ipv6| if ipv6 { Ok(1) } else { Err(Errno::EADDRNOTAVAIL.into()) };
        assert!(listen_on_both("listen", no_ipv4).is_err());
        assert_eq!(listen_on_both("listen", Ok).unwrap(), [Some(false), Some(true)]);
    }

    #[test]
    fn addresses_and_routes_name_an_interface() {
        let own = "00000000000000000000000000000001 01 80 10 80       lo\n";
        let other = "fe80000000000000001122fffe334455 02 40 20 80     eth0\n";
        assert_eq!(other_than_loopback(own), None);
        assert_eq!(other_than_loopback(NULL), None);
        assert_eq!(other_than_loopback(&format!("{own}{other}")).as_deref(), Some("eth0"));
        assert_eq!(other_than_loopback(""), None);
    }
}
