//! A server that returns what it gets, and a client that checks it.
//!
//! `cargo run --example echo` runs both in one process over two loopback paths. On two machines:
//! `cargo run --example echo -- serve DIR ADDRESS:PORT` prints a link, and
//! `cargo run --example echo -- send LINK` uses it over every interface.

use std::error::Error;
use std::net::IpAddr;
use std::time::Duration;

use fbdt::{
    Class, ClientConfig, CredentialLimits, Listener, LocalBinding, PathSpec, ServerConfig,
    ServerState, Session, connect,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => both().await,
        ["serve", directory, address] => {
            let (listener, link) = listen(directory, address).await?;
            println!("{link}");
            loop {
                tokio::spawn(serve(listener.accept().await?));
            }
        }
        ["send", link] => send(connect(ClientConfig::new(link.parse()?)).await?).await,
        _ => Err("usage: echo [serve DIR ADDRESS:PORT | send LINK]".into()),
    }
}

async fn both() -> Result<()> {
    let directory = tempfile::tempdir()?;
    let state = directory.path().join("state");
    let (listener, link) = listen(&state.to_string_lossy(), "127.0.0.1:0").await?;
    let mut config = ClientConfig::new(link.parse()?);
    config.paths = ["127.0.0.1", "127.0.0.2"].map(path).to_vec();
    let client = connect(config).await?;
    tokio::spawn(serve(listener.accept().await?));
    send(client).await
}

fn path(address: &str) -> PathSpec {
    PathSpec {
        name: address.to_owned(),
        local: address.parse::<IpAddr>().map_or(LocalBinding::Any, LocalBinding::Address),
        ..PathSpec::default()
    }
}

async fn listen(directory: &str, address: &str) -> Result<(Listener, String)> {
    let state = ServerState::open(directory)?;
    let credential = state.new_credential("echo", CredentialLimits::default())?;
    let listener = Listener::bind(ServerConfig::new(state, vec![address.parse()?])).await?;
    let link = listener.link(&credential).to_string_with_secret();
    Ok((listener, link))
}

async fn serve(session: Session) {
    while let Some(mut stream) = session.accept_stream().await {
        tokio::spawn(async move {
            while let Ok(Some(piece)) = stream.read_chunk(usize::MAX).await {
                if stream.write_all(&piece).await.is_err() {
                    return;
                }
            }
            let _ = stream.shutdown().await;
        });
    }
}

async fn send(session: Session) -> Result<()> {
    let mut stream = session.open_stream(Class::Interactive).await?;
    stream.write_all(b"hello over every path").await?;
    stream.shutdown().await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    println!("{answer}");
    for path in session.paths() {
        println!("path {} is {}", path.name, path.health.name());
    }
    session.shutdown(Duration::from_secs(5)).await?;
    Ok(())
}
