//! Names that the far end resolves. A program gets a number in their place, an address that no host
//! has, and gives it back when it connects.
//!
//! The numbers lie in 198.18.0.0/15 and 2001:2::/48, which are kept free for benchmarks (RFC 2544,
//! RFC 5180). All processes of one `sumrate run` have them in common, by a file that each maps: a browser
//! resolves in one process and connects in another. A number keeps its name for as long as the file is
//! there, so that no old connection ever goes to another host. Without the file, and when it is full,
//! names have no number: then they are resolved nowhere.

use std::cell::UnsafeCell;
use std::ffi::CString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::preface::NAME_MAX;

/// Names that the processes of a command can have numbers for.
pub const CAPACITY: usize = 1 << 16;
const FIRST_V4: u32 = 0xc612_0001;
const PREFIX_V6: u128 = 0x2001_0002_0000_0000_0000_0000_0000_0001;

const FREE: u32 = 0;
const WRITING: u32 = 1;
/// The states from here on are lengths of names.
const WRITTEN: u32 = 2;

/// Length of the file, in bytes.
pub const FILE_LENGTH: usize = size_of::<Names>();

static SHARED: AtomicPtr<Names> = AtomicPtr::new(std::ptr::null_mut());

/// The table of this process, if it has one.
pub(crate) fn names() -> Option<&'static Names> {
    let shared = SHARED.load(Ordering::Acquire);
    // SAFETY: null, or a mapping that is never undone, as long as a table, whose atomics and bytes may
    // have any value.
    #[allow(unsafe_code)]
    unsafe {
        shared.as_ref()
    }
}

/// Has this process use the table in a file of [`FILE_LENGTH`] bytes, all zero at first, that belongs
/// to its user alone. Where that cannot be, it has none.
pub(crate) fn share(path: &str) {
    if let Some(table) = map(path) {
        SHARED.store(table.as_ptr(), Ordering::Release);
    }
}

fn map(path: &str) -> Option<NonNull<Names>> {
    let path = CString::new(path).ok()?;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: system calls on a descriptor of our own. A file of this length is mapped whole, and its
    // owner alone could make it shorter.
    #[allow(unsafe_code)]
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW);
        if file < 0 {
            return None;
        }
        let mut found: libc::stat = std::mem::zeroed();
        let right = libc::fstat(file, &raw mut found) == 0
            && found.st_uid == libc::geteuid()
            && found.st_mode & libc::S_IFMT == libc::S_IFREG
            && found.st_mode & 0o077 == 0
            && usize::try_from(found.st_size) == Ok(FILE_LENGTH);
        let place = match right {
            true => {
                libc::mmap(std::ptr::null_mut(), FILE_LENGTH, access, libc::MAP_SHARED, file, 0)
            }
            false => libc::MAP_FAILED,
        };
        libc::close(file);
        if place == libc::MAP_FAILED { None } else { NonNull::new(place.cast()) }
    }
}

#[repr(C)]
struct Slot {
    state: AtomicU32,
    name: UnsafeCell<[u8; NAME_MAX]>,
}

/// A table that grows only, without locks: `fork` may come at any time.
#[repr(C)]
pub(crate) struct Names {
    slots: [Slot; CAPACITY],
}

// SAFETY: a name is written by the one thread that moved its slot from FREE to WRITING, and read only
// once the state says, with release and acquire, that it is written; then it never changes again.
#[allow(unsafe_code)]
unsafe impl Sync for Names {}

impl Names {
    pub(crate) const fn new() -> Self {
        Self {
            slots: [const { Slot { state: AtomicU32::new(FREE), name: UnsafeCell::new([0; NAME_MAX]) } };
                CAPACITY],
        }
    }

    /// The number of a name of at most [`NAME_MAX`] bytes; `None` if the table is full.
    pub(crate) fn number(&self, name: &[u8]) -> Option<u32> {
        let written =
            WRITTEN + u32::try_from(name.len()).ok().filter(|_| name.len() <= NAME_MAX)?;
        let count = CAPACITY as u32;
        let first = hash(name) % count;
        for index in (first..count).chain(0..first) {
            let slot = self.slots.get(index as usize)?;
            if self.get(index) == Some(name) {
                return Some(index);
            }
            let taken =
                slot.state.compare_exchange(FREE, WRITING, Ordering::AcqRel, Ordering::Relaxed);
            if taken.is_ok() {
                // SAFETY: this thread alone has the slot while it is WRITING.
                #[allow(unsafe_code)]
                let place = unsafe { &mut *slot.name.get() };
                for (to, from) in place.iter_mut().zip(name) {
                    *to = *from;
                }
                slot.state.store(written, Ordering::Release);
                return Some(index);
            }
        }
        None
    }

    /// The name with this number.
    pub(crate) fn get(&self, index: u32) -> Option<&[u8]> {
        let slot = self.slots.get(index as usize)?;
        let length = slot.state.load(Ordering::Acquire).checked_sub(WRITTEN)?;
        // SAFETY: written for good, as the state says.
        #[allow(unsafe_code)]
        let name = unsafe { &*slot.name.get() };
        name.get(..length as usize)
    }
}

/// FNV-1a: where the search for a name begins.
fn hash(name: &[u8]) -> u32 {
    name.iter().fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

/// Has the tests of this process use one table.
#[cfg(test)]
pub(crate) fn share_for_tests() -> &'static Names {
    static TABLE: Names = Names::new();
    SHARED.store((&raw const TABLE).cast_mut(), Ordering::Release);
    &TABLE
}

/// The address that stands for a number.
pub(crate) fn stand_in_v4(number: u32) -> Ipv4Addr {
    Ipv4Addr::from(FIRST_V4 + number)
}

/// The same for programs that want IPv6 only.
pub(crate) fn stand_in_v6(number: u32) -> Ipv6Addr {
    Ipv6Addr::from(PREFIX_V6 + u128::from(number))
}

/// The number that an address stands for.
pub(crate) fn number_of(address: IpAddr) -> Option<u32> {
    let number = match address.to_canonical() {
        IpAddr::V4(v4) => u32::from(v4).checked_sub(FIRST_V4)?,
        IpAddr::V6(v6) => u32::try_from(u128::from(v6).checked_sub(PREFIX_V6)?).ok()?,
    };
    ((number as usize) < CAPACITY).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_numbers() {
        static NAMES: Names = Names::new();
        let first = NAMES.number(b"a.example").unwrap();
        let second = NAMES.number(b"b.example").unwrap();
        assert_ne!(first, second);
        assert_eq!(NAMES.number(b"a.example"), Some(first));
        assert_eq!(NAMES.get(second), Some(b"b.example".as_slice()));
        let free = (0..).find(|number| ![first, second].contains(number)).unwrap();
        assert_eq!(NAMES.get(free), None);
        assert_eq!(NAMES.number(&[b'x'; 256]), None);
        for number in [first, second, 0, CAPACITY as u32 - 1] {
            assert_eq!(number_of(stand_in_v4(number).into()), Some(number));
            assert_eq!(number_of(stand_in_v6(number).into()), Some(number));
            assert_eq!(number_of(stand_in_v4(number).to_ipv6_mapped().into()), Some(number));
        }
        for stranger in ["198.18.0.0", "198.19.0.1", "192.0.2.1", "2001:2::", "::1"] {
            assert_eq!(number_of(stranger.parse().unwrap()), None, "{stranger}");
        }
    }

    #[test]
    fn a_table_in_a_file_is_the_same_for_all_who_map_it() {
        use std::os::unix::fs::OpenOptionsExt;
        let path = std::env::temp_dir().join(format!("sumrate-names-{}", std::process::id()));
        let text = path.to_str().unwrap();
        let make = |length: u64, mode: u32| {
            let _ = std::fs::remove_file(&path);
            let mut options = std::fs::OpenOptions::new();
            let file = options.write(true).create_new(true).mode(mode).open(&path).unwrap();
            file.set_len(length).unwrap();
        };
        for (length, mode) in [(10, 0o600), (FILE_LENGTH as u64, 0o644)] {
            make(length, mode);
            assert_eq!(map(text), None, "{length} {mode:o}");
        }
        make(FILE_LENGTH as u64, 0o600);
        let (one, other) = (map(text).unwrap(), map(text).unwrap());
        assert_ne!(one, other, "it is mapped twice");
        // SAFETY: both mappings stay.
        #[allow(unsafe_code)]
        let (one, other) = unsafe { (one.as_ref(), other.as_ref()) };
        let number = one.number(b"common.example").unwrap();
        assert_eq!(other.get(number), Some(b"common.example".as_slice()));
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn threads_agree_on_numbers() {
        static NAMES: Names = Names::new();
        let numbers = || (0..500).map(|i| NAMES.number(format!("{}.example", i % 100).as_bytes()));
        let threads: Vec<_> =
            (0..4).map(|_| std::thread::spawn(move || numbers().collect())).collect();
        for thread in threads {
            let found: Vec<Option<u32>> = thread.join().unwrap();
            for (index, number) in found.iter().enumerate() {
                let name = format!("{}.example", index % 100);
                assert_eq!(NAMES.get(number.unwrap()), Some(name.as_bytes()));
            }
        }
    }

    #[test]
    fn a_full_table_says_so() {
        static NAMES: Names = Names::new();
        let numbers: Vec<_> =
            (0..CAPACITY).map(|index| NAMES.number(index.to_string().as_bytes())).collect();
        assert_eq!(NAMES.number(b"one more"), None);
        for (index, number) in numbers.iter().enumerate().step_by(997) {
            let name = index.to_string();
            assert_eq!(NAMES.get(number.unwrap()), Some(name.as_bytes()));
            assert_eq!(NAMES.number(name.as_bytes()), *number, "no number is given anew");
        }
    }

    #[test]
    fn a_table_of_rubbish_has_no_names() {
        static NAMES: Names = Names::new();
        for (slot, state) in NAMES.slots.iter().zip([WRITING, 0x0101_0101, u32::MAX].iter().cycle())
        {
            slot.state.store(*state, Ordering::Relaxed);
        }
        assert_eq!(NAMES.number(b"a.example"), None);
        assert!((0..CAPACITY as u32 + 1).all(|number| NAMES.get(number).is_none()));
    }
}
