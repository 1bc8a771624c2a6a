//! Names that the far end resolves. A program gets a number in their place, an address that no host
//! has, and gives it back when it connects.
//!
//! The numbers lie in 198.18.0.0/15 and 2001:2::/48, which are kept free for benchmarks (RFC 2544,
//! RFC 5180). All processes of one `sumrate run` have them in common, by a file that each maps: a browser
//! resolves in one process and connects in another. Without the file they are a process's own.

use std::cell::UnsafeCell;
use std::ffi::CString;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::preface::NAME_MAX;

/// Names that a process can have numbers for.
const CAPACITY: usize = 4096;
const FIRST_V4: u32 = 0xc612_0001;
const PREFIX_V6: u128 = 0x2001_0002_0000_0000_0000_0000_0000_0001;

const FREE: u32 = 0;
const WRITING: u32 = 1;
/// The states from here on are lengths of names.
const WRITTEN: u32 = 2;

/// Length of the file, in bytes.
pub const FILE_LENGTH: usize = size_of::<Names>();

static OWN: Names = Names::new();
static SHARED: AtomicPtr<Names> = AtomicPtr::new(std::ptr::null_mut());

/// The table of this process: the common one if there is one.
pub(crate) fn names() -> &'static Names {
    let shared = SHARED.load(Ordering::Acquire);
    // SAFETY: null, or a mapping that is never undone, as long as a table, whose atomics and bytes may
    // have any value.
    #[allow(unsafe_code)]
    unsafe {
        shared.as_ref().unwrap_or(&OWN)
    }
}

/// Has this process use the common table in a file of [`FILE_LENGTH`] bytes, all zero at first, that
/// belongs to its user alone. Where that cannot be, it keeps its own.
pub(crate) fn share(path: &str) {
    let Ok(path) = CString::new(path) else { return };
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: system calls on a descriptor of our own. A file of this length is mapped whole, and its
    // owner alone could make it shorter.
    #[allow(unsafe_code)]
    unsafe {
        let file = libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW);
        if file < 0 {
            return;
        }
        let mut found: libc::stat = std::mem::zeroed();
        let right = libc::fstat(file, &raw mut found) == 0
            && found.st_uid == libc::geteuid()
            && found.st_mode & 0o077 == 0
            && usize::try_from(found.st_size) == Ok(FILE_LENGTH);
        if right {
            let length = FILE_LENGTH;
            let place = libc::mmap(std::ptr::null_mut(), length, access, libc::MAP_SHARED, file, 0);
            if place != libc::MAP_FAILED {
                SHARED.store(place.cast(), Ordering::Release);
            }
        }
        libc::close(file);
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

    /// The number of a name; `None` if it is too long or the table is full.
    pub(crate) fn number(&self, name: &[u8]) -> Option<u32> {
        let written =
            WRITTEN + u32::try_from(name.len()).ok().filter(|_| name.len() <= NAME_MAX)?;
        for (index, slot) in (0_u32..).zip(&self.slots) {
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
        assert_eq!(NAMES.get(2), None);
        assert_eq!(NAMES.number(&[b'x'; 256]), None);
        for number in [first, second, 4095] {
            assert_eq!(number_of(stand_in_v4(number).into()), Some(number));
            assert_eq!(number_of(stand_in_v6(number).into()), Some(number));
            assert_eq!(number_of(stand_in_v4(number).to_ipv6_mapped().into()), Some(number));
        }
        for stranger in ["198.18.0.0", "198.18.16.1", "192.0.2.1", "2001:2::", "::1"] {
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
            share(text);
            assert!(SHARED.load(Ordering::Acquire).is_null(), "{length} {mode:o}");
        }
        make(FILE_LENGTH as u64, 0o600);
        share(text);
        let (first, number) = (names(), names().number(b"common.example").unwrap());
        share(text);
        assert!(!std::ptr::eq(first, names()), "it is mapped twice");
        assert_eq!(names().get(number), Some(b"common.example".as_slice()));
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
        for index in 0..CAPACITY {
            assert!(NAMES.number(index.to_string().as_bytes()).is_some());
        }
        assert_eq!(NAMES.number(b"one more"), None);
        assert_eq!(NAMES.number(b"7"), Some(7));
    }
}
