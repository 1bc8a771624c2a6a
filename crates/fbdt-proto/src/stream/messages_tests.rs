use alloc::vec;
use alloc::vec::Vec;
use core::time::Duration;

use fbdt_units::StreamId;

use super::*;

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn with(importance: Importance, delivery: Delivery, ms: Option<u64>) -> MessageOptions {
    MessageOptions { importance, delivery, lifetime: ms.map(Duration::from_millis) }
}

fn ack(cumulative: u64, ranges: Vec<Range<u64>>) -> AckFrame {
    AckFrame { stream: StreamId(1), cumulative, limit: 0, ranges }
}

fn message(text: &'static str) -> Unit {
    Unit::Message(Bytes::from_static(text.as_bytes()))
}

fn counts(sent: u64, acknowledged: u64, dropped: u64) -> MessageStats {
    MessageStats { sent, acknowledged, dropped, ..MessageStats::default() }
}

#[test]
fn f16_the_important_go_first_and_the_expired_not_at_all() {
    let mut m = SendMessages::new();
    for (text, importance, ms) in [
        ("low", Importance::Low, None),
        ("one", Importance::Normal, None),
        ("old", Importance::Normal, Some(5)),
        ("top", Importance::High, Some(20)),
    ] {
        let options = with(importance, Delivery::Reliable, ms);
        assert!(m.push(at(0), Bytes::from_static(text.as_bytes()), options));
    }
    assert!(m.expire(at(5)) && !m.expire(at(5)));
    let mut order = Vec::new();
    while let Some(range) = m.take() {
        order.push(m.unit(&range));
    }
    assert_eq!(order, [message("top"), message("one"), message("low")]);
    assert_eq!(m.counts, counts(3, 0, 1));
    assert_eq!(m.unacknowledged(0..201), Some(0..201), "the expired one took no place");
}

#[test]
fn f16_a_later_path_takes_the_last_one_where_it_is_no_later_there() {
    let mut m = SendMessages::new();
    for (text, importance, ms) in [
        ("low", Importance::Low, None),
        ("Low", Importance::Low, Some(9)),
        ("top", Importance::High, None),
    ] {
        let options = with(importance, Delivery::Reliable, ms);
        assert!(m.push(at(0), Bytes::from_static(text.as_bytes()), options));
    }
    let ahead = 2 * (3 + MESSAGE_OVERHEAD);
    let low = Some(Importance::Low);
    assert_eq!(m.last_may_go(at(8), ahead), low);
    assert_eq!(m.last_may_go(at(8), ahead + 1), None, "faster paths have it there sooner");
    assert_eq!(m.last_may_go(at(9), ahead), None, "its time is over then");
    assert_eq!(m.take_last(Importance::Low).map(|range| m.unit(&range)), Some(message("Low")));
    assert_eq!(m.last_may_go(at(9), 0), low);
    assert_eq!(m.take_last(Importance::Low).map(|range| m.unit(&range)), Some(message("low")));
    assert_eq!(m.last_may_go(at(0), 0), None, "a single one is the first");
}

#[test]
fn f16_a_later_path_takes_the_most_important_that_others_would_bring_no_sooner() {
    let mut m = SendMessages::new();
    for _ in 0..3 {
        for importance in [Importance::Low, Importance::Normal, Importance::High] {
            assert!(m.push(
                at(0),
                Bytes::from_static(b"abc"),
                with(importance, Delivery::Reliable, Some(9)),
            ));
        }
    }
    let one = 3 + MESSAGE_OVERHEAD;
    let last = |m: &SendMessages, messages: u64| m.last_may_go(at(0), messages * one);
    assert_eq!(last(&m, 2), Some(Importance::High));
    assert_eq!(
        last(&m, 3),
        Some(Importance::Normal),
        "all that is important goes sooner elsewhere"
    );
    assert_eq!(last(&m, 6), Some(Importance::Low));
    assert_eq!(last(&m, 9), None);
    m.take_last(Importance::High).unwrap();
    assert_eq!(last(&m, 1), Some(Importance::High), "the second of two");
    m.take_last(Importance::High).unwrap();
    assert_eq!(last(&m, 1), Some(Importance::Normal), "the only one is the soonest path's");
    m.expire(at(10));
    assert_eq!((m.backlog(), last(&m, 0)), (0, None));
}

#[test]
fn f16_what_expires_on_its_way_becomes_a_gap() {
    let mut m = SendMessages::new();
    for _ in 0..4 {
        m.push(
            at(0),
            Bytes::from_static(b"abcd"),
            with(Importance::Normal, Delivery::Reliable, Some(9)),
        );
    }
    m.push(at(0), Bytes::from_static(b"last"), MessageOptions::default());
    while m.take().is_some() {}
    assert_eq!(m.acknowledge(&ack(0, vec![68..136])), Ok(true));
    m.lose(0..68);
    assert_eq!(m.take_lost(|_| true), Some(0..68));
    assert_eq!(m.unit(&(0..68)), message("abcd"));
    m.expire(at(10));
    for range in [0..68, 136..204, 204..272, 272..340] {
        m.lose(range);
    }
    assert_eq!(m.take_lost(|_| true), Some(0..68));
    assert_eq!(m.unit(&(0..68)), Unit::Gap);
    assert_eq!(m.take_lost(|_| true), Some(136..272), "gaps go together");
    assert_eq!(m.unit(&(136..272)), Unit::Gap);
    assert_eq!(m.take_lost(|_| true), Some(272..340));
    assert_eq!(m.unit(&(272..340)), message("last"));
    assert_eq!(m.acknowledge(&ack(340, vec![])), Ok(true));
    assert!(m.is_quiet());
    assert_eq!(m.counts, counts(5, 2, 3));
}

#[test]
fn f16_each_expires_in_its_own_time_whatever_came_and_went_before() {
    let mut m = SendMessages::new();
    for ms in [Some(9), None, Some(5), Some(30)] {
        let options = with(Importance::Normal, Delivery::Reliable, ms);
        assert!(m.push(at(0), Bytes::from_static(b"text"), options));
    }
    assert!(!m.expire(at(4)));
    assert!(m.expire(at(5)) && !m.expire(at(8)), "one that came later went first");
    let sent = m.take().unwrap();
    assert!(!m.expire(at(9)), "it is on its way");
    assert_eq!(m.unit(&sent), Unit::Gap);
    assert!(!m.expire(at(29)) && m.expire(at(30)));
    let kept = m.take().unwrap();
    assert!(!m.expire(at(60_000)) && m.take().is_none());
    assert_eq!(m.unit(&kept), message("text"));
    assert_eq!(m.counts, counts(2, 0, 3));
}

#[test]
fn f16_what_expires_on_its_way_and_arrives_is_not_dropped() {
    let mut m = SendMessages::new();
    for _ in 0..2 {
        let options = with(Importance::Normal, Delivery::Reliable, Some(9));
        assert!(m.push(at(0), Bytes::from_static(b"abcd"), options));
        assert!(m.take().is_some());
    }
    m.expire(at(10));
    assert_eq!(m.counts, counts(2, 0, 0));
    assert_eq!(m.acknowledge(&ack(68, vec![])), Ok(true));
    for _ in 0..2 {
        m.lose(68..136);
        assert_eq!(m.take_lost(|_| true), Some(68..136));
        assert_eq!(m.unit(&(68..136)), Unit::Gap);
    }
    assert_eq!(m.counts, counts(2, 1, 1));
    assert_eq!(m.acknowledge(&ack(136, vec![])), Ok(true));
    assert_eq!(m.counts, counts(2, 1, 1));
}

#[test]
fn f16_the_best_effort_are_sent_once() {
    let mut m = SendMessages::new();
    m.push(at(0), Bytes::from_static(b""), with(Importance::Normal, Delivery::BestEffort, None));
    let range = m.take().unwrap();
    assert_eq!(range, 0..MESSAGE_OVERHEAD, "an empty message is one too");
    assert_eq!((m.may_copy(0), m.is_repaired(0)), (None, false));
    m.lose(range.clone());
    assert_eq!(m.take_lost(|_| true), Some(range.clone()));
    assert_eq!(m.unit(&range), Unit::Gap);
    assert_eq!(m.counts.dropped, 1);
}

#[test]
fn a_part_of_a_message_that_is_acknowledged_does_no_harm() {
    let mut m = SendMessages::new();
    for _ in 0..2 {
        m.push(at(0), Bytes::from_static(b"abcd"), MessageOptions::default());
        assert!(m.take().is_some());
    }
    assert_eq!(m.acknowledge(&ack(10, vec![70..100])), Ok(true));
    m.lose(0..68);
    assert_eq!(m.acknowledge(&ack(136, vec![])), Ok(true));
    assert_eq!((m.counts.acknowledged, m.is_quiet()), (2, true));
}

#[test]
fn f16_gaps_that_went_together_are_lost_together() {
    let mut m = SendMessages::new();
    for _ in 0..3 {
        m.push(
            at(0),
            Bytes::from_static(b"abcd"),
            with(Importance::Normal, Delivery::Reliable, Some(9)),
        );
        assert!(m.take().is_some());
    }
    m.expire(at(10));
    m.lose(0..204);
    assert_eq!(m.take_lost(|_| true), Some(0..204));
    assert_eq!(m.acknowledge(&ack(0, vec![68..136])), Ok(true));
    m.lose(0..204);
    assert_eq!(m.take_lost(|_| true), Some(0..68));
    assert_eq!(m.take_lost(|_| true), Some(136..204));
    assert_eq!(m.take_lost(|_| true), None);
}

#[test]
fn f16_who_asked_for_copies_asks_no_more_once_they_are_under_way_or_useless() {
    let mut m = SendMessages::new();
    let push = |m: &mut SendMessages, ms| {
        let options = with(Importance::Normal, Delivery::Duplicated, ms);
        assert!(m.push(at(0), Bytes::from_static(b"abcd"), options));
        m.take().unwrap().start
    };
    let copied = push(&mut m, None);
    assert!(m.asks_copies());
    m.copied(copied);
    assert!(!m.asks_copies(), "a second path has it");
    push(&mut m, None);
    assert!(m.asks_copies());
    assert_eq!(m.acknowledge(&ack(0, vec![68..136])), Ok(true));
    assert!(!m.asks_copies(), "it arrived");
    push(&mut m, Some(9));
    assert!(m.asks_copies());
    m.expire(at(10));
    assert!(!m.asks_copies(), "its time is over");
}

#[test]
fn f16_limits_of_the_peer_and_of_the_queue() {
    let mut m = SendMessages::new();
    let large = Bytes::from(vec![0; 20 << 10]);
    assert!(m.push(at(0), large.clone(), MessageOptions::default()));
    assert_eq!(m.short_of(), Some((20 << 10) + 64));
    assert_eq!(m.take(), None);
    let more = AckFrame { limit: 64 << 10, ..ack(0, vec![]) };
    assert_eq!(m.acknowledge(&more), Ok(true));
    assert!(m.take().is_some());
    let count = (0..100).take_while(|_| m.push(at(0), large.clone(), MessageOptions::default()));
    assert_eq!(count.count(), 12, "256 KiB");
    assert!(m.writer_blocked.is_some());
    assert!(m.acknowledge(&ack(1 << 20, vec![])).is_err());
    assert_eq!(m.acknowledge(&ack(u64::MAX, vec![])), Ok(true));
    assert!(m.over && m.is_quiet() && m.take().is_none());
}

#[test]
fn f16_a_peer_that_takes_any_number_and_acknowledges_none_is_sent_a_bounded_number() {
    let mut m = SendMessages::new();
    let all = AckFrame { limit: 1 << 62, ..ack(0, vec![]) };
    assert_eq!(m.acknowledge(&all), Ok(true));
    let large = Bytes::from(vec![0; 60_000]);
    let mut sent = 0;
    while sent < 1000 && m.push(at(0), large.clone(), MessageOptions::default()) {
        sent += usize::from(m.take().is_some());
    }
    assert_eq!(sent, (16 << 20) / 60_064);
    assert_eq!(m.acknowledge(&ack(60_064, vec![])), Ok(true));
    assert!(m.take().is_some(), "one was acknowledged");
    assert_eq!(m.take(), None);
}

#[test]
fn f16_what_matters_more_finds_room_behind_what_matters_less() {
    let mut m = SendMessages::new();
    let large = Bytes::from(vec![0; 20 << 10]);
    let mut push =
        |importance| m.push(at(0), large.clone(), with(importance, Delivery::Reliable, None));
    while push(Importance::Low) {}
    assert!(!push(Importance::Low));
    while push(Importance::High) {}
    assert!(!m.wakes_writer(), "half of what matters as much must have gone");
    assert_eq!(m.backlog(), 2 * 12 * ((20 << 10) + 64), "256 KiB of each");
    m.acknowledge(&AckFrame { limit: 1 << 30, ..ack(0, vec![]) }).unwrap();
    while !m.wakes_writer() {
        assert!(m.take().is_some());
    }
    assert_eq!(m.first().map(|first| first.importance), Some(Importance::High));
}

#[test]
fn f16_what_a_late_path_would_bring_too_late_waits_for_another() {
    let mut m = SendMessages::new();
    for ms in [Some(50), None] {
        m.push(
            at(0),
            Bytes::from_static(b"abcd"),
            with(Importance::Normal, Delivery::Reliable, ms),
        );
        assert!(m.take().is_some());
    }
    m.lose(0..136);
    let late = |expires: Instant| expires > at(60);
    assert_eq!(m.take_lost(late), Some(68..136), "the one that lives for ever");
    assert_eq!(m.take_lost(late), None);
    assert_eq!(m.take_lost(|_| true), Some(0..68));
}

#[test]
fn f16_a_peer_makes_this_end_remember_no_more_ranges_than_a_receiver_has() {
    let mut m = SendMessages::new();
    m.size(MOST_WAITING);
    m.acknowledge(&AckFrame { limit: 4 << 20, ..ack(0, vec![]) }).unwrap();
    for _ in 0..20 {
        assert!(m.push(at(0), Bytes::from(vec![1; 65_536]), MessageOptions::default()));
        assert!(m.take().is_some());
    }
    let every_second = (0..640_000).map(|at| 2 * at + 1..2 * at + 2).collect();
    m.acknowledge(&ack(0, every_second)).unwrap();
    assert_eq!(m.acked.count(), MAX_MESSAGE_RANGES);
    m.acknowledge(&ack(20 * 65_600, vec![])).unwrap();
    assert!(m.is_quiet() && m.acked.count() == 0);
}
