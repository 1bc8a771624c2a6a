//! How a client's paths are used, by name: one table for all its sessions, changed while they live.

use std::collections::BTreeMap;
use std::sync::Arc;

use fbdt_proto::PathPolicy;
use tokio::sync::watch;

/// Wishes of one name.
#[derive(Debug, Clone, Copy, Default)]
struct Wish {
    policy: Option<PathPolicy>,
    withheld: bool,
}

/// Policies by path name. Clones are handles to the same table.
#[derive(Debug, Clone)]
pub struct PathPolicies(Arc<watch::Sender<BTreeMap<String, Wish>>>);

impl Default for PathPolicies {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(BTreeMap::new())))
    }
}

impl PathPolicies {
    /// What was set for the path, if anything.
    pub fn get(&self, name: &str) -> Option<PathPolicy> {
        self.0.borrow().get(name)?.policy
    }

    /// Has the path be used so whenever it is dialled.
    pub fn set(&self, name: &str, policy: PathPolicy) {
        self.change(name, |wish| wish.policy = Some(policy));
    }

    /// Has the path not be dialled in new sessions, or be dialled again.
    pub fn withhold(&self, name: &str, withheld: bool) {
        self.change(name, |wish| wish.withheld = withheld);
    }

    /// Whether the path is not to be dialled.
    pub fn is_withheld(&self, name: &str) -> bool {
        self.0.borrow().get(name).is_some_and(|wish| wish.withheld)
    }

    /// Waits until the path may be dialled.
    pub(crate) async fn admitted(&self, name: &str) {
        self.any_admitted(&[name.to_owned()]).await;
    }

    /// Waits until one of these paths may be dialled.
    pub async fn any_admitted(&self, names: &[String]) {
        let mut table = self.0.subscribe();
        let admitted = |table: &BTreeMap<String, Wish>| {
            names.iter().any(|name| !table.get(name).is_some_and(|wish| wish.withheld))
        };
        // The sender lives as long as `self`: no error.
        let _ = table.wait_for(admitted).await;
    }

    /// Waits until the path may not be dialled.
    pub(crate) async fn withheld(&self, name: &str) {
        let mut table = self.0.subscribe();
        // The sender lives as long as `self`: no error.
        let _ = table.wait_for(|table| table.get(name).is_some_and(|wish| wish.withheld)).await;
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Wish)) {
        self.0.send_modify(|table| change(table.entry(name.to_owned()).or_default()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fbdt_proto::Weight;

    #[tokio::test]
    async fn a_path_waits_until_it_is_admitted() {
        let policies = PathPolicies::default();
        policies.admitted("a").await;
        policies.withhold("a", true);
        policies.set("a", PathPolicy { weight: Weight::new(2), ..PathPolicy::default() });
        let clone = policies.clone();
        let waiting = tokio::spawn(async move { clone.admitted("a").await });
        tokio::task::yield_now().await;
        assert!(policies.is_withheld("a") && !waiting.is_finished());
        policies.withhold("a", false);
        waiting.await.unwrap();
        assert_eq!(policies.get("a").unwrap().weight, Weight::new(2), "kept");
        assert_eq!(policies.get("b"), None);
    }
}
