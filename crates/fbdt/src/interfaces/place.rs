//! Where a path leaves this machine: what has to change before a dead path is worth a new attempt.

use std::fmt::Write as _;
use std::net::IpAddr;

use nix::net::if_::if_nametoindex;

use super::routes::Routes;
use super::{Interface, up};
use crate::socket::LocalBinding;

/// Interfaces, their addresses, and routes, as they were at one time.
pub(crate) struct Places {
    interfaces: Vec<Interface>,
    routes: Routes,
    servers: Vec<IpAddr>,
}

impl Places {
    /// Looks at what there is now, for paths to these servers.
    ///
    /// # Errors
    /// The system does not tell which interfaces there are.
    pub(crate) fn read(servers: &[IpAddr]) -> std::io::Result<Self> {
        // Where routes cannot be read, interfaces and addresses tell what changed.
        let routes = Routes::read().unwrap_or_default();
        Ok(Self { interfaces: up()?, routes, servers: servers.to_vec() })
    }

    /// The path's interfaces with their addresses, and its routes to the servers: nothing that others
    /// have, and no lifetimes. `None` if it has no interface.
    pub(crate) fn of(&self, local: &LocalBinding) -> Option<String> {
        let is_own = |interface: &&Interface| match local {
            LocalBinding::Any => self.leads(interface),
            LocalBinding::Interface(name) => interface.name == *name,
            LocalBinding::Address(address) => interface.addresses.contains(address),
        };
        let mut text = String::new();
        for interface in self.interfaces.iter().filter(is_own) {
            self.describe(interface, &mut text);
        }
        let anywhere = match local {
            LocalBinding::Any => true,
            LocalBinding::Address(address) => address.is_loopback(),
            LocalBinding::Interface(_) => false,
        };
        (anywhere || !text.is_empty()).then_some(text)
    }

    fn leads(&self, interface: &Interface) -> bool {
        if_nametoindex(interface.name.as_str()).is_ok_and(|index| {
            self.servers.iter().any(|server| self.routes.lead_to(*server, index))
        })
    }

    fn describe(&self, interface: &Interface, text: &mut String) {
        let index = if_nametoindex(interface.name.as_str()).unwrap_or_default();
        let mut addresses = interface.addresses.clone();
        addresses.sort_unstable();
        let mut routes: Vec<String> =
            self.servers.iter().flat_map(|server| self.routes.described(*server, index)).collect();
        routes.sort_unstable();
        routes.dedup();
        let _ = writeln!(text, "{} {index} {addresses:?} {routes:?}", interface.name);
    }
}
