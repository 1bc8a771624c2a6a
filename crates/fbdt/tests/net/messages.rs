//! Messages of streams over real sockets (F16).

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use fbdt::{
    AcceptLimits, Class, Delivery, Importance, MessageError, MessageOptions, Session, Stream,
    StreamError,
};

use crate::world::{App, Mode, World, eventually, loopback, within};

async fn pair(mode: Mode) -> (World, Session, Session) {
    let mut world = World::start(mode, App::Nothing, AcceptLimits::default(), &[loopback(1)]).await;
    let client = world.connect(world.paths(2)).await;
    let server = within(world.sessions.recv()).await.unwrap();
    (world, client, server)
}

/// A stream at both ends; a message brings it to the other.
async fn stream(client: &Session, server: &Session) -> (Stream, Stream) {
    let here = client.open_stream(Class::Conversational).await.unwrap();
    let hello = Bytes::from_static(b"hello");
    here.messages().unwrap().send(hello.clone(), MessageOptions::default()).await.unwrap();
    let there = within(server.accept_stream()).await.unwrap();
    assert_eq!(within(there.messages().unwrap().receive()).await, Ok(hello));
    (here, there)
}

#[tokio::test]
async fn f16_messages_of_all_sizes_arrive_whole_and_once_in_both_directions() {
    let (_world, client, server) = pair(Mode::Tls).await;
    assert!(client.has_messages() && server.has_messages());
    let (here, there) = stream(&client, &server).await;
    for (from, to) in [(&here, &there), (&there, &here)] {
        let (from, to) = (from.messages().unwrap(), to.messages().unwrap());
        let count = 400_usize;
        let sending = async {
            for number in 0..count {
                let size = number * 37 % 3000 + if number == 7 { 60_000 } else { 2 };
                let mut body = vec![number as u8; size];
                body[..2].copy_from_slice(&(number as u16).to_be_bytes());
                let importance = if number % 3 == 0 { Importance::High } else { Importance::Low };
                let options = MessageOptions { importance, ..MessageOptions::default() };
                from.send(body.into(), options).await.unwrap();
            }
        };
        let receiving = async {
            let mut seen = BTreeSet::new();
            while seen.len() < count {
                let body = to.receive().await.unwrap();
                let number = u16::from_be_bytes([body[0], body[1]]);
                assert!(seen.insert(number), "{number} came twice");
                assert!(body[2..].iter().all(|byte| *byte == number as u8));
            }
        };
        within(async { tokio::join!(sending, receiving) }).await;
    }
    let stats = server.stats();
    assert_eq!((stats.messages.received, stats.messages.sent), (401, 400));
    let calls = stats.classes[Class::Conversational as usize];
    assert!(calls.new_bytes > 400 * 1000 && calls.streams == 1, "{calls:?}");
}

#[tokio::test]
async fn what_cannot_be_sent_says_why() {
    let (_world, client, server) = pair(Mode::Tls).await;
    let (here, there) = stream(&client, &server).await;
    let messages = here.messages().unwrap();
    let options = MessageOptions::default();
    let long = Bytes::from(vec![0; messages.longest() + 1]);
    assert!(matches!(messages.try_send(long, options), Err(MessageError::TooLong { .. })));
    // Nobody reads: what waits is bounded, also by what sockets hold while the machine is busy.
    let mut taken = 0;
    while messages.try_send(Bytes::from(vec![0; 50_000]), options).is_ok() {
        taken += 1;
        assert!(taken < 1000, "without end");
    }
    let waiting = tokio::spawn({
        let messages = messages.clone();
        async move { messages.send(Bytes::from(vec![0; 50_000]), options).await }
    });
    let reading = there.messages().unwrap();
    for _ in 0..=taken {
        within(reading.receive()).await.unwrap();
    }
    within(waiting).await.unwrap().unwrap();
    // A handle that waits is told when its stream or the session is over.
    let waiting = tokio::spawn(async move { reading.receive().await });
    tokio::task::yield_now().await;
    drop(there);
    assert!(matches!(within(waiting).await.unwrap(), Err(StreamError::Finished(_))));
    client.close(0, "done").await;
    let error = messages.try_send(Bytes::new(), options).unwrap_err();
    assert!(matches!(error, MessageError::Stream(StreamError::Closed(_))), "{error}");
    assert!(matches!(within(messages.receive()).await, Err(StreamError::Closed(_))));
}

#[tokio::test]
async fn f16_a_session_of_the_first_version_has_none() {
    // Plaintext speaks it alone.
    let (_world, client, server) = pair(Mode::Plain).await;
    assert!(!client.has_messages() && !server.has_messages());
    let stream = client.open_stream(Class::Interactive).await.unwrap();
    assert!(stream.messages().is_none());
}

#[tokio::test]
async fn f16_messages_whose_time_is_over_are_not_sent() {
    let (_world, client, server) = pair(Mode::Tls).await;
    let (here, _there) = stream(&client, &server).await;
    let messages = here.messages().unwrap();
    let options = MessageOptions {
        lifetime: Some(Duration::from_nanos(1)),
        delivery: Delivery::Reliable,
        ..MessageOptions::default()
    };
    for _ in 0..100 {
        let _ = messages.try_send(Bytes::from_static(b"old"), options);
    }
    eventually(|| {
        let stats = client.stats().messages;
        stats.dropped + stats.acknowledged >= 101 && stats.dropped > 0
    })
    .await;
}

#[tokio::test]
async fn f11_a_stream_changes_its_class() {
    let (_world, client, server) = pair(Mode::Tls).await;
    let (here, _there) = stream(&client, &server).await;
    here.set_class(Class::Background);
    assert_eq!(here.stats().unwrap().class, Class::Background);
    assert_eq!(client.stats().classes[Class::Background as usize].streams, 1);
}
