//! A peer of wire version 1, frozen: written from the first release's `docs/protocol.md`, it shares
//! no code with the product and never changes with it. Blocking sockets, a thread for each.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use aws_lc_rs::hmac;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConnection, DigitallySignedStruct, ServerConnection, StreamOwned};

/// Largest frame payload, window of a stream, window of the session, streams.
const LIMITS: [u8; 24] = [
    0, 1, 0, 0, // 64 KiB
    0, 0, 0, 0, 0, 16, 0, 0, // 1 MiB
    0, 0, 0, 0, 1, 0, 0, 0, // 16 MiB
    0, 0, 0, 16,
];

pub(crate) type Session = [u8; 16];

/// A connection of which the first bytes may be sent, and its exporter.
pub(crate) struct Wire {
    io: Box<dyn Io>,
    exporter: [u8; 32],
}

trait Io: Read + Write + Send {}
impl<T: Read + Write + Send> Io for T {}

/// The frozen peer takes any server for the right one: who is who is not its subject.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        default_provider().signature_verification_algorithms.supported_schemes()
    }
}

fn names(alpn: &[&str]) -> Vec<Vec<u8>> {
    alpn.iter().map(|name| name.as_bytes().to_vec()).collect()
}

impl Wire {
    pub(crate) fn plain(socket: TcpStream) -> Self {
        Self { io: Box::new(socket), exporter: [0; 32] }
    }

    /// TLS 1.3 as a client that offers these application protocols; with the chosen one.
    pub(crate) fn tls_client(mut socket: TcpStream, alpn: &[&str]) -> io::Result<(Self, Vec<u8>)> {
        let mut config = rustls::ClientConfig::builder_with_provider(default_provider().into())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody))
            .with_no_client_auth();
        config.alpn_protocols = names(alpn);
        let name = ServerName::try_from("fbdt.invalid").unwrap();
        let mut tls = ClientConnection::new(Arc::new(config), name).unwrap();
        while tls.is_handshaking() {
            tls.complete_io(&mut socket)?;
        }
        let exporter = tls.export_keying_material([0; 32], b"EXPORTER-fbdt", Some(b"")).unwrap();
        let chosen = tls.alpn_protocol().unwrap_or_default().to_vec();
        Ok((Self { io: Box::new(StreamOwned::new(tls, socket)), exporter }, chosen))
    }

    /// TLS 1.3 as a server that speaks these application protocols.
    pub(crate) fn tls_server(
        mut socket: TcpStream,
        key: &ServerKey,
        alpn: &[&str],
    ) -> io::Result<Self> {
        let mut config = rustls::ServerConfig::builder_with_provider(default_provider().into())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![key.certificate.clone()], key.private.clone_key())
            .unwrap();
        config.alpn_protocols = names(alpn);
        let mut tls = ServerConnection::new(Arc::new(config)).unwrap();
        while tls.is_handshaking() {
            tls.complete_io(&mut socket)?;
        }
        let exporter = tls.export_keying_material([0; 32], b"EXPORTER-fbdt", Some(b"")).unwrap();
        Ok(Self { io: Box::new(StreamOwned::new(tls, socket)), exporter })
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.io.write_all(bytes).unwrap();
        self.io.flush().unwrap();
    }

    /// The next handshake message: type and body.
    pub(crate) fn message(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut head = [0; 3];
        self.io.read_exact(&mut head)?;
        let mut body = vec![0; usize::from(u16::from_be_bytes([head[1], head[2]]))];
        self.io.read_exact(&mut body)?;
        Ok((head[0], body))
    }

    /// What comes until the connection ends.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let _ = self.io.read_to_end(&mut bytes);
        bytes
    }

    fn frame(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let mut head = [0; 4];
        self.io.read_exact(&mut head)?;
        let length = u32::from_be_bytes([0, head[1], head[2], head[3]]);
        let mut body = vec![0; length as usize];
        self.io.read_exact(&mut body)?;
        Ok((head[0], body))
    }

    fn send_frame(&mut self, kind: u8, parts: &[&[u8]]) -> io::Result<()> {
        let body = parts.concat();
        let head = (u32::from(kind) << 24 | body.len() as u32).to_be_bytes();
        self.io.write_all(&[&head, body.as_slice()].concat())?;
        self.io.flush()
    }

    fn send_data(&mut self, stream: u32, offset: u64, bytes: &[u8], end: bool) -> io::Result<()> {
        let (stream, offset) = (stream.to_be_bytes(), offset.to_be_bytes());
        self.send_frame(if end { 2 } else { 1 }, &[&stream, &offset, bytes])
    }
}

/// A server's key and certificate, and what its clients pin.
pub(crate) struct ServerKey {
    certificate: CertificateDer<'static>,
    private: PrivateKeyDer<'static>,
    pub(crate) fingerprint: [u8; 32],
}

impl ServerKey {
    pub(crate) fn make() -> Self {
        use rcgen::PublicKeyData;
        let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
        let parameters = rcgen::CertificateParams::new(vec!["fbdt.invalid".to_owned()]).unwrap();
        let certificate = parameters.self_signed(&pair).unwrap().der().clone();
        let spki = pair.subject_public_key_info();
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &spki);
        Self {
            certificate,
            private: PrivateKeyDer::try_from(pair.serialize_der()).unwrap(),
            fingerprint: digest.as_ref().try_into().unwrap(),
        }
    }
}

/// A credential as a link of version 1 carries it.
#[derive(Clone, Copy)]
pub(crate) struct Credential {
    pub(crate) id: [u8; 8],
    pub(crate) secret: [u8; 32],
}

fn sign(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, key);
    hmac::sign(&key, &parts.concat()).as_ref().to_vec()
}

fn message(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    [&[kind][..], &(body.len() as u16).to_be_bytes(), &body].concat()
}

/// What a session's later subflows are proven with.
pub(crate) struct Membership {
    pub(crate) session: Session,
    key: Vec<u8>,
}

/// The client's Hello on path 0.
pub(crate) fn hello(wire: &Wire, credential: Credential) -> Vec<u8> {
    let proof = sign(&credential.secret, &[b"fbdt hello", &wire.exporter, &[0], &LIMITS]);
    message(0x41, &[&[0, 1], &credential.id, &[0], &LIMITS, &proof, b"old0"])
}

/// Opens a session as a client; `Err` has the code and the words of a refusal.
pub(crate) fn open(wire: &mut Wire, credential: Credential) -> Result<Membership, (u8, String)> {
    wire.send(&hello(wire, credential));
    let (kind, body) = wire.message().unwrap();
    if kind == 0x44 {
        return Err((body[0], String::from_utf8(body[1..].to_vec()).unwrap()));
    }
    assert_eq!((kind, body.len()), (0x43, 16 + 24 + 32), "Welcome");
    let session: Session = body[..16].try_into().unwrap();
    let proof = sign(&credential.secret, &[b"fbdt welcome", &wire.exporter, &session]);
    assert_eq!(body[40..], proof, "the server's proof");
    let key = sign(&credential.secret, &[b"fbdt session", &session, &wire.exporter]);
    Ok(Membership { session, key })
}

/// Adds a subflow as a client.
pub(crate) fn join(wire: &mut Wire, member: &Membership) {
    let proof = sign(&member.key, &[b"fbdt join", &wire.exporter, &[1]]);
    wire.send(&message(0x42, &[&member.session, &[1], &proof, b"old1"]));
    let (kind, body) = wire.message().unwrap();
    assert_eq!(kind, 0x43, "{}", String::from_utf8_lossy(&body));
    let proof = sign(&member.key, &[b"fbdt welcome", &wire.exporter, &member.session]);
    assert_eq!(body[40..], proof, "the server's proof");
}

/// Answers a Hello or a Join as a server; whether it was a Hello.
pub(crate) fn welcome(
    wire: &mut Wire,
    credential: Credential,
    opened: &Mutex<Option<Membership>>,
) -> bool {
    let (kind, body) = wire.message().unwrap();
    let mut opened = opened.lock().unwrap();
    let (session, proof) = match kind {
        0x41 => {
            assert_eq!(body[..10], [&[0, 1], credential.id.as_slice()].concat(), "version, id");
            let signed = [b"fbdt hello".as_slice(), &wire.exporter, &body[10..35]];
            assert_eq!(body[35..67], sign(&credential.secret, &signed), "Hello's proof");
            let session = [0x5a; 16];
            let key = sign(&credential.secret, &[b"fbdt session", &session, &wire.exporter]);
            *opened = Some(Membership { session, key });
            let signed = [b"fbdt welcome".as_slice(), &wire.exporter, &session];
            (session, sign(&credential.secret, &signed))
        }
        0x42 => {
            let member = opened.as_ref().expect("a Join comes after a Hello");
            assert_eq!(body[..16], member.session, "Join's session");
            let signed = [b"fbdt join".as_slice(), &wire.exporter, &body[16..17]];
            assert_eq!(body[17..49], sign(&member.key, &signed), "Join's proof");
            let signed = [b"fbdt welcome".as_slice(), &wire.exporter, &member.session];
            (member.session, sign(&member.key, &signed))
        }
        other => panic!("{other:#x} is no request"),
    };
    wire.send(&message(0x43, &[&session, &LIMITS, &proof]));
    kind == 0x41
}

/// What came of each stream, over all subflows.
#[derive(Default)]
pub(crate) struct Inbox {
    streams: BTreeMap<u32, Incoming>,
    answered: bool,
}

#[derive(Default)]
struct Incoming {
    pieces: BTreeMap<u64, Vec<u8>>,
    end: Option<u64>,
}

impl Incoming {
    fn prefix(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (&offset, piece) in &self.pieces {
            let have = bytes.len() as u64;
            if offset <= have && offset + piece.len() as u64 > have {
                bytes.extend_from_slice(&piece[(have - offset) as usize..]);
            }
        }
        bytes
    }

    fn is_complete(&self) -> bool {
        self.end.is_some_and(|end| self.prefix().len() as u64 == end)
    }
}

/// Sends the bytes of stream 1 from `offset` on.
pub(crate) fn send_stream(wire: &mut Wire, mut offset: usize, bytes: &[u8], ends: bool) {
    let pieces: Vec<&[u8]> = bytes.chunks(16 << 10).collect();
    for (index, piece) in pieces.iter().enumerate() {
        let last = ends && index + 1 == pieces.len();
        wire.send_data(1, offset as u64, piece, last).unwrap();
        offset += piece.len();
    }
}

/// Says that stream 1 is open, class interactive.
pub(crate) fn announce_stream(wire: &mut Wire) {
    wire.send_data(0, 0, &[1, 5, 0, 0, 0, 1, 1], false).unwrap();
}

/// Takes what comes on one subflow until the session or the connection is over. Once stream 1 is
/// complete, whichever subflow sees it first hands it to `complete`, which says whether to go on.
pub(crate) fn pump(
    wire: &mut Wire,
    inbox: &Mutex<Inbox>,
    complete: impl Fn(&mut Wire, Vec<u8>) -> bool,
) {
    while let Ok((kind, body)) = wire.frame() {
        let word = |at: usize| u64::from_be_bytes(body[at..at + 8].try_into().unwrap());
        match kind {
            1 | 2 => {
                let stream = u32::from_be_bytes(body[..4].try_into().unwrap());
                let (cumulative, whole) = take(inbox, stream, word(4), &body[12..], kind == 2);
                let limit = cumulative + (1 << 20);
                let ack = [&body[..4], &cumulative.to_be_bytes(), &limit.to_be_bytes()];
                if wire.send_frame(3, &ack).is_err() {
                    return;
                }
                if let Some(bytes) = whole
                    && !complete(wire, bytes)
                {
                    return;
                }
            }
            5 => {
                let _ = wire.send_frame(6, &[&body, &1_u64.to_be_bytes()]);
            }
            7 => return,
            3 | 4 | 6 | 8 => {}
            other => panic!("version 1 has no frame {other}"),
        }
    }
}

/// Notes the bytes; says what to acknowledge, and the whole of stream 1 when it is complete.
fn take(
    inbox: &Mutex<Inbox>,
    stream: u32,
    offset: u64,
    bytes: &[u8],
    end: bool,
) -> (u64, Option<Vec<u8>>) {
    let mut inbox = inbox.lock().unwrap();
    let incoming = inbox.streams.entry(stream).or_default();
    let piece = incoming.pieces.entry(offset).or_default();
    if piece.len() < bytes.len() {
        *piece = bytes.to_vec();
    }
    if end {
        incoming.end = Some(offset + bytes.len() as u64);
    }
    let (prefix, complete) = (incoming.prefix(), incoming.is_complete());
    let cumulative = prefix.len() as u64 + u64::from(complete);
    let first_time = stream == 1 && complete && !inbox.answered;
    inbox.answered |= first_time;
    (cumulative, first_time.then_some(prefix))
}

/// Ends the session.
pub(crate) fn close(wire: &mut Wire) {
    wire.send_frame(7, &[&0_u32.to_be_bytes(), b"done"]).unwrap();
}
