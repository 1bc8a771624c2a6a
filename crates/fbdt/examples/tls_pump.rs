//! What rustls alone moves: one TLS 1.3 connection per address, a thread each, no protocol above.
//!
//! The measure for what encryption leaves of two sockets. Same cipher and same record sizes as the
//! transport, blocking sockets, 64 KiB per write.
//!
//! ```text
//! tls_pump serve ADDRESS:PORT...                       listens, sends to whoever connects
//! tls_pump fetch SECONDS LOCAL@ADDRESS:PORT...         receives on all at once, prints JSON
//! ```
//!
//! The client accepts any certificate: this is a load generator for a laboratory, not a transport.

use std::error::Error;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::{cipher_suite, default_provider};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, ServerConfig, ServerConnection,
    SignatureScheme, StreamOwned,
};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

const PIECE: usize = 64 << 10;
const USAGE: &str = "usage: tls_pump serve ADDRESS:PORT... | fetch SECONDS LOCAL@ADDRESS:PORT...";

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.split_first() {
        Some((command, addresses)) if command == "serve" && !addresses.is_empty() => {
            serve(addresses)
        }
        Some((command, rest)) if command == "fetch" && rest.len() > 1 => {
            fetch(Duration::from_secs_f64(rest[0].parse()?), &rest[1..])
        }
        _ => Err(USAGE.into()),
    }
}

/// AES-128-GCM, as the transport prefers.
fn provider() -> Arc<CryptoProvider> {
    let mut provider = default_provider();
    provider.cipher_suites = vec![cipher_suite::TLS13_AES_128_GCM_SHA256];
    Arc::new(provider)
}

fn serve(addresses: &[String]) -> Result<()> {
    let key = rcgen::generate_simple_self_signed(vec!["pump".to_owned()])?;
    let private = rustls::pki_types::PrivateKeyDer::Pkcs8(key.signing_key.serialize_der().into());
    let config = Arc::new(
        ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])?
            .with_no_client_auth()
            .with_single_cert(vec![key.cert.der().clone()], private)?,
    );
    let mut listeners = Vec::new();
    for address in addresses {
        listeners.push(TcpListener::bind(address.as_str())?);
    }
    let threads: Vec<_> = listeners
        .into_iter()
        .map(|listener| {
            let config = config.clone();
            thread::spawn(move || accept(&listener, &config))
        })
        .collect();
    for thread in threads {
        thread.join().map_err(|_| "a listener died")??;
    }
    Ok(())
}

fn accept(listener: &TcpListener, config: &Arc<ServerConfig>) -> Result<()> {
    loop {
        let (socket, _) = listener.accept()?;
        let config = config.clone();
        thread::spawn(move || {
            // An error is the end of the connection: the client has seen enough.
            let _ = send(socket, config);
        });
    }
}

fn send(socket: TcpStream, config: Arc<ServerConfig>) -> Result<()> {
    socket.set_nodelay(true)?;
    let mut stream = StreamOwned::new(ServerConnection::new(config)?, socket);
    let piece = vec![0x5a_u8; PIECE];
    loop {
        stream.write_all(&piece)?;
    }
}

fn fetch(length: Duration, paths: &[String]) -> Result<()> {
    let mut streams = Vec::new();
    for path in paths {
        streams.push(connect(path)?);
    }
    let start = Instant::now();
    let threads: Vec<_> = streams
        .into_iter()
        .map(|stream| thread::spawn(move || receive(stream, start + length)))
        .collect();
    let mut counts = Vec::new();
    for thread in threads {
        counts.push(thread.join().map_err(|_| "a receiver died")??);
    }
    let bytes: u64 = counts.iter().sum();
    let seconds = start.elapsed().as_secs_f64();
    let listed: Vec<String> = counts.iter().map(u64::to_string).collect();
    println!(
        "{{\"bytes\": {bytes}, \"duration_s\": {seconds:.6}, \"goodput_mbps\": {:.3}, \
         \"path_bytes\": [{}]}}",
        bytes as f64 * 8e-6 / seconds,
        listed.join(", ")
    );
    Ok(())
}

/// From LOCAL to the server's address, with the handshake done.
fn connect(path: &str) -> Result<StreamOwned<ClientConnection, TcpStream>> {
    let (local, remote) = path.split_once('@').ok_or(USAGE)?;
    let remote: SocketAddr = remote.parse()?;
    let local = SocketAddr::new(local.parse::<IpAddr>()?, 0);
    let domain = socket2::Domain::for_address(remote);
    let socket = socket2::Socket::new(domain, socket2::Type::STREAM, None)?;
    socket.bind(&local.into())?;
    socket.connect(&remote.into())?;
    let mut socket = TcpStream::from(socket);
    let config = ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody))
        .with_no_client_auth();
    let mut connection =
        ClientConnection::new(Arc::new(config), ServerName::try_from("pump")?.to_owned())?;
    connection.complete_io(&mut socket)?;
    Ok(StreamOwned::new(connection, socket))
}

fn receive(mut stream: StreamOwned<ClientConnection, TcpStream>, until: Instant) -> Result<u64> {
    let mut piece = vec![0; PIECE];
    let mut received = 0;
    while Instant::now() < until {
        match stream.read(&mut piece)? {
            0 => break,
            count => received += count as u64,
        }
    }
    Ok(received)
}

/// Accepts every certificate.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> std::result::Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.2 is not spoken here".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> std::result::Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        provider().signature_verification_algorithms.supported_schemes()
    }
}
