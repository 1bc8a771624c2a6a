//! The memory allocator of the process, and when it gives memory back to the system.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Buffers of 64 KiB come and go by the thousand in a second; the system's allocator gives their
/// pages back each time and faults them in again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Between two times at which a thread gives memory back: rare enough to cost nothing while it
/// works (what is needed again is faulted in again), often enough for whoever looks afterwards.
const PERIOD: Duration = Duration::from_secs(10);

thread_local! {
    static GAVE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Gives the memory that nobody uses back to the system, at most once in a [`PERIOD`].
///
/// For a thread that is about to sleep. The allocator keeps what was freed, to have it at hand,
/// and gives it back later while it frees more, which a process without work does not do.
pub(crate) fn before_sleep() {
    let now = Instant::now();
    GAVE.with(|gave| match gave.get() {
        Some(before) if now.duration_since(before) < PERIOD => {}
        Some(_) => {
            gave.set(Some(now));
            give_back();
        }
        None => gave.set(Some(now)),
    });
}

#[allow(unsafe_code)] // the crate mimalloc has no safe form of mi_collect
fn give_back() {
    // SAFETY: mi_collect takes no pointer and may be called by any thread at any time.
    unsafe { libmimalloc_sys::mi_collect(true) }
}
