//! Which path is forward (F3).

use alloc::vec::Vec;

use fbdt_proto::{Instant, PathId, PathView};

/// How much better a path must be to take the front from another.
const HYSTERESIS: f64 = 0.3;

/// Paths by falling reliability, the forward one first (F3). A pinned path
/// leads; else `holder` keeps the front unless another is clearly better.
#[must_use]
pub(super) fn by_reliability(
    now: Instant,
    paths: &[PathView],
    holder: Option<PathId>,
) -> Vec<PathView> {
    let penalty = |path: &PathView| path.penalty(now);
    let mut order: Vec<PathView> = paths.iter().filter(|p| p.usable).copied().collect();
    order.sort_by(|a, b| {
        let reliability = penalty(a).total_cmp(&penalty(b));
        b.pinned.cmp(&a.pinned).then(reliability).then(a.id.cmp(&b.id))
    });
    let Some(best) = order.first().copied() else {
        return order;
    };
    if best.pinned {
        return order;
    }
    if let Some(at) = order.iter().position(|p| Some(p.id) == holder)
        && !displaces(penalty(&best), penalty(&order[at]))
    {
        order[..=at].rotate_right(1);
    }
    order
}

/// Whether `challenger` is enough better than `holder` to take its place.
fn displaces(challenger: f64, holder: f64) -> bool {
    challenger + HYSTERESIS < holder
}

#[cfg(test)]
mod tests {
    use super::*;
    use fbdt_proto::testing::view;

    #[test]
    fn f3_the_most_reliable_path_is_forward_with_hysteresis() {
        let first = |paths: &[PathView], holder| by_reliability(Instant::ZERO, paths, holder)[0].id;
        let paths = [view(0, 1.0, 0.5), view(1, 9.0, 0.3)];
        assert_eq!(first(&paths, None), PathId(1));
        assert_eq!(first(&paths, Some(PathId(0))), PathId(0), "0.2 better is not enough");
        let paths = [view(0, 1.0, 0.9), view(1, 9.0, 0.3)];
        assert_eq!(first(&paths, Some(PathId(0))), PathId(1));
        let mut pinned = view(2, 1.0, 5.0);
        pinned.pinned = true;
        assert_eq!(first(&[paths[0], paths[1], pinned], None), PathId(2));
        let gone = PathView { usable: false, ..paths[1] };
        assert_eq!(first(&[paths[0], gone], Some(PathId(1))), PathId(0));
    }
}
