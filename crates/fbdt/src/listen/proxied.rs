//! The client's address as a proxy in front of this server tells it: the PROXY protocol, version 2 as
//! HAProxy and load balancers send it, and version 1 as nginx does.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use ipnet::IpNet;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// What version 2 begins with, and its version and commands.
const SIGNATURE: [u8; 12] = *b"\r\n\r\n\0\r\nQUIT\n";
const LOCAL: u8 = 0x20;
const PROXY: u8 = 0x21;
/// Address families and transports: TCP over IPv4 and IPv6.
const TCP4: u8 = 0x11;
const TCP6: u8 = 0x21;
/// Most bytes that a header of version 2 may have behind its length; proxies send a few hundred.
const LONGEST: usize = 4096;
/// What version 1 begins with, and its longest line.
const WORD: &[u8] = b"PROXY ";
const LONGEST_LINE: usize = 107;

/// Whether the peer is one of the proxies, whose connections begin with a header.
pub(super) fn is_proxy(proxies: &[IpNet], peer: SocketAddr) -> bool {
    proxies.iter().any(|net| net.contains(&peer.ip().to_canonical()))
}

/// A proxy's connection and the address of its client; none where no header comes in time.
pub(super) async fn introduced(
    mut stream: TcpStream,
    proxy: SocketAddr,
    limit: Duration,
) -> Option<(TcpStream, SocketAddr)> {
    match timeout(limit, client_of(&mut stream)).await {
        Ok(Ok(client)) => return Some((stream, client.unwrap_or(proxy))),
        Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => {
            tracing::info!(%proxy, "a connection is refused: {error}");
        }
        Ok(Err(error)) => tracing::debug!(%proxy, %error, "a proxy's connection ended"),
        Err(_) => tracing::debug!(%proxy, "no header of the PROXY protocol came"),
    }
    None
}

/// Reads the header that a proxy puts before the client's first byte: the client, or none where the
/// proxy itself connects, to look whether this server is there.
async fn client_of(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<SocketAddr>> {
    // The shortest header of each version is longer.
    let mut begin = [0; SIGNATURE.len()];
    stream.read_exact(&mut begin).await?;
    if begin == SIGNATURE {
        return binary(stream).await;
    }
    if !begin.starts_with(WORD) {
        return Err(no_header());
    }
    let mut line = begin.to_vec();
    while !line.ends_with(b"\r\n") {
        if line.len() >= LONGEST_LINE {
            return Err(no_header());
        }
        line.push(stream.read_u8().await?);
    }
    in_line(&line).ok_or_else(no_header)
}

fn no_header() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "it begins with no header of the PROXY protocol")
}

/// The rest of a header of version 2.
async fn binary(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<SocketAddr>> {
    let (command, family) = (stream.read_u8().await?, stream.read_u8().await?);
    let length = usize::from(stream.read_u16().await?);
    if length > LONGEST || ![LOCAL, PROXY].contains(&command) {
        return Err(no_header());
    }
    let mut rest = vec![0; length];
    stream.read_exact(&mut rest).await?;
    if command == LOCAL {
        return Ok(None);
    }
    // Source and destination, their ports, and whatever the proxy adds.
    let client = match family {
        TCP4 => rest.first_chunk::<12>().map(|a| (ip4(&a[..4]), port(&a[8..]))),
        TCP6 => rest.first_chunk::<36>().map(|a| (ip6(&a[..16]), port(&a[32..]))),
        _ => return Ok(None),
    };
    let Some((Some(ip), Some(port))) = client else { return Err(no_header()) };
    Ok(Some(SocketAddr::new(ip, port)))
}

fn ip4(octets: &[u8]) -> Option<IpAddr> {
    octets.first_chunk::<4>().map(|octets| IpAddr::from(*octets))
}

fn ip6(octets: &[u8]) -> Option<IpAddr> {
    octets.first_chunk::<16>().map(|octets| IpAddr::from(*octets).to_canonical())
}

fn port(octets: &[u8]) -> Option<u16> {
    octets.first_chunk().map(|octets| u16::from_be_bytes(*octets))
}

/// The client in a line of version 1; `UNKNOWN` has none.
fn in_line(line: &[u8]) -> Option<Option<SocketAddr>> {
    let text = std::str::from_utf8(line).ok()?.strip_suffix("\r\n")?;
    let mut words = text.split(' ').skip(1);
    let family = words.next()?;
    if family == "UNKNOWN" {
        return Some(None);
    }
    let source: IpAddr = words.next()?.parse().ok()?;
    let _destination: IpAddr = words.next()?.parse().ok()?;
    let port: u16 = words.next()?.parse().ok()?;
    let fits = match family {
        "TCP4" => source.is_ipv4(),
        "TCP6" => source.is_ipv6(),
        _ => false,
    };
    fits.then(|| Some(SocketAddr::new(source.to_canonical(), port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
        let length = u16::try_from(rest.len()).unwrap();
        [&SIGNATURE[..], &[command, family], &length.to_be_bytes(), rest].concat()
    }

    /// What is read, and the bytes behind the header.
    async fn read(bytes: &[u8]) -> (Result<Option<String>, io::ErrorKind>, usize) {
        let mut rest = bytes;
        let client = client_of(&mut rest).await;
        let text = client.map(|client| client.map(|client| client.to_string()));
        (text.map_err(|error| error.kind()), rest.len())
    }

    #[tokio::test]
    async fn the_client_is_read_and_nothing_behind_the_header() {
        let four = [192, 0, 2, 7, 10, 0, 0, 1, 0xc0, 0x00, 0x1d, 0x13];
        let six =
            [&[0x20, 1, 0xd, 0xb8][..], &[0; 11], &[7], &[0; 16], &[1, 0, 2, 0], &[9; 5]].concat();
        let mapped = [&[0; 10][..], &[255, 255, 192, 0, 2, 8], &[0; 16], &[0, 80, 0, 80]].concat();
        for (bytes, client) in [
            (header(PROXY, TCP4, &four), Some("192.0.2.7:49152")),
            (header(PROXY, TCP6, &six), Some("[2001:db8::7]:256")),
            (header(PROXY, TCP6, &mapped), Some("192.0.2.8:80")),
            (header(LOCAL, 0, &[]), None),
            (header(PROXY, 0x31, &[0; 216]), None),
            (b"PROXY TCP4 192.0.2.7 10.0.0.1 49152 7443\r\n".to_vec(), Some("192.0.2.7:49152")),
            (b"PROXY TCP6 2001:db8::7 ::1 256 7443\r\n".to_vec(), Some("[2001:db8::7]:256")),
            (b"PROXY UNKNOWN\r\n".to_vec(), None),
        ] {
            let followed = [&bytes[..], b"hello"].concat();
            let client = client.map(str::to_owned);
            assert_eq!(read(&followed).await, (Ok(client), 5), "{bytes:?}");
            for length in 0..bytes.len() {
                assert!(read(&bytes[..length]).await.0.is_err(), "{length} of {bytes:?}");
            }
        }
    }

    #[tokio::test]
    async fn what_is_no_header_is_refused() {
        for bytes in [
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00\x00\x00".to_vec(),
            header(0x22, TCP4, &[0; 12]),
            header(PROXY, TCP4, &[0; 11]),
            header(PROXY, TCP4, &vec![0; LONGEST + 1]),
            b"PROXY TCP4 2001:db8::7 ::1 256 7443\r\n".to_vec(),
            b"PROXY TCP4 192.0.2.7 10.0.0.1\r\n".to_vec(),
            [&b"PROXY TCP4 "[..], &[b'1'; 200]].concat(),
        ] {
            assert_eq!(read(&bytes).await.0, Err(io::ErrorKind::InvalidData), "{bytes:?}");
        }
    }
}
