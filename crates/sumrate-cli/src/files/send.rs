//! The sender: offers what it finds, and sends of each file what the other end lacks.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

use bytes::Bytes;

use super::link::{Link, TransferError};
use super::message::{CHUNK, ChunkHash, EntryKind, Message, Offer, WINDOW};
use super::tally::{Progress, Tally};
use super::walk::{Found, Source, Walk};

/// Chunks of one file that the other end may say it has: 1 TiB of them.
pub(super) const HAVE_MAX: usize = 1 << 20;

/// An entry that was offered.
struct Offered {
    found: Found,
    have: Vec<ChunkHash>,
    /// Whether it was asked for: that may be said once, also while it moves.
    wanted: bool,
}

/// What the other end said since, of files other than the one that moves.
struct Sender<'a> {
    link: &'a mut Link,
    progress: &'a Progress,
    tally: Tally,
    offered: BTreeMap<u32, Offered>,
    /// Files that are wanted, in the order in which they were asked for.
    wanted: std::collections::VecDeque<u32>,
    /// Files of which all was sent, and what of it now.
    sent: BTreeMap<u32, u64>,
}

/// Sends everything and waits until the other end has it.
pub(super) fn send(
    link: &mut Link,
    sources: &[Source],
    progress: &Progress,
) -> Result<Tally, TransferError> {
    let (mut files, mut bytes) = (0, 0);
    for found in Walk::new(sources).flatten().filter(|found| found.kind == EntryKind::File) {
        link.check()?;
        files += 1;
        bytes += found.size;
    }
    progress.set_total(files, bytes);
    link.say(Message::Total { files, bytes })?;
    let sender = Sender {
        link,
        progress,
        tally: Tally::default(),
        offered: BTreeMap::new(),
        wanted: std::collections::VecDeque::new(),
        sent: BTreeMap::new(),
    };
    sender.run(Walk::new(sources))
}

impl Sender<'_> {
    fn run(mut self, mut walk: Walk) -> Result<Tally, TransferError> {
        let mut next_id = 0_u32;
        loop {
            while self.offered.len() < WINDOW {
                let Some(entry) = walk.next() else { break };
                match entry {
                    Ok(found) => self.offer(&mut next_id, found)?,
                    Err((path, reason)) => {
                        self.tally.fail(&path, reason.as_str());
                        self.link.say(Message::Skipped { path, reason })?;
                    }
                }
            }
            while let Some(message) = self.link.hear_now()? {
                self.take(message)?;
            }
            if let Some(id) = self.wanted.pop_front() {
                self.file(id)?;
            } else if self.offered.is_empty() {
                break;
            } else {
                let message = self.link.hear()?;
                self.take(message)?;
            }
        }
        self.link.say(Message::End)?;
        match self.link.hear()? {
            Message::Done => Ok(self.tally),
            _ => Err(TransferError::Protocol("an answer after the end")),
        }
    }

    fn offer(&mut self, next_id: &mut u32, found: Found) -> Result<(), TransferError> {
        let id = *next_id;
        *next_id = id.checked_add(1).ok_or(TransferError::Protocol("more than 2^32 entries"))?;
        self.link.say(Message::Offer(Offer {
            id,
            kind: found.kind,
            mode: found.mode,
            size: found.size,
            modified: found.modified,
            path: found.path.clone(),
        }))?;
        self.offered.insert(id, Offered { found, have: Vec::new(), wanted: false });
        Ok(())
    }

    /// Notes an answer.
    fn take(&mut self, message: Message) -> Result<(), TransferError> {
        match message {
            Message::Have { id, first, hashes } => self.have(id, first, &hashes),
            Message::Want { id } => match self.offered.get_mut(&id) {
                Some(entry) if entry.found.kind == EntryKind::File && !entry.wanted => {
                    entry.wanted = true;
                    self.wanted.push_back(id);
                    Ok(())
                }
                _ => Err(TransferError::Protocol("it wants what was not offered, or twice")),
            },
            Message::Same { id } | Message::Stored { id } => {
                let entry = self.settle(id)?;
                let sent = self.sent.remove(&id);
                self.store(&entry.found, sent);
                Ok(())
            }
            Message::Failed { id, reason } => {
                let entry = self.settle(id)?;
                if self.sent.remove(&id).is_none() {
                    self.progress.add_bytes(entry.found.size);
                }
                self.progress.add_file();
                self.tally.fail(&entry.found.path, reason);
                Ok(())
            }
            _ => Err(TransferError::Protocol("an answer to nothing")),
        }
    }

    fn have(&mut self, id: u32, first: u64, hashes: &[ChunkHash]) -> Result<(), TransferError> {
        let entry = self.offered.get_mut(&id);
        let entry = entry.ok_or(TransferError::Protocol("it has what was not offered"))?;
        let total = entry.have.len() + hashes.len();
        if first != entry.have.len() as u64
            || total > HAVE_MAX
            || total as u64 > entry.found.size.div_ceil(CHUNK)
        {
            return Err(TransferError::Protocol("it has more of a file than there is"));
        }
        entry.have.extend_from_slice(hashes);
        Ok(())
    }

    fn settle(&mut self, id: u32) -> Result<Offered, TransferError> {
        self.wanted.retain(|wanted| *wanted != id);
        self.offered.remove(&id).ok_or(TransferError::Protocol("it has what was not offered"))
    }

    /// An entry is in its place; `sent` are the bytes that were sent for it.
    fn store(&mut self, found: &Found, sent: Option<u64>) {
        if found.kind == EntryKind::Directory {
            self.tally.directories += 1;
            return;
        }
        self.tally.files += 1;
        self.tally.bytes += found.size;
        self.tally.sent_bytes += sent.unwrap_or(0);
        if sent.is_none() {
            self.tally.unchanged_files += 1;
            self.progress.add_bytes(found.size);
        }
        self.progress.add_file();
    }

    /// Sends what the other end lacks of a file.
    fn file(&mut self, id: u32) -> Result<(), TransferError> {
        let Some(entry) = self.offered.get_mut(&id) else { return Ok(()) };
        self.progress.set_current(&entry.found.path);
        let (size, modified) = (entry.found.size, entry.found.modified);
        let have = std::mem::take(&mut entry.have);
        let opened = entry.found.open();
        let sent = match opened {
            Ok(file) => self.chunks(id, &file, (size, modified), &have)?,
            Err(error) => Err(error.to_string()),
        };
        match sent {
            // The other end has given it up already; it learns that nothing more comes of it.
            Ok(None) => self.link.say(Message::GaveUp { id, reason: String::new() })?,
            Ok(Some((root, bytes))) => {
                self.sent.insert(id, bytes);
                self.link.say(Message::Finish { id, root })?;
            }
            Err(reason) => {
                self.sent.insert(id, 0);
                self.link.say(Message::GaveUp { id, reason })?;
            }
        }
        Ok(())
    }

    /// The hash over all chunks and the bytes that were sent; `None` when the other end gave up; or
    /// why this end did.
    #[allow(clippy::type_complexity)]
    fn chunks(
        &mut self,
        id: u32,
        file: &File,
        (size, modified): (u64, (i64, u32)),
        have: &[ChunkHash],
    ) -> Result<Result<Option<(ChunkHash, u64)>, String>, TransferError> {
        let mut root = blake3::Hasher::new();
        let mut sent = 0;
        for index in 0..size.div_ceil(CHUNK) {
            while let Some(message) = self.link.hear_now()? {
                self.take(message)?;
            }
            if !self.offered.contains_key(&id) {
                return Ok(Ok(None));
            }
            let length = CHUNK.min(size - index * CHUNK);
            let mut chunk = vec![0; usize::try_from(length).unwrap_or(0)];
            if let Err(error) = file.read_exact_at(&mut chunk, index * CHUNK) {
                return Ok(Err(format!("it cannot be read: {error}")));
            }
            let hash: ChunkHash = blake3::hash(&chunk).into();
            root.update(&hash);
            let known = usize::try_from(index).ok().and_then(|index| have.get(index));
            if known == Some(&hash) {
                self.link.check()?;
            } else {
                sent += length;
                self.progress.add_moved(length);
                self.link.say(Message::Data { id, index, hash, bytes: Bytes::from(chunk) })?;
            }
            self.progress.add_bytes(length);
        }
        match file.metadata() {
            Ok(now) if now.size() == size && time_of(&now) == modified => {
                Ok(Ok(Some((root.finalize().into(), sent))))
            }
            Ok(_) => Ok(Err("it was changed while it was copied".to_owned())),
            Err(error) => Ok(Err(error.to_string())),
        }
    }
}

fn time_of(found: &std::fs::Metadata) -> (i64, u32) {
    (found.mtime(), u32::try_from(found.mtime_nsec()).unwrap_or(0))
}
