//! The receiver: says what it has, writes the rest beside its place, and renames what is right.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use rustix::fs::FileType;
use rustix::io::Errno;

use super::asked::{Asked, Offered};
use super::destination::{Destination, Mark, partial};
use super::link::{Link, TransferError};
use super::message::{CHUNK, ChunkHash, EntryKind, HASHES_MAX, Message, Offer, WINDOW};
use super::path::EntryPath;
use super::root::{Links, modified, set_attributes};
use super::send::HAVE_MAX;
use super::tally::{Progress, Tally};

/// Most directories whose attributes are set at the end.
const DIRECTORIES_MAX: usize = 1 << 20;

/// A file that is being received.
struct Incoming {
    offer: Offer,
    place: EntryPath,
    /// The partial file; `None` once it failed: what still comes of it is not wanted.
    file: Option<File>,
    have: Vec<ChunkHash>,
    /// Chunks that are known to be right, and the hash over their hashes.
    done: u64,
    root: blake3::Hasher,
    sent: u64,
}

impl Incoming {
    fn chunks(&self) -> u64 {
        self.offer.size.div_ceil(CHUNK)
    }

    /// Counts the chunks before `index` as right, which the sender left out because they are here.
    fn skip_to(&mut self, index: u64) -> Result<(), TransferError> {
        while self.done < index {
            let known = usize::try_from(self.done).ok().and_then(|done| self.have.get(done));
            let hash = known.ok_or(TransferError::Protocol("a chunk is missing"))?;
            self.root.update(hash);
            self.done += 1;
        }
        Ok(())
    }

    fn chunk(&mut self, index: u64, hash: &ChunkHash, bytes: &[u8]) -> Result<(), TransferError> {
        if index < self.done || index >= self.chunks() {
            return Err(TransferError::Protocol("a chunk that the file does not have, or twice"));
        }
        let length = CHUNK.min(self.offer.size - index * CHUNK);
        if bytes.len() as u64 != length || blake3::hash(bytes).as_bytes() != hash {
            return Err(TransferError::Protocol("a chunk is not what its length and hash say"));
        }
        self.skip_to(index)?;
        self.root.update(hash);
        self.done += 1;
        self.sent += length;
        Ok(())
    }
}

struct Receiver<'a> {
    link: &'a mut Link,
    destination: &'a Destination,
    progress: &'a Progress,
    tally: Tally,
    next_id: u32,
    incoming: BTreeMap<u32, Incoming>,
    /// Directories, whose attributes are set when nothing more is put into them.
    directories: Vec<Offer>,
    /// The mark of a tree that gets a name of its own.
    mark: Option<Mark>,
    /// Why nothing is taken any more.
    closed: Option<String>,
    /// Failures that another copy would not mend: entries that are never copied.
    left_out: u64,
    offered: Offered<'a>,
}

/// Receives until the sender has nothing more.
pub(super) fn receive(
    link: &mut Link,
    destination: &Destination,
    asked: &Asked,
    progress: &Progress,
) -> Result<Tally, TransferError> {
    let mut receiver = Receiver {
        link,
        destination,
        progress,
        tally: Tally::default(),
        next_id: 0,
        incoming: BTreeMap::new(),
        directories: Vec::new(),
        mark: None,
        closed: None,
        left_out: 0,
        offered: Offered::new(asked),
    };
    let outcome = receiver.run();
    if outcome.as_ref().is_err_and(TransferError::is_violation) {
        receiver.discard();
    }
    outcome
}

impl Receiver<'_> {
    fn run(&mut self) -> Result<Tally, TransferError> {
        loop {
            match self.link.hear()? {
                Message::Total { files, bytes } => self.progress.set_total(files, bytes),
                Message::Offer(offer) => self.offer(offer)?,
                Message::Data { id, index, hash, bytes } => self.data(id, index, &hash, &bytes)?,
                Message::Finish { id, root } => self.finish(id, &root)?,
                Message::GaveUp { id, reason } => {
                    let entry = self.known(id)?;
                    self.settle(entry, Err(reason))?;
                }
                Message::Skipped { path, reason } => {
                    self.offered.skip(&path)?;
                    self.left_out += 1;
                    self.tally.fail(&path, reason);
                }
                Message::End => return self.end(),
                _ => return Err(TransferError::Protocol("it is the other side's to say")),
            }
        }
    }

    /// Removes the partial files of a sender that broke the protocol.
    fn discard(&self) {
        for entry in self.incoming.values().filter(|entry| entry.file.is_some()) {
            let _ = self.destination.root.remove(&partial(&entry.place));
        }
    }

    fn known(&mut self, id: u32) -> Result<Incoming, TransferError> {
        self.incoming.remove(&id).ok_or(TransferError::Protocol("data of what was not offered"))
    }

    fn offer(&mut self, offer: Offer) -> Result<(), TransferError> {
        if offer.id != self.next_id || self.incoming.len() >= WINDOW {
            return Err(TransferError::Protocol("offers out of turn, or too many at a time"));
        }
        self.next_id += 1;
        let id = offer.id;
        let allowed = self.offered.check(&offer)?;
        let place = match self.closed.clone() {
            Some(reason) => Err(reason),
            None => allowed.and_then(|()| self.destination.place(&offer.path)),
        };
        let place = match place {
            Ok(place) => place,
            Err(reason) => return self.refuse(&offer, reason),
        };
        if offer.kind == EntryKind::Directory {
            return self.directory(offer, &place);
        }
        if self.is_there(&offer, &place) {
            self.stored(&offer, None);
            return self.link.say(Message::Same { id });
        }
        match self.begin(offer.clone(), place) {
            Ok(entry) => {
                self.say_have(&entry)?;
                self.incoming.insert(id, entry);
                self.link.say(Message::Want { id })
            }
            Err(error) => self.refuse(&offer, explain(&error)),
        }
    }

    fn refuse(&mut self, offer: &Offer, reason: String) -> Result<(), TransferError> {
        self.tally.fail(&offer.path, reason.as_str());
        if offer.kind == EntryKind::File {
            self.progress.add_bytes(offer.size);
            self.progress.add_file();
        }
        self.link.say(Message::Failed { id: offer.id, reason })
    }

    fn directory(&mut self, offer: Offer, place: &EntryPath) -> Result<(), TransferError> {
        if self.directories.len() >= DIRECTORIES_MAX {
            return self.refuse(&offer, "more than a million directories at once".to_owned());
        }
        match self.destination.make_directory(&offer.path, place) {
            Ok(mark) => {
                self.mark = mark.or(self.mark.take());
                self.tally.directories += 1;
                let id = offer.id;
                self.directories.push(Offer { path: place.clone(), ..offer });
                self.link.say(Message::Stored { id })
            }
            Err(error) => {
                let reason = explain(&error);
                if self.destination.is_tree(place) {
                    self.closed = Some(reason.clone());
                }
                self.refuse(&offer, reason)
            }
        }
    }

    /// Whether a file of this size and time of change is in the place.
    fn is_there(&self, offer: &Offer, place: &EntryPath) -> bool {
        self.destination.root.stat(place, Links::Refuse).is_ok_and(|found| {
            FileType::from_raw_mode(found.st_mode) == FileType::RegularFile
                && u64::try_from(found.st_size).is_ok_and(|size| size == offer.size)
                && modified(&found) == offer.modified
        })
    }

    /// Opens the partial file and hashes what an earlier attempt left in it.
    fn begin(&self, offer: Offer, place: EntryPath) -> io::Result<Incoming> {
        let root = &self.destination.root;
        if let Ok(found) = root.stat(&place, Links::Refuse)
            && FileType::from_raw_mode(found.st_mode) == FileType::Directory
        {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let file = root.open_partial(&partial(&place), &self.destination.writer)?;
        let there = file.metadata()?.len().min(offer.size);
        let mut have = Vec::new();
        let mut chunk = Vec::new();
        for index in 0..there.div_ceil(CHUNK).min(HAVE_MAX as u64) {
            let length = CHUNK.min(offer.size - index * CHUNK);
            if index * CHUNK + length > there || self.link.check().is_err() {
                break; // half a chunk is sent again
            }
            chunk.resize(usize::try_from(length).unwrap_or(0), 0);
            file.read_exact_at(&mut chunk, index * CHUNK)?;
            have.push(blake3::hash(&chunk).into());
        }
        let (file, root) = (Some(file), blake3::Hasher::new());
        Ok(Incoming { offer, place, file, have, done: 0, root, sent: 0 })
    }

    fn say_have(&self, entry: &Incoming) -> Result<(), TransferError> {
        let id = entry.offer.id;
        for (block, hashes) in entry.have.chunks(HASHES_MAX).enumerate() {
            let (first, hashes) = ((block * HASHES_MAX) as u64, hashes.to_vec());
            self.link.say(Message::Have { id, first, hashes })?;
        }
        Ok(())
    }

    fn data(
        &mut self,
        id: u32,
        index: u64,
        hash: &ChunkHash,
        bytes: &[u8],
    ) -> Result<(), TransferError> {
        let entry = self.incoming.get_mut(&id);
        let entry = entry.ok_or(TransferError::Protocol("data of what was not offered"))?;
        self.progress.set_current(&entry.offer.path);
        let before = entry.done;
        entry.chunk(index, hash, bytes)?;
        self.progress.add_moved(bytes.len() as u64);
        let left_out = (index - before) * CHUNK;
        self.progress.add_bytes(left_out + bytes.len() as u64);
        let Some(file) = &entry.file else { return Ok(()) };
        if let Err(error) = file.write_all_at(bytes, index * CHUNK) {
            // The sender learns it now and stops; what is under way is let pass.
            let reason = explain(&error);
            entry.file = None;
            self.tally.fail(&entry.offer.path, reason.as_str());
            self.link.say(Message::Failed { id, reason })?;
        }
        Ok(())
    }

    fn finish(&mut self, id: u32, root: &ChunkHash) -> Result<(), TransferError> {
        let mut entry = self.known(id)?;
        let before = entry.done;
        if let Err(error) = entry.skip_to(entry.chunks()) {
            self.incoming.insert(id, entry); // for `discard`
            return Err(error);
        }
        let all = entry.offer.size;
        self.progress.add_bytes(all.saturating_sub((before * CHUNK).min(all)));
        let is_right = entry.root.finalize() == *root;
        let placed = match (&entry.file, is_right) {
            (None, _) => return Ok(()),
            (Some(file), true) => self.place(&entry, file).map_err(|error| explain(&error)),
            (Some(_), false) => {
                let _ = self.destination.root.remove(&partial(&entry.place));
                Err("its hash does not match; it is removed".to_owned())
            }
        };
        self.settle(entry, placed)
    }

    fn place(&self, entry: &Incoming, file: &File) -> io::Result<()> {
        file.set_len(entry.offer.size)?;
        set_attributes(file.as_fd(), entry.offer.mode, entry.offer.modified)?;
        self.destination.root.rename(&partial(&entry.place), &entry.place)
    }

    fn settle(
        &mut self,
        entry: Incoming,
        outcome: Result<(), String>,
    ) -> Result<(), TransferError> {
        let id = entry.offer.id;
        if entry.file.is_none() {
            return Ok(()); // the sender knows
        }
        match outcome {
            Ok(()) => {
                self.stored(&entry.offer, Some(entry.sent));
                self.link.say(Message::Stored { id })
            }
            Err(reason) => {
                self.tally.fail(&entry.offer.path, reason.as_str());
                self.progress.add_file();
                self.link.say(Message::Failed { id, reason })
            }
        }
    }

    fn stored(&mut self, offer: &Offer, sent: Option<u64>) {
        self.tally.files += 1;
        self.tally.bytes += offer.size;
        self.tally.sent_bytes += sent.unwrap_or(0);
        if sent.is_none() {
            self.tally.unchanged_files += 1;
            self.progress.add_bytes(offer.size);
        }
        self.progress.add_file();
    }

    /// Sets the attributes of directories, the innermost first, and says that all is done.
    fn end(&mut self) -> Result<Tally, TransferError> {
        if !self.incoming.values().all(|entry| entry.file.is_none()) {
            return Err(TransferError::Protocol("it ended in the middle of a file"));
        }
        self.offered.end()?;
        for (index, offer) in std::mem::take(&mut self.directories).iter().enumerate().rev() {
            if index == 0 {
                self.unmark(); // before the time of the tree's own directory is set
            }
            let opened = self.destination.root.directory(Some(&offer.path), Links::Refuse);
            let set = opened.and_then(|made| made.set_attributes(offer.mode, offer.modified));
            if let Err(error) = set {
                self.tally.fail(&offer.path, explain(&error));
            }
        }
        self.link.say(Message::Done)?;
        Ok(std::mem::take(&mut self.tally))
    }

    /// The tree is whole, unless something is missing that could have been copied.
    fn unmark(&mut self) {
        let Some(mark) = self.mark.as_ref().filter(|_| self.tally.failed == self.left_out) else {
            return;
        };
        if let Err(error) = mark.remove(&self.destination.root) {
            self.tally.fail(&mark.tree(), explain(&error));
        }
    }
}

fn explain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ResourceBusy => "another copy is writing it".to_owned(),
        io::ErrorKind::IsADirectory => "a directory is in its place".to_owned(),
        io::ErrorKind::NotADirectory => "something else than a directory is in the way".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => {
            "the place is read-only for who writes it (a unit of systemd lists in ReadWritePaths= \
             what it may write)"
                .to_owned()
        }
        _ if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
            "a symbolic link is in the way".to_owned()
        }
        _ => error.to_string(),
    }
}
