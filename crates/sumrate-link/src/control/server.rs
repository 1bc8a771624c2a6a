//! The emulator's side: never blocks the run loop.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use nix::sys::stat::{Mode, umask};

use super::protocol::{Answer, MAX_LINE, Request};

const MAX_CLIENTS: usize = 16;

/// Why the control socket could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// Another emulator answers there.
    #[error("control socket {path} belongs to a running emulator; choose another path")]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// The kernel refused.
    #[error("cannot make the control socket {path}: {source}")]
    Bind {
        /// The socket.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    input: Vec<u8>,
}

/// The listening socket and its clients. The socket's file goes when this is dropped.
#[derive(Debug)]
pub struct Server {
    listener: UnixListener,
    path: PathBuf,
    clients: Vec<Client>,
}

impl Server {
    /// Listens at `path`; the socket of a dead emulator is replaced.
    pub fn bind(path: &Path) -> Result<Server, ControlError> {
        let path = path.to_owned();
        if UnixStream::connect(&path).is_ok() {
            return Err(ControlError::InUse { path });
        }
        let is_socket = std::fs::symlink_metadata(&path)
            .is_ok_and(|metadata| std::os::unix::fs::FileTypeExt::is_socket(&metadata.file_type()));
        let bind = || {
            if is_socket {
                std::fs::remove_file(&path)?;
            }
            // Bound under a mask, so that the socket is never open to others, not even briefly.
            let mask = umask(Mode::from_bits_truncate(0o177));
            let bound = UnixListener::bind(&path);
            umask(mask);
            let listener = bound?;
            listener.set_nonblocking(true)?;
            Ok(listener)
        };
        match bind() {
            Ok(listener) => Ok(Server { listener, path, clients: Vec::new() }),
            Err(source) => Err(ControlError::Bind { path, source }),
        }
    }

    /// What to wait for.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let clients = self.clients.iter().map(|client| client.stream.as_fd());
        std::iter::once(self.listener.as_fd()).chain(clients)
    }

    /// Takes in clients and answers their complete lines; clients that misbehave are dropped.
    pub fn serve(&mut self, answer: &mut dyn FnMut(Request) -> Answer) {
        while let Ok((stream, _)) = self.listener.accept() {
            if self.clients.len() < MAX_CLIENTS && stream.set_nonblocking(true).is_ok() {
                self.clients.push(Client { stream, input: Vec::new() });
            }
        }
        self.clients.retain_mut(|client| client.serve(answer).unwrap_or(false));
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It is ours; if somebody removed it already, all the better.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Client {
    /// Whether the client stays.
    fn serve(&mut self, answer: &mut dyn FnMut(Request) -> Answer) -> io::Result<bool> {
        let mut chunk = [0; 4096];
        let open = loop {
            match self.stream.read(&mut chunk) {
                Ok(0) => break false,
                Ok(length) => self.input.extend_from_slice(&chunk[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break true,
                Err(error) => return Err(error),
            }
            if self.input.len() > MAX_LINE {
                return Ok(false);
            }
        };
        while let Some(end) = self.input.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.input.drain(..=end).collect();
            let reply = match serde_json::from_slice(&line) {
                Ok(request) => answer(request),
                Err(error) => Answer::Refused { error: format!("not a command: {error}") },
            };
            let mut text = serde_json::to_vec(&reply)?;
            text.push(b'\n');
            // Answers fit the socket's buffer; a client that does not read them is dropped.
            self.stream.write_all(&text)?;
        }
        Ok(open)
    }
}
