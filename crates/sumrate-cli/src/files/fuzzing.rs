//! A hostile server against the receiver of a copy, as a fuzz target.
#![allow(clippy::panic, clippy::unwrap_used)] // this is what finds

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::asked::Asked;
use super::destination::{Destination, Naming};
use super::link::Link;
use super::message::{Message, read_message};
use super::path::EntryPath;
use super::receive::receive;
use super::root::Root;
use super::tally::Progress;
use crate::fuzzing::now;

/// A request: its paths, the new name of the copy if it gets one, and the names that may exist afterwards
/// (none where the server chooses them).
type Case = (&'static [&'static str], Option<&'static str>, &'static [&'static str]);
const CASES: [Case; 4] = [
    (&["dir/notes"], None, &["notes"]),
    (&["photos/", "notes"], None, &["notes", "photos"]),
    (&["photos"], Some("copy"), &["copy"]),
    (&[""], None, &[]),
];
/// A file that exists before, and that no request names.
const OWN: &str = ".bashrc";

/// Receives the messages of `data` into an empty `directory`. The first byte chooses the request; hashes
/// are corrected. Only the names of the request may be written.
pub fn copy_receiver(data: &[u8], directory: &Path) {
    let Some((&case, said)) = data.split_first() else { return };
    let (paths, name, may_be) = CASES[usize::from(case.wrapping_sub(b'0')) % CASES.len()];
    let (to, outside) = (directory.join("to"), directory.join("outside"));
    fs::create_dir(&to).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("victim"), "safe").unwrap();
    fs::write(to.join(OWN), "own").unwrap();
    symlink("../outside", to.join("link")).unwrap();
    let asked = Asked::of(&paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>());
    let name = name.map(|name| EntryPath::new(name.as_bytes()).unwrap());
    let naming = if name.is_some() { Naming::Either } else { Naming::Into };
    let destination = Destination::new(&Root::open(&to).unwrap(), name.as_ref(), naming).unwrap();
    let (mut link, _answers) = Link::of(messages(said));
    let _ = receive(&mut link, &destination, &asked.unwrap(), &Progress::default());
    assert_eq!(fs::read(outside.join("victim")).unwrap(), b"safe");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1, "beside the destination");
    if may_be.is_empty() {
        return;
    }
    assert_eq!(fs::read(to.join(OWN)).unwrap(), b"own");
    assert!(to.join("link").is_symlink());
    for entry in fs::read_dir(&to).unwrap() {
        let found = entry.unwrap().file_name().into_string().unwrap();
        let is_asked = |name: &&str| found == **name || found == format!(".{name}.sumrate-part");
        let is_known = found == OWN || found == "link" || may_be.iter().any(is_asked);
        assert!(is_known, "{found}");
    }
}

/// Decodes the messages of a sender and corrects their hashes.
fn messages(mut said: &[u8]) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut roots: BTreeMap<u32, blake3::Hasher> = BTreeMap::new();
    while let Ok(Some(mut message)) = now(read_message(&mut said)) {
        match &mut message {
            Message::Data { id, hash, bytes, .. } => {
                *hash = blake3::hash(bytes).into();
                roots.entry(*id).or_default().update(&*hash);
            }
            Message::Finish { id, root } => *root = roots.entry(*id).or_default().finalize().into(),
            _ => {}
        }
        messages.push(message);
    }
    messages
}
