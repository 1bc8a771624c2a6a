//! Fair coupled control (F17): paths that share a bottleneck take no more of
//! it than one TCP would; paths that share none are left as they are.
//!
//! Sockets keep the kernel's congestion control; the lever is how many bytes
//! a path may hold (F7). Where two paths' queueing delays move together
//! (`series`), one of them is made to hold less for a while (`trial`): if
//! the other's queue shrinks too, they share it (`detector`). Paths that do
//! get one congestion window together (`window`), which grows as one TCP's
//! and is cut by each one's losses. A kernel window that is not filled does
//! not grow, and is cut by the same losses, so that it never falls below what
//! it is filled with.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod detector;
mod member;
mod series;
mod settings;
#[cfg(test)]
mod tests;
mod trial;
mod window;

use alloc::vec::Vec;

use fbdt_units::{Instant, PathId};

pub use member::Observation;
pub use settings::{CouplingMode, SharedBottleneck, WindowGrowth};

use self::detector::Detector;
use self::member::Member;
use self::window::{Group, Growth, SharedWindow, divide};

/// A window is in use if this share of it was in flight lately, but for half a
/// smallest frame of each path that did not fit in.
const USED: f64 = 0.9;
/// A path asks for twice what it had in flight lately and so many bytes more.
const DEMAND: u64 = 32 << 10;
/// No path is left less: a smallest frame fits in.
const LEAST: f64 = 4096.0;

/// The coupled control of one end of a session.
#[derive(Clone, Debug)]
pub struct Coupling {
    growth: Growth,
    members: Vec<Member>,
    detector: Detector,
    groups: Vec<Group>,
    allowances: Vec<(PathId, u64)>,
}

impl Coupling {
    /// Over subflows whose windows grow as `growth` says.
    #[must_use]
    pub fn new(growth: WindowGrowth) -> Self {
        let growth = if growth == WindowGrowth::Reno { Growth::Reno } else { Growth::Cubic };
        Self {
            growth,
            members: Vec::new(),
            detector: Detector::default(),
            groups: Vec::new(),
            allowances: Vec::new(),
        }
    }

    /// The path has a new TCP connection, to the same place as before.
    pub fn restart(&mut self, path: PathId) {
        if let Some(member) = self.members.iter_mut().find(|m| m.path == path) {
            member.restart();
        }
    }

    /// The path is gone; it may come back somewhere else.
    pub fn forget(&mut self, now: Instant, path: PathId) {
        self.members.retain(|m| m.path != path);
        self.detector.forget(path);
        self.regroup(now);
        self.allot(now);
    }

    /// Takes in a sample of a path.
    pub fn observe(&mut self, now: Instant, seen: &Observation) {
        let index = self.members.iter().position(|m| m.path == seen.path).unwrap_or_else(|| {
            self.members.push(Member::new(seen.path));
            self.members.len() - 1
        });
        let news = self.members[index].update(now, seen);
        if !seen.window_based && self.detector.knows(seen.path) {
            self.detector.forget(seen.path);
            self.regroup(now);
        }
        if self.detector.see(now, &self.members[index], &self.members) {
            self.regroup(now);
        }
        if let Some(group) = self.groups.iter_mut().find(|g| g.paths.contains(&seen.path)) {
            let members: Vec<&Member> =
                self.members.iter().filter(|m| group.paths.contains(&m.path)).collect();
            let used: f64 = members.iter().map(|m| m.peak(now) as f64).sum();
            let frames = LEAST / 2.0 * members.len() as f64;
            let longest = members.iter().map(|m| m.srtt()).max().unwrap_or_default();
            if news.lost {
                group.window.lose(now, used, longest);
            } else if news.acked > 0 && used + frames >= USED * group.window.bytes() {
                group.window.grow(now, news.acked, seen.sample.srtt);
            }
        }
        self.allot(now);
    }

    /// Most bytes that the path may hold because of others; `None` if it is
    /// free.
    #[must_use]
    pub fn allowance(&self, path: PathId) -> Option<u64> {
        self.allowances.iter().find(|(id, _)| *id == path).map(|(_, bytes)| *bytes)
    }

    /// The paths with which `path` is thought to share a bottleneck.
    pub fn sharers(&self, path: PathId) -> impl Iterator<Item = PathId> + '_ {
        let group = self.groups.iter().find(move |g| g.paths.contains(&path));
        group.into_iter().flat_map(|g| &g.paths).copied().filter(move |other| *other != path)
    }

    /// Whether a path is just being tried.
    #[cfg(test)]
    pub(crate) const fn is_trying(&self) -> bool {
        self.detector.is_trying()
    }

    /// Makes groups of what shares, directly or by way of others. A group
    /// keeps its window when a path comes or goes.
    fn regroup(&mut self, now: Instant) {
        let mut waiting: Vec<PathId> = self.members.iter().map(|m| m.path).collect();
        waiting.sort_unstable();
        let old = core::mem::take(&mut self.groups);
        while let Some(first) = waiting.pop() {
            let mut paths = alloc::vec![first];
            let mut next = 0;
            while next < paths.len() {
                let from = paths[next];
                let linked = |p: &PathId| self.detector.shares(from, *p);
                paths.extend(waiting.iter().copied().filter(linked));
                waiting.retain(|p| !paths.contains(p));
                next += 1;
            }
            if paths.len() > 1 {
                paths.sort_unstable();
                let known = old.iter().filter(|g| g.paths.iter().any(|p| paths.contains(p)));
                let largest = known.max_by(|a, b| a.window.bytes().total_cmp(&b.window.bytes()));
                let window = largest.map(|g| g.window.clone());
                let window = window.unwrap_or_else(|| self.first_window(now, &paths));
                self.groups.push(Group { paths, window });
            }
        }
    }

    /// The window of paths that were uncoupled until now: max(x) / sum(x) of
    /// what they have in flight, x = that / RTT, which is the thesis's factors alpha
    /// and beta where they make one TCP of two (section 4.2.3).
    fn first_window(&self, now: Instant, paths: &[PathId]) -> SharedWindow {
        let (mut in_flight, mut sum, mut most) = (0.0, 0.0, 0.0f64);
        let mut mss = 1448;
        for member in self.members.iter().filter(|m| paths.contains(&m.path)) {
            let rate = member.usual_flight() / member.srtt().as_secs_f64().max(1e-4);
            in_flight += member.usual_flight();
            sum += rate;
            most = most.max(rate);
            mss = member.mss();
        }
        let factor = if sum > 0.0 { most / sum } else { 1.0 };
        SharedWindow::new(now, self.growth, in_flight * factor, mss)
    }

    /// Divides each group's window among its paths.
    fn allot(&mut self, now: Instant) {
        self.allowances.clear();
        for group in &self.groups {
            let members = self.members.iter().filter(|m| group.paths.contains(&m.path));
            let (paths, demands): (Vec<PathId>, Vec<f64>) =
                members.map(|m| (m.path, m.limit().min(2 * m.peak(now) + DEMAND) as f64)).unzip();
            let parts = divide(group.window.bytes(), &demands);
            let full = demands.iter().sum::<f64>() >= group.window.bytes();
            for ((path, part), demand) in paths.iter().zip(parts).zip(demands) {
                // A path that gets all that it asks for is not held back.
                if full && part < demand {
                    self.allowances.push((*path, part.max(LEAST) as u64));
                }
            }
        }
        for member in &self.members {
            if let Some(cap) = self.detector.cap(now, member.path) {
                let cap = cap.max(LEAST as u64);
                match self.allowances.iter_mut().find(|(path, _)| *path == member.path) {
                    Some((_, bytes)) => *bytes = cap.min(*bytes),
                    None => self.allowances.push((member.path, cap)),
                }
            }
        }
    }
}

/// A number that looks random, always the same for the same `value`
/// (SplitMix64's output function).
const fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
