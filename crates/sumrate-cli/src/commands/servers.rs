//! The servers of a client, the preferred one first: which of them is in use, and what became of others.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fbdt::{ClientConfig, ConnectError, Health, Session, connect};
use tokio::sync::watch;

use crate::output::without_codes;
use crate::status::{ServerReport, lasting};

/// How long one of several servers is tried before the next one is.
const ONE_OF_SEVERAL: Duration = Duration::from_secs(5);
/// How long no path may reach a server before another one is tried beside it.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often the session is looked at.
const LOOK: Duration = Duration::from_millis(250);
/// Pauses between attempts to reach another server, and a preferred one: longer where that was lost
/// again soon.
const RETRY: Duration = Duration::from_secs(5);
const RETURN: (Duration, Duration) = (Duration::from_secs(10), Duration::from_secs(300));
/// A preferred server that was used for this long is a good one again.
const GOOD: Duration = Duration::from_secs(600);

/// What is dialled at each server, and what is known of them.
pub(super) struct Servers {
    configs: watch::Sender<Vec<ClientConfig>>,
    known: Mutex<Known>,
}

struct Known {
    /// The one in use, and since when.
    index: usize,
    since: Instant,
    /// How long to wait before a preferred one is tried again.
    pause: Duration,
    failures: Vec<Option<(String, Instant)>>,
}

impl Known {
    fn new(count: usize) -> Self {
        let failures = vec![None; count];
        Self { index: 0, since: Instant::now(), pause: RETURN.0, failures }
    }
}

impl Servers {
    /// These, of which the first one is to be used; there is at least one.
    pub(super) fn new(configs: Vec<ClientConfig>) -> Self {
        let known = Mutex::new(Known::new(configs.len()));
        Self { configs: watch::Sender::new(several(configs)), known }
    }

    /// Others from now on, of which `opened` has opened a session at one.
    pub(super) fn replace(&self, opened: Self) {
        *self.known() = opened.known.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.configs.send_replace(opened.configs.borrow().clone());
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is dialled at each.
    pub(super) fn configs(&self) -> Vec<ClientConfig> {
        self.configs.borrow().clone()
    }

    /// What was dialled at the one in use.
    pub(super) fn current(&self) -> Option<ClientConfig> {
        let index = self.known().index;
        self.configs.borrow().get(index).cloned()
    }

    /// Opens a session at the first of all servers that can be reached, which is in use then.
    ///
    /// # Errors
    /// The one that says most about what can be done.
    pub(super) async fn open(&self) -> Result<Session, ConnectError> {
        self.open_within(Duration::MAX).await
    }

    /// The same, with at most so much time for each.
    ///
    /// # Errors
    /// The one that says most about what can be done.
    pub(super) async fn open_within(&self, limit: Duration) -> Result<Session, ConnectError> {
        let (index, session) = self.reach(0..self.configs().len(), limit).await?;
        self.enter(index);
        Ok(session)
    }

    /// Opens a session at the first of these that can be reached.
    async fn reach(
        &self,
        order: impl IntoIterator<Item = usize>,
        limit: Duration,
    ) -> Result<(usize, Session), ConnectError> {
        let configs = self.configs();
        let mut worst: Option<ConnectError> = None;
        for index in order {
            let Some(config) = configs.get(index) else { continue };
            let connect_timeout = config.connect_timeout.min(limit);
            match connect(ClientConfig { connect_timeout, ..config.clone() }).await {
                Ok(session) => return Ok((index, session)),
                // It is the same for all of them.
                Err(error @ ConnectError::Withheld { .. }) => return Err(error),
                Err(error) => {
                    if configs.len() > 1 {
                        tracing::info!("the server {} is not reached: {error}", name(config));
                    }
                    self.note(index, &error);
                    // A server that refuses is no reason to give the others up.
                    if worst.as_ref().is_none_or(|known| is_final(known) && !is_final(&error)) {
                        worst = Some(error);
                    }
                }
            }
        }
        Err(worst.unwrap_or_else(|| ConnectError::NoPath {
            waited: Duration::ZERO,
            failures: Vec::new(),
        }))
    }

    fn note(&self, index: usize, error: &ConnectError) {
        if let Some(failure) = self.known().failures.get_mut(index) {
            *failure = Some((without_codes(&error.to_string()), Instant::now()));
        }
    }

    /// This one is in use from now on.
    pub(super) fn enter(&self, index: usize) {
        let mut known = self.known();
        let lasted = known.since.elapsed();
        known.pause = match (index > known.index, lasted > GOOD) {
            // Who came back too early waits longer the next time.
            (true, false) => (known.pause * 2).min(RETURN.1),
            (true, true) => RETURN.0,
            (false, _) => known.pause,
        };
        (known.index, known.since) = (index, Instant::now());
        if let Some(failure) = known.failures.get_mut(index) {
            *failure = None;
        }
    }

    /// Waits until new connections are better carried by another server: no path reaches this one and one
    /// reaches another, or a preferred one is reached again. Does not end where there is one server.
    pub(super) async fn better(&self, session: &Session) -> (usize, Session) {
        let (mut lost, mut next, mut was_lost) = (None, Instant::now(), false);
        loop {
            tokio::time::sleep(LOOK).await;
            let (index, since, pause) = {
                let known = self.known();
                (known.index, known.since, known.pause)
            };
            let count = self.configs.borrow().len();
            lost = if is_reached(session) { None } else { lost.or(Some(Instant::now())) };
            let is_lost = lost.is_some_and(|lost: Instant| lost.elapsed() >= PATIENCE);
            if is_lost && !was_lost {
                next = Instant::now();
            }
            was_lost = is_lost;
            let order: Vec<usize> = match is_lost {
                true => (0..count).filter(|other| *other != index).collect(),
                false if since.elapsed() >= pause => (0..index).collect(),
                false => Vec::new(),
            };
            if order.is_empty() || Instant::now() < next {
                continue;
            }
            if let Ok((other, better)) = self.reach(order, Duration::MAX).await {
                // The present one may have come back meanwhile.
                if other < index || !is_reached(session) {
                    return (other, better);
                }
                better.close(0, "another server is reached again").await;
            }
            next = Instant::now() + if is_lost { RETRY } else { pause };
        }
    }

    /// The addresses of all.
    pub(super) fn names(&self) -> Vec<String> {
        self.configs.borrow().iter().map(name).collect()
    }

    /// For `sumrate status`; nothing where there is one.
    pub(super) fn report(&self) -> Vec<ServerReport> {
        let (configs, known) = (self.configs.borrow(), self.known());
        if configs.len() < 2 {
            return Vec::new();
        }
        let server = |(index, config): (usize, &ClientConfig)| {
            let failure = known.failures.get(index).cloned().flatten();
            let is_used = index == known.index;
            ServerReport {
                server: name(config),
                in_use: is_used,
                since_s: is_used.then(|| known.since.elapsed().as_secs_f64()),
                last_error: failure.as_ref().map(|(words, _)| words.clone()),
                error_ago_s: failure.map(|(_, at)| at.elapsed().as_secs_f64()),
            }
        };
        configs.iter().enumerate().map(server).collect()
    }

    /// That another server is used from now on, in a sentence.
    pub(super) fn changed_words(&self, index: usize) -> String {
        let (configs, known) = (self.configs.borrow(), self.known());
        let named = |index: usize| configs.get(index).map(name).unwrap_or_default();
        let (now, before) = (named(index), named(known.index));
        match index < known.index {
            true => format!(
                "the server {now} is reached again; new connections go by it, after {} by {before}",
                lasting(known.since.elapsed().as_secs_f64())
            ),
            false => format!("no path reaches the server {before}; new connections go by {now}"),
        }
    }
}

/// One of several servers gets less time.
fn several(mut configs: Vec<ClientConfig>) -> Vec<ClientConfig> {
    if configs.len() > 1 {
        for config in &mut configs {
            config.connect_timeout = config.connect_timeout.min(ONE_OF_SEVERAL);
        }
    }
    configs
}

/// The addresses of a server, as its link has them.
fn name(config: &ClientConfig) -> String {
    let servers: Vec<String> = config.link.servers().iter().map(ToString::to_string).collect();
    servers.join(", ")
}

/// Whether the server said no for good.
pub(super) fn is_final(error: &ConnectError) -> bool {
    matches!(error, ConnectError::Refused { .. })
}

/// Whether a path of the session works.
pub(super) fn is_reached(session: &Session) -> bool {
    session.paths().iter().any(|path| path.health == Health::Active)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(host: &str) -> ClientConfig {
        let secret = "EscYkP6FyA2W7DklTfVzJaXP4TJQ1UBe5fDeQcy12R8GdSq_RILACQ";
        let link = format!("sumrate://{host}:7443?v=1&insecure=1#c={secret}");
        ClientConfig::new(link.parse().unwrap())
    }

    #[test]
    fn a_server_that_is_lost_again_soon_is_waited_for_longer() {
        let servers = Servers::new(vec![config("192.0.2.1"), config("192.0.2.2")]);
        let pause = || servers.known().pause;
        let mut pauses = Vec::new();
        for _ in 0..7 {
            servers.enter(1);
            pauses.push(pause().as_secs());
            servers.enter(0);
        }
        assert_eq!(pauses, [20, 40, 80, 160, 300, 300, 300]);
        servers.known().since = Instant::now() - GOOD * 2;
        servers.enter(1);
        assert_eq!(pause(), RETURN.0);
    }

    #[test]
    fn one_of_several_is_named_with_what_became_of_the_others() {
        assert!(Servers::new(vec![config("192.0.2.1")]).report().is_empty());
        let servers = Servers::new(vec![config("192.0.2.1"), config("b.example")]);
        servers.note(0, &ConnectError::NoInterface(Duration::from_secs(5)));
        let words = servers.changed_words(1);
        assert!(words.contains("192.0.2.1:7443; new connections go by b.example:7443"), "{words}");
        servers.enter(1);
        let report = servers.report();
        assert!(!report[0].in_use && report[0].last_error.is_some(), "{report:?}");
        assert!(report[1].in_use && report[1].since_s.is_some(), "{report:?}");
        let words = servers.changed_words(0);
        assert!(words.starts_with("the server 192.0.2.1:7443 is reached again"), "{words}");
        assert_eq!(servers.current().unwrap().link.servers()[0].host, "b.example");
        servers.replace(Servers::new(vec![config("192.0.2.3")]));
        assert_eq!(servers.configs().len(), 1);
    }

    #[test]
    fn each_of_several_gets_less_time() {
        let waits = |configs| Servers::new(configs).configs()[0].connect_timeout;
        assert_eq!(waits(vec![config("192.0.2.1")]), Duration::from_secs(15));
        let both = vec![config("192.0.2.1"), config("192.0.2.2")];
        assert_eq!(waits(both), ONE_OF_SEVERAL);
    }
}
