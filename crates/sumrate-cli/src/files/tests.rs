//! Both ends of a copy over a pipe.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::message::CHUNK;
use super::{
    Asked, Destination, EntryKind, EntryPath, Limits, Message, Naming, Offer, Progress, Root,
    Source, Tally, TransferError, read_message, receive_over, send_over,
};

/// A directory to copy from and one to copy to.
struct Place {
    directory: TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["from", "to"] {
            fs::create_dir(directory.path().join(name)).unwrap();
        }
        Self { directory }
    }

    fn from(&self) -> std::path::PathBuf {
        self.directory.path().join("from")
    }

    fn to(&self) -> std::path::PathBuf {
        self.directory.path().join("to")
    }

    fn write(&self, path: &str, content: &[u8]) {
        let path = self.from().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
    }

    fn source(&self, name: &str) -> Source {
        let root = Arc::new(Root::open(&self.from()).unwrap());
        Source { root, path: Some(path(name)), name: None }
    }

    fn destination(&self) -> Destination {
        Destination::new(&Root::open(&self.to()).unwrap(), None, Naming::Into).unwrap()
    }

    /// Copies one thing to a name below `to`.
    async fn copy_to(&self, name: &str, to: &str, naming: Naming) -> (Tally, Tally) {
        let root = Root::open(&self.to()).unwrap();
        let destination = Destination::new(&root, Some(&path(to)), naming).unwrap();
        let (sent, received) = both(vec![self.source(name)], destination, asked(&[name])).await;
        (sent.unwrap(), received.unwrap())
    }

    async fn copy(&self, names: &[&str]) -> (Tally, Tally) {
        let sources = names.iter().map(|name| self.source(name)).collect();
        let (sent, received) = both(sources, self.destination(), asked(names)).await;
        (sent.unwrap(), received.unwrap())
    }
}

fn path(text: &str) -> EntryPath {
    EntryPath::new(text.as_bytes()).unwrap()
}

type Outcome = Result<Tally, TransferError>;

fn asked(names: &[&str]) -> Asked {
    Asked::of(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap()
}

async fn both(sources: Vec<Source>, destination: Destination, asked: Asked) -> (Outcome, Outcome) {
    let (here, there) = tokio::io::duplex(64 << 10);
    let limits = Limits::default();
    tokio::join!(
        send_over(here, sources, &limits, Arc::default()),
        receive_over(there, destination, asked, &limits, Arc::default()),
    )
}

fn pattern(length: u64) -> Vec<u8> {
    (0..length).map(|index| (index % 251) as u8 ^ (index / 65_521) as u8).collect()
}

#[tokio::test]
async fn files_and_directories_with_their_attributes() {
    let place = Place::new();
    place.write("tree/a/large", &pattern(3 * CHUNK + 5));
    place.write("tree/a/exact", &pattern(CHUNK));
    place.write("tree/empty", b"");
    place.write("tree/b/c/small", b"x");
    fs::create_dir(place.from().join("tree/nothing")).unwrap();
    let old = SystemTime::UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    fs::File::open(place.from().join("tree/a/large")).unwrap().set_modified(old).unwrap();
    fs::set_permissions(place.from().join("tree/b/c/small"), PermissionsExt::from_mode(0o4751))
        .unwrap();
    fs::File::open(place.from().join("tree/b")).unwrap().set_modified(old).unwrap();
    fs::set_permissions(place.from().join("tree/b/c"), PermissionsExt::from_mode(0o555)).unwrap();
    let (sent, received) = place.copy(&["tree"]).await;
    assert_eq!((sent.files, sent.directories, sent.failed), (4, 5, 0), "{sent:?}");
    assert_eq!(sent.bytes, 4 * CHUNK + 6);
    assert_eq!((received.files, received.bytes, received.sent_bytes), (4, sent.bytes, sent.bytes));
    let copied = |name: &str| place.to().join("tree").join(name);
    assert_eq!(fs::read(copied("a/large")).unwrap(), pattern(3 * CHUNK + 5));
    assert_eq!(fs::read(copied("empty")).unwrap(), b"");
    assert!(copied("nothing").is_dir());
    for name in ["a/large", "b"] {
        assert_eq!(fs::metadata(copied(name)).unwrap().modified().unwrap(), old, "{name}");
    }
    let mode = |name: &str| fs::metadata(copied(name)).unwrap().mode() & 0o7777;
    assert_eq!((mode("b/c/small"), mode("b/c")), (0o751, 0o555), "no set-user-id");
    // Nothing is sent again, and nothing is left lying about.
    let (sent, received) = place.copy(&["tree"]).await;
    assert_eq!((sent.unchanged_files, sent.sent_bytes), (4, 0));
    assert_eq!(received.unchanged_files, 4);
    assert_eq!(fs::read_dir(copied("a")).unwrap().count(), 2);
}

#[tokio::test]
async fn thousands_of_small_files() {
    let place = Place::new();
    for index in 0..2000 {
        place.write(&format!("many/{}/{index}", index % 7), format!("{index}").as_bytes());
    }
    let (sent, received) = place.copy(&["many"]).await;
    assert_eq!((sent.files, received.files, sent.directories), (2000, 2000, 8));
    assert_eq!(fs::read(place.to().join("many/3/1242")).unwrap(), b"1242");
}

#[tokio::test]
async fn an_interrupted_copy_goes_on_and_damage_is_sent_again() {
    let place = Place::new();
    let content = pattern(4 * CHUNK + 100);
    place.write("f", &content);
    // As after SIGKILL: two chunks and a half are there, of which the second is damaged.
    let mut there = content[..usize::try_from(CHUNK * 5 / 2).unwrap()].to_vec();
    there[usize::try_from(CHUNK).unwrap() + 7] ^= 1;
    fs::write(place.to().join(".f.sumrate-part"), &there).unwrap();
    let (sent, received) = place.copy(&["f"]).await;
    assert_eq!(fs::read(place.to().join("f")).unwrap(), content);
    assert_eq!(sent.sent_bytes, content.len() as u64 - CHUNK, "one chunk was good");
    assert_eq!(received.sent_bytes, sent.sent_bytes);
    assert!(!place.to().join(".f.sumrate-part").exists());
    // What is there is too long, too.
    place.write("g", b"short");
    fs::write(place.to().join(".g.sumrate-part"), pattern(2 * CHUNK)).unwrap();
    place.copy(&["g"]).await;
    assert_eq!(fs::read(place.to().join("g")).unwrap(), b"short");
}

#[tokio::test]
async fn what_is_no_file_is_not_copied_and_named() {
    let place = Place::new();
    place.write("tree/file", b"x");
    place.write("tree/.left.sumrate-part", b"half");
    symlink("/etc/passwd", place.from().join("tree/link")).unwrap();
    nix::unistd::mkfifo(&place.from().join("tree/pipe"), nix::sys::stat::Mode::S_IRUSR).unwrap();
    drop(std::os::unix::net::UnixListener::bind(place.from().join("tree/socket")).unwrap());
    let (sent, received) = place.copy(&["tree"]).await;
    assert_eq!((sent.files, sent.failed, received.failed), (1, 3, 3));
    let reasons = format!("{:?}", received.failures);
    for what in ["a symbolic link", "a pipe", "a socket"] {
        assert!(reasons.contains(what), "{reasons}");
    }
    assert_eq!(fs::read_dir(place.to().join("tree")).unwrap().count(), 1);
}

#[tokio::test]
async fn destinations_as_cp_has_them() {
    let place = Place::new();
    place.write("f", b"x");
    place.write("d/g", b"y");
    fs::create_dir(place.to().join("dir")).unwrap();
    let root = Root::open(&place.to()).unwrap();
    for (name, to, naming, expected) in [
        ("f", "new", Naming::Either, "new"),
        ("f", "dir", Naming::Either, "dir/f"),
        ("f", "made", Naming::Into, "made/f"),
        ("d", "copy", Naming::Either, "copy/g"),
        ("d", "copy", Naming::Either, "copy/d/g"),
        ("d", "dir", Naming::Either, "dir/d/g"),
        ("d", "exact", Naming::Exact, "exact/g"),
        ("d", "dir/d", Naming::Exact, "dir/d/g"),
    ] {
        let (sent, _) = place.copy_to(name, to, naming).await;
        assert_eq!(sent.failed, 0);
        assert!(place.to().join(expected).is_file(), "{expected}");
    }
    assert_eq!(names(&place.to().join("dir/d")), ["g"]);
    let refused = |to: &str, naming| Destination::new(&root, Some(&path(to)), naming).is_err();
    assert!(refused("no/such", Naming::Either));
    assert!(refused("new", Naming::Into), "a file is no directory");
}

/// What is in a directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn an_unfinished_tree_is_gone_on_with_by_the_same_copy_alone() {
    let place = Place::new();
    place.write("d/g", b"y");
    place.write("e/h", b"z");
    symlink("g", place.from().join("d/link")).unwrap();
    let copy = place.to().join("copy");
    for mark in ["d", ""] {
        // As after SIGKILL.
        fs::create_dir(&copy).unwrap();
        fs::write(copy.join(".sumrate-part"), mark).unwrap();
        if !mark.is_empty() {
            let (sent, received) = place.copy_to("e", "copy", Naming::Either).await;
            assert_eq!((sent.failed, received.failed), (2, 2), "{sent:?}");
            let reason = &received.failures[0].reason;
            assert!(reason.contains("an unfinished copy of d"), "{reason}");
            assert_eq!(names(&copy), [".sumrate-part"]);
        }
        let (sent, _) = place.copy_to("d", "copy", Naming::Either).await;
        assert_eq!((sent.files, sent.failed), (1, 1), "links are left out: {sent:?}");
        assert_eq!(names(&copy), ["g"], "it is whole, as far as it can be");
        fs::remove_dir_all(&copy).unwrap();
    }
    // What is to go into it goes into it.
    fs::create_dir(&copy).unwrap();
    fs::write(copy.join(".sumrate-part"), "d").unwrap();
    place.copy_to("e", "copy", Naming::Into).await;
    assert_eq!(names(&copy), [".sumrate-part", "e"]);
}

#[tokio::test]
async fn a_tree_is_unfinished_while_something_of_it_failed() {
    let place = Place::new();
    place.write("d/g", b"y");
    let copy = place.to().join("copy");
    fs::create_dir_all(copy.join("g")).unwrap();
    fs::write(copy.join(".sumrate-part"), "d").unwrap();
    let (sent, _) = place.copy_to("d", "copy", Naming::Either).await;
    assert_eq!(sent.failed, 1, "a directory is in the way of g: {sent:?}");
    assert_eq!(names(&copy), [".sumrate-part", "g"]);
    fs::remove_dir(copy.join("g")).unwrap();
    let (sent, _) = place.copy_to("d", "copy", Naming::Either).await;
    assert_eq!(sent.failed, 0, "{sent:?}");
    assert_eq!(names(&copy), ["g"]);
}

#[tokio::test]
async fn one_copy_at_a_time_writes_a_tree_of_a_new_name() {
    let place = Place::new();
    place.write("d/g", b"y");
    let root = Root::open(&place.to()).unwrap();
    let destination = Destination::new(&root, Some(&path("copy")), Naming::Either).unwrap();
    let _first = destination.make_directory(&path("d"), &path("copy")).unwrap().unwrap();
    let (sent, received) = place.copy_to("d", "copy", Naming::Either).await;
    assert_eq!((sent.failed, received.failed), (2, 2), "{sent:?}");
    assert!(received.failures[1].reason.contains("another copy"), "{received:?}");
    assert_eq!(names(&place.to().join("copy")), [".sumrate-part"]);
}

#[tokio::test]
async fn what_is_in_the_way_fails_alone() {
    let place = Place::new();
    place.write("tree/a", b"1");
    place.write("tree/b/c", b"2");
    place.write("tree/d", b"3");
    fs::create_dir_all(place.to().join("tree/a")).unwrap();
    fs::write(place.to().join("tree/b"), "a file").unwrap();
    let (sent, received) = place.copy(&["tree"]).await;
    assert_eq!((sent.files, sent.failed, received.failed), (1, 3, 3), "{sent:?}");
    assert_eq!(fs::read(place.to().join("tree/d")).unwrap(), b"3");
    assert_eq!(fs::read(place.to().join("tree/b")).unwrap(), b"a file");
}

#[tokio::test]
async fn links_planted_at_the_destination_lead_nowhere() {
    let place = Place::new();
    let outside = place.directory.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("victim"), "safe").unwrap();
    place.write("tree/sub/file", b"evil");
    place.write("tree/victim", b"evil");
    fs::create_dir(place.to().join("tree")).unwrap();
    symlink(&outside, place.to().join("tree/sub")).unwrap();
    symlink(outside.join("victim"), place.to().join("tree/victim")).unwrap();
    symlink(outside.join("victim"), place.to().join("tree/.victim.sumrate-part")).unwrap();
    let (sent, _) = place.copy(&["tree"]).await;
    assert_eq!((sent.files, sent.failed), (1, 2), "{sent:?}");
    assert_eq!(fs::read(outside.join("victim")).unwrap(), b"safe");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    // The link itself was replaced by the file.
    let there = place.to().join("tree/victim");
    assert!(fs::symlink_metadata(&there).unwrap().is_file());
    assert_eq!(fs::read(there).unwrap(), b"evil");
}

/// A receiver into `to`, and the pipe to it.
fn receiver(to: &Path, asked: Asked) -> (DuplexStream, tokio::task::JoinHandle<Outcome>) {
    let (here, there) = tokio::io::duplex(4 << 20);
    let destination = Destination::new(&Root::open(to).unwrap(), None, Naming::Into).unwrap();
    let task = tokio::spawn(async move {
        let progress = Arc::<Progress>::default();
        receive_over(there, destination, asked, &Limits::default(), progress).await
    });
    (here, task)
}

/// A sender of the file `f` that has offered it, and the pipe to it.
async fn sender(place: &Place) -> (DuplexStream, tokio::task::JoinHandle<Outcome>) {
    let (here, mut there) = tokio::io::duplex(64 << 10);
    let sources = vec![place.source("f")];
    let task = tokio::spawn(async move {
        send_over(here, sources, &Limits::default(), Arc::<Progress>::default()).await
    });
    // The offer comes second.
    for _ in 0..2 {
        read_message(&mut there).await.unwrap();
    }
    (there, task)
}

fn offer(id: u32, name: &str, size: u64) -> Message {
    let kind = EntryKind::File;
    Message::Offer(Offer { id, kind, mode: 0o600, size, modified: (1, 0), path: path(name) })
}

fn data(id: u32, index: u64, bytes: &[u8]) -> Message {
    let hash = blake3::hash(bytes).into();
    Message::Data { id, index, hash, bytes: Bytes::copy_from_slice(bytes) }
}

fn directory(id: u32, name: &str) -> Message {
    let (kind, size) = (EntryKind::Directory, 0);
    Message::Offer(Offer { id, kind, mode: 0o700, size, modified: (1, 0), path: path(name) })
}

/// A whole file of one byte.
fn whole(id: u32, name: &str) -> [Message; 3] {
    let hash: [u8; 32] = blake3::hash(b"x").into();
    let root = blake3::hash(&hash).into();
    [offer(id, name, 1), data(id, 0, b"x"), Message::Finish { id, root }]
}

/// A receiver that asked for `notes` and `photos`; what may be there when it has failed.
async fn names_that_nobody_asked_for_are_refused() {
    let done = |id, name| [&whole(id, name)[..], &[Message::End]].concat();
    let skipped = Message::Skipped { path: path("x"), reason: String::new() };
    for (said, there) in [
        (done(0, ".bashrc"), &[][..]),
        (done(0, "Notes"), &[]),
        (done(0, "notes.txt"), &[]),
        (done(0, "notes/x"), &[]),
        (done(0, "photos/x"), &[]),
        (done(0, ".notes.sumrate-part"), &[]),
        (vec![directory(0, ".ssh"), offer(1, ".ssh/authorized_keys", 1)], &[]),
        (vec![skipped, Message::End], &[]),
        (vec![Message::End], &[]),
        (done(0, "notes"), &["notes"]),
        ([&whole(0, "notes")[..], &done(1, ".bashrc")].concat(), &["notes"]),
        ([&whole(0, "notes")[..], &done(1, "notes/x")].concat(), &["notes"]),
        ([&whole(0, "notes")[..], &[directory(1, "notes")]].concat(), &["notes"]),
        ([&whole(0, "notes")[..], &[offer(1, "notes", 2)]].concat(), &["notes"]),
        (vec![offer(0, "notes", 2), offer(1, ".bashrc", 1)], &[]),
        (vec![offer(0, "notes", 1), data(0, 0, b"x"), Message::End], &[]),
        (vec![directory(0, "photos"), offer(1, "photos/a", 1), directory(2, "x")], &["photos"]),
        (
            vec![directory(0, "photos"), offer(1, "photos/b", 1), offer(2, "photos/a", 1)],
            &["photos"],
        ),
    ] {
        let place = Place::new();
        let (mut pipe, task) = receiver(&place.to(), asked(&["dir/notes", "photos"]));
        for message in &said {
            let _ = pipe.write_all(&message.encode()).await;
        }
        let error = task.await.unwrap().unwrap_err();
        assert!(error.is_violation(), "{said:?}: {error}");
        assert_eq!(names(&place.to()), there, "{said:?}");
        if place.to().join("photos").exists() {
            assert_eq!(names(&place.to().join("photos")), [""; 0], "{said:?}");
        }
    }
}

#[tokio::test]
async fn a_hostile_sender_is_refused_and_leaves_no_file() {
    let wrong_hash =
        Message::Data { id: 0, index: 0, hash: [0; 32], bytes: Bytes::from_static(b"x") };
    let root_of = |bytes: &[u8]| *blake3::hash(blake3::hash(bytes).as_bytes()).as_bytes();
    for said in [
        vec![offer(1, "f", 1)],
        vec![data(0, 0, b"x")],
        vec![offer(0, "f", 1), data(0, 1, b"x")],
        vec![offer(0, "f", 1), data(0, 0, b"xx")],
        vec![offer(0, "f", 1), wrong_hash],
        vec![offer(0, "f", CHUNK + 1), data(0, 1, b"x"), Message::End],
        vec![offer(0, "f", CHUNK + 1), Message::Finish { id: 0, root: [0; 32] }],
        vec![offer(0, "f", 1), data(0, 0, b"x"), data(0, 0, b"x")],
        vec![offer(0, "f", 1), Message::End],
        vec![Message::Finish { id: 7, root: [0; 32] }],
        vec![Message::Want { id: 0 }],
        (0..300).map(|id| offer(id, &format!("f{id}"), 1)).collect(),
    ] {
        let place = Place::new();
        let (mut pipe, task) = receiver(&place.to(), Asked::Nothing);
        for message in &said {
            let _ = pipe.write_all(&message.encode()).await;
        }
        let outcome = task.await.unwrap();
        assert!(outcome.is_err(), "{said:?}: {outcome:?}");
        assert_eq!(fs::read_dir(place.to()).unwrap().count(), 0, "{said:?}");
    }
    names_that_nobody_asked_for_are_refused().await;
    // A whole that is not what its hash says fails alone; the right one is taken.
    let place = Place::new();
    let (mut pipe, task) = receiver(&place.to(), Asked::Directory);
    for message in [
        offer(0, "bad", 1),
        data(0, 0, b"x"),
        Message::Finish { id: 0, root: [0; 32] },
        offer(1, "good", 1),
        data(1, 0, b"y"),
        Message::Finish { id: 1, root: root_of(b"y") },
        Message::End,
    ] {
        pipe.write_all(&message.encode()).await.unwrap();
    }
    pipe.shutdown().await.unwrap();
    let tally = task.await.unwrap().unwrap();
    assert_eq!((tally.files, tally.failed), (1, 1));
    let names: Vec<_> = fs::read_dir(place.to()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names, ["good"]);
}

#[tokio::test]
async fn a_receiver_that_says_what_nobody_asked_is_refused() {
    let place = Place::new();
    place.write("f", &pattern(CHUNK));
    for said in [
        vec![Message::Want { id: 5 }],
        vec![Message::Want { id: 0 }, Message::Want { id: 0 }],
        vec![Message::Have { id: 0, first: 1, hashes: vec![[0; 32]] }],
        vec![Message::Have { id: 0, first: 0, hashes: vec![[0; 32]; 2] }],
        vec![Message::Stored { id: 9 }],
        vec![Message::Done],
        vec![Message::Total { files: 0, bytes: 0 }],
    ] {
        let (mut there, task) = sender(&place).await;
        for message in &said {
            let _ = there.write_all(&message.encode()).await;
        }
        let mut rest = Vec::new();
        let _ = there.read_to_end(&mut rest).await;
        assert!(task.await.unwrap().is_err(), "{said:?}");
    }
}

#[tokio::test]
async fn a_file_that_moves_is_not_asked_for_again() {
    let place = Place::new();
    place.write("f", &pattern(40 * CHUNK));
    let (mut there, task) = sender(&place).await;
    there.write_all(&Message::Want { id: 0 }.encode()).await.unwrap();
    assert!(matches!(read_message(&mut there).await, Ok(Some(Message::Data { id: 0, .. }))));
    there.write_all(&Message::Want { id: 0 }.encode()).await.unwrap();
    // It stops before it has sent the file once.
    let mut pieces = 1;
    while let Ok(Some(message)) = read_message(&mut there).await {
        assert!(matches!(message, Message::Data { .. }), "{message:?}");
        pieces += 1;
    }
    assert!(pieces < 40, "{pieces}");
    assert!(task.await.unwrap().is_err());
}

#[tokio::test]
async fn a_file_that_changes_under_way_is_not_taken_for_whole() {
    let place = Place::new();
    place.write("f", &pattern(40 * CHUNK));
    let (here, there) = tokio::io::duplex(4 << 10);
    let sources = vec![place.source("f")];
    let file = place.from().join("f");
    let (limits, progress) = (Limits::default(), Arc::new(Progress::default()));
    let watched = Arc::clone(&progress);
    let change = async move {
        while watched.bytes().0 == 0 {
            tokio::task::yield_now().await;
        }
        fs::OpenOptions::new()
            .append(true)
            .open(file)
            .unwrap()
            .set_modified(SystemTime::UNIX_EPOCH)
            .unwrap();
    };
    let (sent, received, ()) = tokio::join!(
        send_over(here, sources, &limits, progress),
        receive_over(there, place.destination(), asked(&["f"]), &limits, Arc::default()),
        change,
    );
    let (sent, received) = (sent.unwrap(), received.unwrap());
    assert_eq!((sent.files, sent.failed, received.failed), (0, 1, 1), "{sent:?}");
    assert!(received.failures[0].reason.contains("changed"), "{received:?}");
    assert!(!place.to().join("f").exists());
}
