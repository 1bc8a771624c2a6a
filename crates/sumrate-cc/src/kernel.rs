//! Loads the programs, finds those that are loaded, and reaches their maps.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::{Mutex, PoisonError};

use libbpf_rs::query::{MapInfo, MapInfoIter};
use libbpf_rs::{ErrorKind, MapCore, MapFlags, MapHandle, MapType, ObjectBuilder, PrintLevel};

use crate::{Algorithm, CouplingError, Group, GroupedBy, loaded};

/// The group's number in a key of the map; the rest says who named it (`bpf/subflow.h`).
const NUMBER: u64 = (1 << 60) - 1;
const BY_MPTCP: u64 = 2;
/// `struct path` of `bpf/coupled.h`; it begins with the owner.
const PATH_BYTES: usize = 32;

/// A number of the programs' sources, which the names of their maps end with (`bpf/algorithm.h`).
const BUILD: &str = env!("SUMRATE_CC_BUILD");

/// An eBPF object as a file is: libelf reads it in place.
#[repr(align(8))]
struct Aligned<T: ?Sized>(T);

macro_rules! object {
    ($name:literal) => {{
        static OBJECT: &Aligned<[u8]> =
            &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/", $name, ".bpf.o")));
        &OBJECT.0
    }};
}

fn object(algorithm: Algorithm) -> &'static [u8] {
    match algorithm {
        Algorithm::Lia => object!("lia"),
        Algorithm::Olia => object!("olia"),
        Algorithm::Balia => object!("balia"),
        Algorithm::Reno => object!("reno"),
    }
}

/// Says which sockets belong together. Everything that it can do later needs no privilege.
#[derive(Debug)]
pub struct Coupler {
    algorithm: Algorithm,
    sockets: MapHandle,
    groups: MapHandle,
}

/// Loads an algorithm, or finds it where it is loaded.
///
/// # Errors
/// [`CouplingError`]: among it that a privilege is missing.
pub fn load(algorithm: Algorithm) -> Result<Coupler, CouplingError> {
    if loaded().contains(&algorithm) {
        return find(algorithm);
    }
    libbpf_rs::set_print(Some((PrintLevel::Debug, listen)));
    let failed = |error: libbpf_rs::Error| match error.kind() {
        ErrorKind::PermissionDenied => CouplingError::NotPermitted { algorithm },
        _ => CouplingError::Refused { algorithm, detail: format!("{error:#}{}", complaints()) },
    };
    let opened = ObjectBuilder::default().open_memory(object(algorithm)).map_err(failed)?;
    let mut object = opened.load().map_err(failed)?;
    let sockets = handle(&object, &sockets_of(algorithm)).map_err(failed)?;
    let groups = handle(&object, &groups_of(algorithm)).map_err(failed)?;
    let mut refusal = None;
    for mut map in object.maps_mut() {
        if map.map_type() == MapType::StructOps {
            match map.attach_struct_ops() {
                // The registration holds the map, and through it the programs and their maps.
                Ok(mut link) => link.disconnect(),
                Err(error) => refusal = Some(failed(error)),
            }
        }
    }
    if let Some(refusal) = refusal {
        // Another process may have been faster. Ours go first, or they would be found instead of its maps.
        drop((object, sockets, groups));
        return if loaded().contains(&algorithm) { find(algorithm) } else { Err(refusal) };
    }
    Ok(Coupler { algorithm, sockets, groups })
}

/// What libbpf has complained of: the reason that its error codes lack.
static COMPLAINTS: Mutex<String> = Mutex::new(String::new());
/// Of that, what is shown: the verifier explains itself at its end.
const SHOWN_BYTES: usize = 600;

fn listen(level: PrintLevel, text: String) {
    tracing::debug!("{}", text.trim_end());
    if level == PrintLevel::Warn {
        COMPLAINTS.lock().unwrap_or_else(PoisonError::into_inner).push_str(&text);
    }
}

fn complaints() -> String {
    let said = std::mem::take(&mut *COMPLAINTS.lock().unwrap_or_else(PoisonError::into_inner));
    let said = said.trim_end();
    let start = (said.len().saturating_sub(SHOWN_BYTES)..=said.len())
        .find(|&at| said.is_char_boundary(at))
        .unwrap_or(said.len());
    if said.is_empty() { String::new() } else { format!(" ({})", &said[start..]) }
}

fn handle(object: &libbpf_rs::Object, name: &str) -> Result<MapHandle, libbpf_rs::Error> {
    let found = object.maps().find(|map| map.name() == name);
    let absent = || libbpf_rs::Error::from(io::Error::from(io::ErrorKind::NotFound));
    MapHandle::try_from(&found.ok_or_else(absent)?)
}

/// Finds an algorithm that is loaded, by whatever process.
///
/// # Errors
/// [`CouplingError`]: it is not loaded, another build's is, or a privilege is missing.
pub fn find(algorithm: Algorithm) -> Result<Coupler, CouplingError> {
    if !loaded().contains(&algorithm) {
        return Err(CouplingError::NotLoaded { algorithm });
    }
    let unreachable = || CouplingError::Unreachable { algorithm };
    // Maps keep their names, and what connections still use stays: the newest is the one that is registered.
    let registered: Vec<u32> = registrations(algorithm).map(|map| map.id).collect();
    let newest = *registered.last().ok_or_else(unreachable)?;
    let open = |name: &str| {
        // It came before its registration and behind all others.
        let id = maps(name).map(|map| map.id).filter(|id| *id < newest).last();
        let id = id.filter(|id| registered.iter().all(|other| other < id || *other == newest));
        let id = id.ok_or(CouplingError::OtherBuild { algorithm })?;
        MapHandle::from_map_id(id).map_err(|_| unreachable())
    };
    let sockets = open(&sockets_of(algorithm))?;
    Ok(Coupler { algorithm, sockets, groups: open(&groups_of(algorithm))? })
}

fn sockets_of(algorithm: Algorithm) -> String {
    format!("{algorithm}_s_{BUILD}")
}

fn groups_of(algorithm: Algorithm) -> String {
    format!("{algorithm}_g_{BUILD}")
}

/// The maps that register an algorithm or did, oldest first; none without CAP_SYS_ADMIN.
fn registrations(algorithm: Algorithm) -> impl Iterator<Item = MapInfo> {
    maps(algorithm.kernel_name()).filter(|map| map.ty == MapType::StructOps)
}

/// All maps of a name, oldest first; none without CAP_SYS_ADMIN.
fn maps(name: &str) -> impl Iterator<Item = MapInfo> {
    MapInfoIter::default().filter(move |map| map.name.as_os_str() == name)
}

/// Unloads an algorithm. Connections that use it keep it to their end; new ones cannot choose it.
///
/// # Errors
/// [`CouplingError`]: it is not loaded, or a privilege is missing.
pub fn unload(algorithm: Algorithm) -> Result<(), CouplingError> {
    if !loaded().contains(&algorithm) {
        return Err(CouplingError::NotLoaded { algorithm });
    }
    let newest = registrations(algorithm).last().ok_or(CouplingError::Unreachable { algorithm })?;
    let failed = |error: libbpf_rs::Error| CouplingError::System {
        action: "unload",
        algorithm,
        source: system(&error),
    };
    let map = MapHandle::from_map_id(newest.id).map_err(failed)?;
    map.delete(&0_u32.to_ne_bytes()).map_err(failed)
}

fn system(error: &libbpf_rs::Error) -> io::Error {
    io::Error::other(format!("{error:#}"))
}

impl Coupler {
    /// The algorithm whose sockets it couples.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Puts a socket into a group, of whose number 60 bits count; 0 is no group. A socket that is in
    /// none looks again at each acknowledgement; one that is in a group stays there.
    ///
    /// # Errors
    /// What the system says: no socket, or no memory for its storage.
    pub fn join(&self, socket: BorrowedFd<'_>, group: u64) -> io::Result<()> {
        let (key, value) = (socket.as_raw_fd().to_ne_bytes(), (group & NUMBER).to_ne_bytes());
        self.sockets.update(&key, &value, MapFlags::ANY).map_err(|error| system(&error))
    }

    /// The groups that there are now.
    ///
    /// # Errors
    /// What the system says.
    pub fn groups(&self) -> io::Result<Vec<Group>> {
        let mut found = Vec::new();
        for key in self.groups.keys() {
            let value = self.groups.lookup(&key, MapFlags::ANY).map_err(|error| system(&error))?;
            // It may have ended meanwhile.
            let (Some(value), Ok(key)) = (value, <[u8; 8]>::try_from(key)) else { continue };
            let key = u64::from_ne_bytes(key);
            let paths = value.chunks_exact(PATH_BYTES);
            found.push(Group {
                number: key & NUMBER,
                by: if key >> 60 == BY_MPTCP { GroupedBy::Mptcp } else { GroupedBy::Process },
                subflows: paths.filter(|path| path[..8] != [0; 8]).count(),
            });
        }
        Ok(found)
    }
}
