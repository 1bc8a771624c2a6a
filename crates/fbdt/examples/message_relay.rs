//! Carries messages for two programs that speak TCP to their own machine: the sender frames each
//! message with its importance and lifetime, the receiver gets their bytes one after the other, each
//! message whole, whichever came first: what it is of is the sender's to say in it. `messages.rs` shows
//! the options that this one leaves alone.
//!
//! ```text
//! message_relay serve CC DIR LINK_FILE SENDER_ADDRESS:PORT LISTEN_ADDRESS:PORT...
//! message_relay dial CC LINK_FILE LISTEN_ADDRESS:PORT LOCAL@SERVER_ADDRESS:PORT...
//! ```
//!
//! CC is the congestion control of every subflow. A connection to the dialling end becomes a stream of
//! the session, the serving end connects to the sender. What the receiver writes reaches the sender as it is, in order. What the sender
//! writes is a sequence of messages, numbers in little-endian order:
//!
//! | bytes | |
//! |---|---|
//! | 1 | importance: 0 low, 1 normal, 2 high |
//! | 4 | milliseconds after which it is dropped instead of sent; 0: never |
//! | 4 | length of what follows |
//!
//! Each end writes what its last session has counted beside LINK_FILE, twice a second: as
//! LINK_FILE.serve.json and LINK_FILE.dial.json, one object.
//!
//! A load generator for a laboratory: it serves whoever has the link, and gives up at the first
//! error of a connection.

use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use bytes::BytesMut;
use fbdt::{
    Class, ClassStats, ClientConfig, CongestionControl, CredentialLimits, Delivery, Importance,
    Listener, LocalBinding, MessageOptions, Messages, PathSpec, ServerConfig, ServerState, Session,
    SessionStats, Stream, connect,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const USAGE: &str = "usage: message_relay serve CC DIR LINK_FILE SENDER LISTEN... | \
                     dial CC LINK_FILE LISTEN LOCAL@SERVER...";
const HEAD: usize = 9;
const COUNT_EVERY: Duration = Duration::from_millis(500);
/// Bytes of the sender's that wait in this program's socket for their turn, about: none overtakes there.
const HELD: u32 = 256 << 10;

#[tokio::main]
async fn main() -> ExitCode {
    match relay().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("message_relay: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn relay() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", control, directory, link, sender, ref listen @ ..] if !listen.is_empty() => {
            let state = ServerState::open(directory)?;
            let listen = listen
                .iter()
                .map(|address| address.parse())
                .collect::<std::result::Result<_, _>>()?;
            let mut config = ServerConfig::new(state, listen);
            config.congestion_control = control.parse::<CongestionControl>()?;
            serve(config, Path::new(link), sender.parse()?).await
        }
        ["dial", control, link, listen, ref paths @ ..] if !paths.is_empty() => {
            let text = std::fs::read_to_string(link).map_err(|error| format!("{link}: {error}"))?;
            let mut config = ClientConfig::new(text.trim().parse()?);
            config.congestion_control = control.parse::<CongestionControl>()?;
            config.paths = paths.iter().map(|path| self::path(path)).collect::<Result<_>>()?;
            dial(config, link, listen.parse()?).await
        }
        _ => Err(USAGE.into()),
    }
}

async fn serve(config: ServerConfig, file: &Path, sender: SocketAddr) -> Result<()> {
    let credential = config.state.new_credential("relay", CredentialLimits::default())?;
    let listener = Listener::bind(config).await?;
    let part = file.with_extension("part");
    std::fs::write(&part, listener.link(&credential).to_string_with_secret())?;
    std::fs::rename(part, file)?;
    loop {
        let session = listener.accept().await?;
        tokio::spawn(count(session.clone(), format!("{}.serve.json", file.display())));
        tokio::spawn(async move {
            while let Some(stream) = session.accept_stream().await {
                tokio::spawn(async move {
                    if let Err(error) = send(stream, sender).await {
                        eprintln!("a sender is done: {error}");
                    }
                });
            }
        });
    }
}

/// Writes what the session has counted, until it is over.
async fn count(session: Session, file: String) {
    let part = format!("{file}.part");
    while !session.is_closed() {
        let written = std::fs::write(&part, counted(&session.stats()));
        if let Err(error) = written.and_then(|()| std::fs::rename(&part, &file)) {
            eprintln!("message_relay: {file}: {error}");
            return;
        }
        tokio::time::sleep(COUNT_EVERY).await;
    }
}

/// The counters as JSON, under the names that `sumrate status --json` has for them.
fn counted(stats: &SessionStats) -> String {
    let class = |class: &ClassStats| {
        format!(
            r#"{{"class":"{}","sent_bytes":{},"redundant_bytes":{},"chosen_bytes":{}}}"#,
            class.class.name(),
            class.new_bytes,
            class.redundant_bytes(),
            class.chosen_bytes
        )
    };
    let classes: Vec<String> = stats.classes.iter().map(class).collect();
    format!(
        r#"{{"redundant_bytes":{},"received_bytes":{},"receive_buffer_peak_bytes":{},"messages_acknowledged":{},"messages_dropped":{},"classes":[{}]}}"#,
        stats.redundant_bytes,
        stats.received_bytes,
        stats.receive_buffer_peak,
        stats.messages.acknowledged,
        stats.messages.dropped,
        classes.join(",")
    )
}

/// Connects to the sender and gives the session what it frames.
async fn send(stream: Stream, sender: SocketAddr) -> Result<()> {
    stream.set_class(Class::Streaming);
    let messages = stream.messages().ok_or("the other end has no messages")?;
    let socket = if sender.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_recv_buffer_size(HELD)?;
    let connection = socket.connect(sender).await?;
    connection.set_nodelay(true)?;
    let (mut from_sender, mut to_sender) = connection.into_split();
    let (mut words, _rest) = tokio::io::split(stream);
    tokio::select! {
        done = framed(&mut from_sender, &messages) => done,
        done = tokio::io::copy(&mut words, &mut to_sender) => done.map(|_| ()).map_err(Into::into),
    }
}

async fn framed(sender: &mut (impl AsyncRead + Unpin), messages: &Messages) -> Result<()> {
    loop {
        let mut head = [0; HEAD];
        sender.read_exact(&mut head).await?;
        let number =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (lifetime, length) = (number(1), number(5) as usize);
        if length > messages.longest() {
            return Err(
                format!("a message of {length} bytes; {} at most", messages.longest()).into()
            );
        }
        let importance = match head[0] {
            0 => Importance::Low,
            1 => Importance::Normal,
            _ => Importance::High,
        };
        let mut bytes = BytesMut::zeroed(length);
        sender.read_exact(&mut bytes).await?;
        let lifetime = (lifetime > 0).then(|| Duration::from_millis(u64::from(lifetime)));
        let options = MessageOptions { importance, delivery: Delivery::Reliable, lifetime };
        messages.send(bytes.freeze(), options).await?;
    }
}

async fn dial(config: ClientConfig, link: &str, listen: SocketAddr) -> Result<()> {
    let session = connect(config).await?;
    tokio::spawn(count(session.clone(), format!("{link}.dial.json")));
    let listener = TcpListener::bind(listen).await?;
    loop {
        let (connection, _) = listener.accept().await?;
        let session = session.clone();
        tokio::spawn(async move {
            if let Err(error) = receive(&session, connection).await {
                eprintln!("a receiver is done: {error}");
            }
        });
    }
}

/// `LOCAL@SERVER_ADDRESS:PORT`.
fn path(text: &str) -> Result<PathSpec> {
    let (local, remote) = text.split_once('@').ok_or(USAGE)?;
    let remote: SocketAddr = remote.parse()?;
    Ok(PathSpec {
        name: local.to_owned(),
        local: LocalBinding::Address(local.parse::<IpAddr>()?),
        server: Some((remote.ip(), Some(remote.port()))),
        ..PathSpec::default()
    })
}

/// Gives a connection every message of a stream, and the stream what the connection says.
async fn receive(session: &Session, connection: TcpStream) -> Result<()> {
    connection.set_nodelay(true)?;
    let stream = session.open_stream(Class::Interactive).await?;
    let messages = stream.messages().ok_or("the other end has no messages")?;
    let (mut from_receiver, mut to_receiver) = connection.into_split();
    let (_rest, mut words) = tokio::io::split(stream);
    let down = async {
        loop {
            let message = messages.receive().await?;
            to_receiver.write_all(&message).await?;
        }
    };
    tokio::select! {
        done = down => done,
        done = tokio::io::copy(&mut from_receiver, &mut words) => done.map(|_| ()).map_err(Into::into),
    }
}
