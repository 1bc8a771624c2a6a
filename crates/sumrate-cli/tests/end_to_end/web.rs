//! A web server in a thread: `GET /N` answers N bytes of a pattern, `POST` answers how many bytes and
//! their sum, after the end of the request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

/// Starts on a free port of an address; lives until the test process ends.
pub(crate) fn start(address: &str) -> SocketAddr {
    let listener = TcpListener::bind((address, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for connection in listener.incoming().flatten() {
            std::thread::spawn(move || answer(connection));
        }
    });
    address
}

/// The pattern's bytes.
pub(crate) fn body(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index % 251) as u8 ^ (index / 65_521) as u8).collect()
}

fn answer(connection: TcpStream) -> Option<()> {
    let mut reader = BufReader::new(connection.try_clone().ok()?);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut length = 0;
    loop {
        let mut field = String::new();
        reader.read_line(&mut field).ok()?;
        if field.trim().is_empty() {
            break;
        }
        if let Some(value) = field.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let (method, rest) = first.split_once(" /")?;
    let body = match method {
        "POST" => {
            let mut sent = vec![0; length];
            reader.read_exact(&mut sent).ok()?;
            let sum: u64 = sent.iter().map(|byte| u64::from(*byte)).sum();
            format!("{length} {sum}").into_bytes()
        }
        _ => body(rest.split(' ').next()?.parse().ok()?),
    };
    let mut connection = connection;
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    connection.write_all(head.as_bytes()).ok()?;
    connection.write_all(&body).ok()
}
