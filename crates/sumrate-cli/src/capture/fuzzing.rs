//! What programs ask and name servers answer.

use super::dns::{
    ANSWER_MAX_EDNS, FLAG_TRUNCATED, HEADER, failure, fitting, is_question, read_answer,
};
use crate::fuzzing::now;

/// A question over UDP, whose length is the first byte, and what comes back over TCP.
pub fn dns(data: &[u8]) {
    let Some((&length, data)) = data.split_first() else { return };
    let (question, mut stream) = data.split_at(usize::from(length).min(data.len()));
    if !is_question(question) {
        return;
    }
    let failed = failure(question);
    assert_eq!((failed.len(), &failed[..2]), (HEADER, &question[..2]), "it is of that question");
    assert!(failed[2] & 0x80 != 0 && !is_question(&failed), "an answer is no question");
    let Ok(whole) = now(read_answer(&mut stream, question)) else { return };
    let sent = fitting(whole.clone(), question);
    assert_eq!(sent[..2], question[..2], "the program finds its question again");
    assert!(sent.len() <= ANSWER_MAX_EDNS, "it fits a datagram");
    if sent != whole {
        assert!(sent.len() == HEADER && sent[2] & FLAG_TRUNCATED != 0, "the program asks again");
    }
}
