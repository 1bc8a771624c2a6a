//! A game and its server: messages that matter more, less, and twice, over two loopback paths.
//!
//! `cargo run --example messages` runs both in one process. Each second of play is thirty pictures
//! that are worth something for 100 ms, a chat line that must arrive, and a shot that must arrive
//! soon.

use std::error::Error;
use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use fbdt::{
    Class, ClientConfig, CredentialLimits, Delivery, Importance, Listener, LocalBinding,
    MessageOptions, Messages, PathSpec, ServerConfig, ServerState, Session, connect,
};
use tokio::io::AsyncReadExt;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// On one path, once, behind everything else; dropped when the next ones are worth more.
const PICTURE: MessageOptions =
    MessageOptions { lifetime: Some(Duration::from_millis(100)), ..MessageOptions::BACK };
/// Before all others, sent again until it is there.
const CHAT: MessageOptions = MessageOptions::FRONT;
/// On two paths at once, whatever that costs.
const SHOT: MessageOptions =
    MessageOptions { importance: Importance::High, delivery: Delivery::Duplicated, lifetime: None };

#[tokio::main]
async fn main() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let state = ServerState::open(directory.path().join("state"))?;
    let credential = state.new_credential("game", CredentialLimits::default())?;
    let listener = Listener::bind(ServerConfig::new(state, vec!["127.0.0.1:0".parse()?])).await?;
    let mut config = ClientConfig::new(listener.link(&credential));
    config.paths = ["127.0.0.1", "127.0.0.2"].map(path).to_vec();
    let client = connect(config).await?;
    let server = tokio::spawn(watch(listener.accept().await?));
    play(&client).await?;
    let [pictures, chats, shots] = server.await??;
    println!("{pictures} of 30 pictures, {chats} of 1 chat line, {shots} of 1 shot");
    client.shutdown(Duration::from_secs(5)).await?;
    Ok(())
}

fn path(address: &str) -> PathSpec {
    PathSpec {
        name: address.to_owned(),
        local: address.parse::<IpAddr>().map_or(LocalBinding::Any, LocalBinding::Address),
        ..PathSpec::default()
    }
}

async fn play(client: &Session) -> Result<()> {
    // The class of the stream is that of its messages: what goes first, and what copies may cost.
    let mut stream = client.open_stream(Class::Conversational).await?;
    let messages = stream.messages().ok_or("the server speaks a version without messages")?;
    for number in 0..30_u8 {
        // A picture must fit: messages are never cut.
        let size = messages.longest().min(20_000);
        let picture = [vec![b'p', number], vec![0; size - 2]].concat();
        messages.send(picture.into(), PICTURE).await?;
    }
    messages.send(Bytes::from_static(b"c: hello"), CHAT).await?;
    messages.send(Bytes::from_static(b"s: bang"), SHOT).await?;
    // Bytes of the stream go in order beside its messages; here they say that play is over.
    let mut over = [0; 4];
    stream.read_exact(&mut over).await?;
    Ok(())
}

/// Counts what came, of each kind; a message comes once, whole, and overtakes others.
async fn watch(session: Session) -> Result<[usize; 3]> {
    let mut stream = session.accept_stream().await.ok_or("the client is gone")?;
    let messages = stream.messages().ok_or("the client speaks a version without messages")?;
    let mut came = [0; 3];
    while came[1] + came[2] < 2 {
        came[kind(&messages).await?] += 1;
    }
    // What is on its way still comes; what is late does not.
    while let Ok(kind) = tokio::time::timeout(Duration::from_millis(300), kind(&messages)).await {
        came[kind?] += 1;
    }
    tokio::io::AsyncWriteExt::write_all(&mut stream, b"over").await?;
    Ok(came)
}

async fn kind(messages: &Messages) -> Result<usize> {
    let message = messages.receive().await?;
    Ok(match message.first() {
        Some(b'p') => 0,
        Some(b'c') => 1,
        _ => 2,
    })
}
