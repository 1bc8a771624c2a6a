//! The proxies' password, and a limit of wrong attempts for each source.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use fbdt::source_of;
use tokio::time::Instant;

use crate::args::ProxyAuth;

/// Wrong passwords that one source may send at once: a program that opens many connections with an
/// old password must not lock itself out before its user has seen the refusal.
const AT_ONCE: u32 = 64;
/// Time until one more wrong password is checked: 43,200 guesses a day.
const PAUSE: Duration = Duration::from_secs(2);
/// Sources that are remembered at a time.
const SOURCES: usize = 4096;

/// Checks user name and password.
pub(crate) trait PasswordCheck: Sync {
    /// The verdict on them.
    fn check(&self, user: &[u8], password: &[u8]) -> Verdict;
}

/// What became of a user name and password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// They are those of the proxy.
    Right,
    /// They are not.
    Wrong,
    /// Their source has sent too many wrong ones.
    Unchecked,
}

/// Until when the wrong passwords of each source are paid for; an IPv6 source is a /64.
#[derive(Default)]
pub(super) struct WrongPasswords(Mutex<HashMap<IpAddr, Instant>>);

/// The password of a proxy for the clients of one source.
pub(super) struct Guarded<'a> {
    auth: &'a ProxyAuth,
    wrong: &'a WrongPasswords,
    source: IpAddr,
}

impl<'a> Guarded<'a> {
    pub(super) fn new(auth: &'a ProxyAuth, wrong: &'a WrongPasswords, source: IpAddr) -> Self {
        Self { auth, wrong, source: source_of(source) }
    }
}

impl PasswordCheck for ProxyAuth {
    fn check(&self, user: &[u8], password: &[u8]) -> Verdict {
        if self.matches(user, password) { Verdict::Right } else { Verdict::Wrong }
    }
}

impl PasswordCheck for Guarded<'_> {
    fn check(&self, user: &[u8], password: &[u8]) -> Verdict {
        self.wrong.judge(self.source, || self.auth.check(user, password))
    }
}

impl WrongPasswords {
    /// Checks and counts in one step, so that attempts at the same time are as many as one by one.
    fn judge(&self, source: IpAddr, check: impl FnOnce() -> Verdict) -> Verdict {
        let now = Instant::now();
        let mut paid = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let owed = paid.get(&source).map_or(Duration::ZERO, |until| until.duration_since(now));
        if owed + PAUSE > PAUSE * AT_ONCE {
            return Verdict::Unchecked;
        }
        if check() == Verdict::Right {
            return Verdict::Right;
        }
        if paid.len() >= SOURCES && !paid.contains_key(&source) {
            forget_one(&mut paid, now);
        }
        paid.insert(source, now + owed + PAUSE);
        if owed + PAUSE * 2 > PAUSE * AT_ONCE {
            tracing::warn!(%source, "too many wrong proxy passwords: this source is blocked for some minutes");
        }
        Verdict::Wrong
    }
}

/// Forgets all sources that owe nothing or, if there is none, the one that owes least: a flood of
/// sources frees no guesser.
fn forget_one(paid: &mut HashMap<IpAddr, Instant>, now: Instant) {
    let most = paid.len();
    paid.retain(|_, until| *until > now);
    if paid.len() == most {
        let least = paid.iter().min_by_key(|(_, until)| **until).map(|(source, _)| *source);
        least.and_then(|source| paid.remove(&source));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guess(wrong: &WrongPasswords, source: &str) -> Verdict {
        wrong.judge(source_of(source.parse().unwrap()), || Verdict::Wrong)
    }

    #[tokio::test(start_paused = true)]
    async fn a_guesser_is_slowed_down_and_others_are_not() {
        let wrong = WrongPasswords::default();
        for _ in 0..AT_ONCE {
            assert_eq!(guess(&wrong, "192.0.2.1"), Verdict::Wrong);
        }
        for _ in 0..1000 {
            assert_eq!(guess(&wrong, "::ffff:192.0.2.1"), Verdict::Unchecked);
        }
        assert_eq!(guess(&wrong, "192.0.2.2"), Verdict::Wrong);
        tokio::time::advance(PAUSE).await;
        assert_eq!(guess(&wrong, "192.0.2.1"), Verdict::Wrong, "unchecked ones cost no time");
        assert_eq!(guess(&wrong, "192.0.2.1"), Verdict::Unchecked);
        tokio::time::advance(PAUSE).await;
        assert_eq!(wrong.judge("192.0.2.1".parse().unwrap(), || Verdict::Right), Verdict::Right);
    }

    #[tokio::test(start_paused = true)]
    async fn an_ipv6_network_is_one_source_and_memory_is_bounded() {
        let wrong = WrongPasswords::default();
        for host in 0..AT_ONCE {
            assert_eq!(guess(&wrong, &format!("2001:db8::{host:x}")), Verdict::Wrong);
        }
        assert_eq!(guess(&wrong, "2001:db8::ffff"), Verdict::Unchecked);
        for source in 0..2 * SOURCES as u32 {
            wrong.judge(std::net::Ipv4Addr::from_bits(0x0a00_0000 + source).into(), || {
                Verdict::Wrong
            });
        }
        assert!(wrong.0.lock().unwrap().len() <= SOURCES);
        let verdict = guess(&wrong, "2001:db8::ffff");
        assert_eq!(verdict, Verdict::Unchecked, "a flood of sources frees no guesser");
    }
}
