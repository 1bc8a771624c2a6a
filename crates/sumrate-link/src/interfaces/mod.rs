//! Making the links' interfaces and removing them again.

mod ip;

use std::io::ErrorKind;

use crate::config::{Backend, Config, Endpoint, LinkConfig, Side};
use crate::device::{self, Device, DeviceError};
use crate::names;
use crate::netns::{self, NetnsError};

pub use ip::IpError;

/// Mark of our interfaces; the process that made them follows.
const ALIAS: &str = "sumrate-link process ";

/// Packets that wait for the emulator in a TUN interface while it has not been brought on.
const TX_QUEUE: &str = "10000";

/// Why the links could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum SetupError {
    /// A command of iproute2 failed.
    #[error(transparent)]
    Ip(#[from] IpError),
    /// A namespace cannot be entered.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// A device cannot be opened.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// An interface of that name is not ours to remove.
    #[error(
        "interface {interface:?} exists already and {owner}; remove it with `ip link del {interface}` or rename the link"
    )]
    Exists {
        /// Its name.
        interface: String,
        /// Whose it is.
        owner: String,
    },
}

impl SetupError {
    /// Whether a missing privilege is the reason.
    pub fn is_privilege(&self) -> bool {
        match self {
            SetupError::Ip(IpError::Privilege { .. })
            | SetupError::Device(DeviceError::Privilege { .. }) => true,
            SetupError::Netns(NetnsError::Enter { source, .. }) => {
                source.kind() == ErrorKind::PermissionDenied
            }
            _ => false,
        }
    }
}

/// The emulator's devices, `[a, b]` of each link; the interfaces go when this is dropped.
#[derive(Debug)]
pub struct Interfaces {
    made: Vec<String>,
    /// Devices of each link by side.
    pub devices: Vec<[Device; 2]>,
}

impl Interfaces {
    /// Makes everything that the configuration asks for. What was made before an error is removed.
    pub fn set_up(config: &Config) -> Result<Interfaces, SetupError> {
        let mut interfaces = Interfaces { made: Vec::new(), devices: Vec::new() };
        for link in &config.links {
            for end in &link.ends {
                if let Some(netns) = &end.netns {
                    netns::open(netns)?;
                }
            }
            let a = interfaces.set_up_side(link, Side::A)?;
            let b = interfaces.set_up_side(link, Side::B)?;
            interfaces.devices.push([a, b]);
            if link.static_neighbours && link.backend == Backend::AfPacket {
                add_neighbours(link)?;
            }
        }
        Ok(interfaces)
    }

    fn set_up_side(&mut self, link: &LinkConfig, side: Side) -> Result<Device, SetupError> {
        let end = link.end(side);
        let device = match link.backend {
            Backend::Tun => {
                netns::run_in(end.netns.as_deref(), || device::open_tun(&end.interface))??
            }
            Backend::AfPacket => {
                let own = names::emulator_interface(&link.name, side);
                make_veth(link, side, &own)?;
                self.made.push(own.clone());
                ip::run(
                    None,
                    &[
                        "link",
                        "set",
                        "dev",
                        &own,
                        "alias",
                        &format!("{ALIAS}{}", std::process::id()),
                    ],
                )?;
                // The emulator's own IP stack stays out of it: no addresses, no ARP.
                ip::run(None, &["link", "set", "dev", &own, "arp", "off", "addrgenmode", "none"])?;
                ip::run(None, &["link", "set", "dev", &own, "up"])?;
                device::open_af_packet(&own)?
            }
        };
        bring_up(link, end)?;
        Ok(device)
    }
}

impl Drop for Interfaces {
    fn drop(&mut self) {
        for interface in &self.made {
            // The other end goes with it. If the namespace is gone, so is the interface.
            let _ = ip::run(None, &["link", "del", "dev", interface]);
        }
    }
}

fn make_veth(link: &LinkConfig, side: Side, own: &str) -> Result<(), SetupError> {
    remove_stale(own)?;
    let end = link.end(side);
    let mtu = link.mtu.to_string();
    let mac = names::mac_address(&link.name, side);
    let mut arguments = vec![
        "link",
        "add",
        own,
        "mtu",
        &mtu,
        "type",
        "veth",
        "peer",
        "name",
        &end.interface,
        "mtu",
        &mtu,
        "address",
        &mac,
    ];
    if let Some(netns) = &end.netns {
        arguments.extend(["netns", netns]);
    }
    Ok(ip::run(None, &arguments)?)
}

/// Addresses, and up.
fn bring_up(link: &LinkConfig, end: &Endpoint) -> Result<(), SetupError> {
    let netns = end.netns.as_deref();
    let mtu = link.mtu.to_string();
    for address in &end.address {
        let mut arguments = vec!["address", "add", address, "dev", &end.interface];
        if address.contains(':') {
            arguments.push("nodad");
        }
        ip::run(netns, &arguments)?;
    }
    Ok(ip::run(
        netns,
        &["link", "set", "dev", &end.interface, "mtu", &mtu, "txqueuelen", TX_QUEUE, "up"],
    )?)
}

fn add_neighbours(link: &LinkConfig) -> Result<(), SetupError> {
    for (side, other) in [(Side::A, Side::B), (Side::B, Side::A)] {
        let mac = names::mac_address(&link.name, other);
        for address in &link.end(other).address {
            let bare = address.split('/').next().unwrap_or(address);
            let end = link.end(side);
            ip::run(
                end.netns.as_deref(),
                &[
                    "neighbour",
                    "replace",
                    bare,
                    "lladdr",
                    &mac,
                    "dev",
                    &end.interface,
                    "nud",
                    "permanent",
                ],
            )?;
        }
    }
    Ok(())
}

/// Removes `interface` if a dead process of ours left it behind; refuses if it is anybody else's.
fn remove_stale(interface: &str) -> Result<(), SetupError> {
    let Some(alias) = ip::alias(interface) else {
        return Ok(());
    };
    let exists = |owner: String| SetupError::Exists { interface: interface.to_owned(), owner };
    let Some(process) = alias.strip_prefix(ALIAS) else {
        return Err(exists("is not sumrate-link's".to_owned()));
    };
    if is_emulator(process) {
        return Err(exists(format!("belongs to the running process {process}")));
    }
    Ok(ip::run(None, &["link", "del", "dev", interface])?)
}

/// Whether `process` runs and can be an emulator; its number may long be another's.
fn is_emulator(process: &str) -> bool {
    let name = std::fs::read_to_string(format!("/proc/{process}/comm"));
    name.is_ok_and(|name| name.starts_with("sumrate"))
}
