//! In the place of `kernel` where the eBPF programs were not compiled: says so.

use std::convert::Infallible;
use std::io;
use std::os::fd::BorrowedFd;

use crate::{Algorithm, CouplingError, Group};

/// Says which sockets belong together; there is none in this build.
#[derive(Debug)]
pub struct Coupler(Infallible);

/// Says that it cannot.
///
/// # Errors
/// [`CouplingError::NotBuilt`], always.
pub fn load(algorithm: Algorithm) -> Result<Coupler, CouplingError> {
    Err(CouplingError::NotBuilt(algorithm))
}

/// Says that it cannot.
///
/// # Errors
/// [`CouplingError::NotBuilt`], always.
pub fn find(algorithm: Algorithm) -> Result<Coupler, CouplingError> {
    Err(CouplingError::NotBuilt(algorithm))
}

/// Says that it cannot.
///
/// # Errors
/// [`CouplingError::NotBuilt`], always.
pub fn unload(algorithm: Algorithm) -> Result<(), CouplingError> {
    Err(CouplingError::NotBuilt(algorithm))
}

impl Coupler {
    /// The algorithm whose sockets it couples.
    pub fn algorithm(&self) -> Algorithm {
        match self.0 {}
    }

    /// Puts a socket into a group.
    ///
    /// # Errors
    /// None: there is no such value.
    pub fn join(&self, _socket: BorrowedFd<'_>, _group: u64) -> io::Result<()> {
        match self.0 {}
    }

    /// The groups that there are now.
    ///
    /// # Errors
    /// None: there is no such value.
    pub fn groups(&self) -> io::Result<Vec<Group>> {
        match self.0 {}
    }
}
