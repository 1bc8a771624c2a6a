//! Packet buffers that return to a pool when the last part of their packet has been sent.

use std::cell::RefCell;
use std::rc::Rc;

/// Largest packet: vnet header, link header and 64 KiB of IP.
pub const MAX_PACKET: usize = 65_536 + 64;
const SMALL: usize = 2_048;
const KEPT: usize = 4_096;

#[derive(Debug, Default)]
struct Free {
    small: Vec<Vec<u8>>,
    large: Vec<Vec<u8>>,
}

/// A pool of buffers of two sizes; cheap to clone, one thread only.
#[derive(Clone, Debug, Default)]
pub struct Pool {
    free: Rc<RefCell<Free>>,
}

impl Pool {
    /// An empty scratch buffer of `MAX_PACKET` bytes to receive into.
    pub fn scratch(&self) -> Vec<u8> {
        let recycled = self.free.borrow_mut().large.pop();
        let mut bytes = recycled.unwrap_or_default();
        bytes.resize(MAX_PACKET, 0);
        bytes
    }

    /// Keeps the first `length` bytes of `scratch`: small packets are copied, large ones take the scratch buffer over
    /// and leave a fresh one in its place.
    pub fn keep(&self, scratch: &mut Vec<u8>, length: usize) -> Rc<Buffer> {
        let length = length.min(scratch.len());
        let bytes = if length <= SMALL {
            let recycled = self.free.borrow_mut().small.pop();
            let mut small = recycled.unwrap_or_else(|| Vec::with_capacity(SMALL));
            small.clear();
            small.extend_from_slice(&scratch[..length]);
            small
        } else {
            std::mem::replace(scratch, self.scratch())
        };
        Rc::new(Buffer { bytes, length, pool: self.clone() })
    }

    fn take_back(&self, bytes: Vec<u8>) {
        let mut free = self.free.borrow_mut();
        let list = if bytes.capacity() < MAX_PACKET { &mut free.small } else { &mut free.large };
        if list.len() < KEPT {
            list.push(bytes);
        }
    }
}

/// One received packet.
#[derive(Debug)]
pub struct Buffer {
    bytes: Vec<u8>,
    length: usize,
    pool: Pool,
}

impl Buffer {
    /// The packet, from its vnet header on.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.pool.take_back(std::mem::take(&mut self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_packets_leave_the_scratch_buffer() {
        let pool = Pool::default();
        let mut scratch = pool.scratch();
        scratch[0] = 7;
        let kept = pool.keep(&mut scratch, 60);
        assert_eq!(kept.as_slice().len(), 60);
        assert_eq!(scratch[0], 7);
    }

    #[test]
    fn buffers_come_back() {
        let pool = Pool::default();
        let mut scratch = pool.scratch();
        drop(pool.keep(&mut scratch, 60_000));
        assert_eq!(pool.free.borrow().large.len(), 1);
        let next = pool.keep(&mut scratch, 50_000);
        assert_eq!(pool.free.borrow().large.len(), 0);
        drop(next);
        assert_eq!(pool.free.borrow().large.len(), 1);
    }
}
