//! SOCKS5 without answers, for programs that are connected without their knowledge: see
//! [`sumrate_preload::preface`].

use std::io;

use sumrate_preload::preface::{METHOD_SILENT, VERSION};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

use super::passwords::PasswordCheck;
use super::socks5::{self, Request, SocksError};

const GREETING: [u8; 3] = [VERSION, 1, METHOD_SILENT];

/// Reads on until it is clear whether the client wants no answers. What was read is in `buffer`.
pub(super) async fn is_wanted<C: AsyncRead + Unpin>(
    client: &mut C,
    buffer: &mut Vec<u8>,
) -> io::Result<bool> {
    while buffer.len() < GREETING.len() && GREETING.starts_with(buffer) {
        let mut chunk = [0; 1024];
        match client.read(&mut chunk).await? {
            0 => return Ok(false),
            count => buffer.extend_from_slice(&chunk[..count]),
        }
    }
    Ok(buffer.starts_with(&GREETING))
}

/// Goes through authentication and request, saying nothing. What the client sent beyond is left in
/// `buffer`.
pub(super) async fn handshake<C: AsyncRead + Unpin>(
    client: &mut C,
    auth: Option<&(impl PasswordCheck + ?Sized)>,
    buffer: &mut Vec<u8>,
) -> Result<Request, SocksError> {
    let wanted = if auth.is_some() { 2 } else { 0 };
    // The same as any other client's, but for where the answers go.
    if let Some(method) = buffer.get_mut(2) {
        *method = wanted;
    }
    let mut client = Mute(client);
    socks5::handshake(&mut client, auth, buffer).await
}

/// A client to which nothing is written.
struct Mute<'a, C>(&'a mut C);

impl<C: AsyncRead + Unpin> AsyncRead for Mute<'_, C> {
    fn poll_read(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
        buffer: &mut tokio::io::ReadBuf<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::pin::Pin::new(&mut *self.0).poll_read(cx, buffer)
    }
}

impl<C: Unpin> AsyncWrite for Mute<'_, C> {
    fn poll_write(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<io::Result<usize>> {
        std::task::Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn poll_shutdown(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::socks5::Target;
    use super::*;
    use crate::args::ProxyAuth;
    use sumrate_preload::preface::{METHOD_NONE, Preface, Target as Asked};
    use tokio::io::AsyncWriteExt;

    async fn go(
        sent: &[u8],
        auth: Option<&ProxyAuth>,
    ) -> (bool, Option<Request>, Vec<u8>, Vec<u8>) {
        let (mut client, mut server) = tokio::io::duplex(4096);
        client.write_all(sent).await.unwrap();
        client.shutdown().await.unwrap();
        let mut buffer = Vec::new();
        let wanted = is_wanted(&mut server, &mut buffer).await.unwrap();
        let target = match wanted {
            true => handshake(&mut server, auth, &mut buffer).await.ok(),
            false => None,
        };
        drop(server);
        let mut answered = Vec::new();
        client.read_to_end(&mut answered).await.unwrap();
        (wanted, target, buffer, answered)
    }

    #[tokio::test]
    async fn nothing_is_answered_and_what_follows_is_kept() {
        let auth: ProxyAuth = "me:secret".parse().unwrap();
        let target = Asked::Name(b"far.example", 443);
        let expected = Request {
            command: socks5::Command::Connect,
            target: Target { host: "far.example".to_owned(), port: 443 },
        };
        let open = Preface::new(METHOD_SILENT, None, target);
        let sent = [open.bytes(), b"GET"].concat();
        let (_, found, rest, answered) = go(&sent, None).await;
        assert_eq!((found, rest, answered), (Some(expected.clone()), b"GET".to_vec(), vec![]));
        let (wanted, found, _, answered) = go(&sent, Some(&auth)).await;
        assert_eq!((wanted, found, answered), (true, None, vec![]), "the password is missing");
        let right = Preface::new(METHOD_SILENT, Some((b"me", b"secret")), target);
        assert_eq!(go(right.bytes(), Some(&auth)).await.1, Some(expected));
        let wrong = Preface::new(METHOD_SILENT, Some((b"me", b"secre!")), target);
        assert_eq!(go(wrong.bytes(), Some(&auth)).await.1, None);
    }

    #[tokio::test]
    async fn others_are_left_to_socks5() {
        let plain = Preface::new(METHOD_NONE, None, Asked::Name(b"a", 1));
        for other in [plain.bytes(), b"", b"\x05", b"\x05\x02\x00\xd5", b"GET / HTTP/1.1"] {
            let (wanted, _, buffer, _) = go(other, None).await;
            assert!(!wanted);
            assert_eq!(buffer, other);
        }
    }
}
