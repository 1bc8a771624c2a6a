//! Questions to name servers, which programs ask over UDP, over TCP through the tunnel (RFC 7766): each
//! on a stream of its own to the name server that was chosen.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use sumrate_capture::families::listen_on_both;
use sumrate_capture::guardian::CaptureError;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::crowd::{Bounds, Crowd, Owner};
use crate::proxy::connect_through;
use crate::tunnel::Tunnel;

/// Questions that may be open at a time; of more, the one that has been open longest is given up.
pub(super) const QUESTIONS_MAX: usize = 512;
/// Longest time for an answer; programs have asked again by then.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest question over UDP that is read, in bytes.
const QUESTION_MAX: usize = 4096;
/// Length of the header (RFC 1035 §4.1.1).
pub(super) const HEADER: usize = 12;
/// Longest answer for a program that says nothing about it (RFC 1035 §4.2.1), and for one that does
/// (what the EDNS flag day of 2020 recommends).
const ANSWER_MAX: usize = 512;
pub(super) const ANSWER_MAX_EDNS: usize = 1232;
pub(super) const FLAG_TRUNCATED: u8 = 0x02;
const SERVFAIL: u8 = 2;

/// The daemon's end of it: UDP on 127.0.0.1 and, where this machine has it, ::1.
pub(crate) struct NameServer {
    sockets: [Option<Arc<UdpSocket>>; 2],
    asked: SocketAddr,
    questions: Questions,
    open: TaskTracker,
    stop: CancellationToken,
}

impl NameServer {
    /// Takes free ports; questions go to `asked`, as the exit reaches it, until `stop` is cancelled.
    ///
    /// # Errors
    /// [`CaptureError`]: no socket for a family that is in use.
    pub(crate) fn bind(asked: SocketAddr, stop: CancellationToken) -> Result<Self, CaptureError> {
        let sockets = listen_on_both("listen for questions to name servers", |ipv6| {
            let socket = match ipv6 {
                false => std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?,
                true => std::net::UdpSocket::bind((Ipv6Addr::LOCALHOST, 0))?,
            };
            socket.set_nonblocking(true)?;
            UdpSocket::from_std(socket).map(Arc::new)
        })?;
        let (questions, open) = (Questions::default(), TaskTracker::new());
        Ok(Self { sockets, asked, questions, open, stop })
    }

    /// Ports for IPv4 and IPv6, 0 where there is none.
    ///
    /// # Errors
    /// What the system says.
    pub(crate) fn ports(&self) -> io::Result<[u16; 2]> {
        let mut ports = [0; 2];
        for (port, socket) in ports.iter_mut().zip(&self.sockets) {
            if let Some(socket) = socket {
                *port = socket.local_addr()?.port();
            }
        }
        Ok(ports)
    }

    /// Waits until it was stopped and the last question is answered.
    pub(crate) async fn finished(&self) {
        self.stop.cancelled().await;
        self.open.close();
        self.open.wait().await;
    }

    /// Answers until the future is dropped; once it was stopped, that there is no answer.
    pub(crate) async fn run<T: Tunnel>(&self, tunnel: T) {
        let serve = |index: usize| {
            let (socket, tunnel) = (&self.sockets[index], tunnel.clone());
            async move {
                match socket {
                    Some(socket) => self.serve(socket, tunnel).await,
                    None => std::future::pending().await,
                }
            }
        };
        tokio::join!(serve(0), serve(1));
    }

    async fn serve<T: Tunnel>(&self, socket: &Arc<UdpSocket>, tunnel: T) {
        let mut tasks = JoinSet::new();
        let mut buffer = vec![0; QUESTION_MAX];
        loop {
            let Ok((length, from)) = socket.recv_from(&mut buffer).await else { continue };
            while tasks.try_join_next().is_some() {}
            let question = &buffer[..length];
            if self.stop.is_cancelled() {
                if is_question(question) {
                    let _ = socket.send_to(&failure(question), from).await;
                }
                continue;
            }
            let (question, questions) = (question.to_vec(), self.questions.clone());
            let (socket, tunnel, asked) = (Arc::clone(socket), tunnel.clone(), self.asked);
            tasks.spawn(self.open.track_future(async move {
                if let Some(answer) = questions.answer(&question, asked, &tunnel).await {
                    let _ = socket.send_to(&answer, from).await;
                }
            }));
        }
    }
}

pub(super) fn is_question(message: &[u8]) -> bool {
    message.len() >= HEADER && message[2] & 0x80 == 0
}

/// Questions that are open. Those about names that nobody answers for hold up no others.
#[derive(Clone)]
pub(super) struct Questions(Arc<Crowd>);

impl Default for Questions {
    fn default() -> Self {
        Self(Crowd::new(Bounds::of_one(QUESTIONS_MAX)))
    }
}

impl Questions {
    /// What the program is sent; nothing for what is no question.
    pub(super) async fn answer<T: Tunnel>(
        &self,
        question: &[u8],
        asked: SocketAddr,
        tunnel: &T,
    ) -> Option<Vec<u8>> {
        if !is_question(question) {
            return None;
        }
        let place = self.0.enter(Owner::only(subject(question)));
        let answered = tokio::select! {
            answered = tokio::time::timeout(ANSWER_TIMEOUT, ask(question, asked, tunnel)) => {
                answered.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            }
            () = place.evicted() => Err(io::Error::other("too many questions are open")),
        };
        match answered {
            Ok(answer) => Some(fitting(answer, question)),
            Err(error) => {
                tracing::debug!(%asked, %error, "a name server gave no answer");
                Some(failure(question))
            }
        }
    }
}

/// The name that is asked about, as it stands in the question.
fn subject(question: &[u8]) -> String {
    let name = question.get(HEADER..).unwrap_or_default();
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    String::from_utf8_lossy(&name[..end]).to_ascii_lowercase()
}

async fn ask<T: Tunnel>(question: &[u8], asked: SocketAddr, tunnel: &T) -> io::Result<Vec<u8>> {
    let failed = |failure| io::Error::new(io::ErrorKind::NotConnected, failure);
    let mut stream =
        connect_through(tunnel, &asked.ip().to_string(), asked.port()).await.map_err(failed)?;
    let length = u16::try_from(question.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    stream.write_all(&[&length.to_be_bytes(), question].concat()).await?;
    stream.flush().await?;
    read_answer(&mut stream, question).await
}

/// The answer to a question, as it comes over TCP.
pub(super) async fn read_answer(
    stream: &mut (impl AsyncRead + Unpin),
    question: &[u8],
) -> io::Result<Vec<u8>> {
    let length = stream.read_u16().await?;
    let mut answer = vec![0; usize::from(length)];
    stream.read_exact(&mut answer).await?;
    if answer.len() < HEADER || answer[..2] != question[..2] {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok(answer)
}

/// The answer, or, where it is too long for UDP, that the program is to ask over TCP.
pub(super) fn fitting(answer: Vec<u8>, question: &[u8]) -> Vec<u8> {
    let has_additional = question[10..12] != [0, 0];
    let most = if has_additional { ANSWER_MAX_EDNS } else { ANSWER_MAX };
    if answer.len() <= most {
        return answer;
    }
    let mut short = answer[..HEADER].to_vec();
    short[2] |= FLAG_TRUNCATED;
    short[4..HEADER].fill(0);
    short
}

/// That the name server failed (RFC 1035 §4.1.1, RCODE 2), rather than silence.
pub(super) fn failure(question: &[u8]) -> Vec<u8> {
    let mut answer = question[..HEADER].to_vec();
    // A response, with what was asked for of recursion, and recursion available.
    answer[2] = 0x80 | (question[2] & 0x79);
    answer[3] = 0x80 | SERVFAIL;
    answer[4..HEADER].fill(0);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::{Answer, FailureCode, Request, read_request, write_answer};
    use crate::tunnel::in_memory::pipe_tunnel;

    const QUESTION: &[u8] =
        b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x00\x00\x01\x00\x01";

    /// An exit whose name server answers with this many bytes; none if it is refused.
    async fn answered(length: Option<usize>) -> Vec<u8> {
        let asked = "192.0.2.53:53".parse().unwrap();
        let (tunnel, mut streams) = pipe_tunnel();
        tokio::spawn(async move {
            let mut stream = streams.recv().await.unwrap();
            let Request::Connect(request) = read_request(&mut stream).await.unwrap() else {
                panic!("another request")
            };
            assert_eq!((request.host.as_str(), request.port), ("192.0.2.53", 53));
            let Some(length) = length else {
                let refused = Answer::Refused { code: FailureCode::Refused, message: "no".into() };
                return write_answer(&mut stream, &refused).await.unwrap();
            };
            write_answer(&mut stream, &Answer::Ready(String::new())).await.unwrap();
            let mut question = vec![0; usize::from(stream.read_u16().await.unwrap())];
            stream.read_exact(&mut question).await.unwrap();
            assert_eq!(question, QUESTION);
            let mut answer = question;
            answer[2] |= 0x80;
            answer.resize(length, 7);
            stream.write_u16(u16::try_from(length).unwrap()).await.unwrap();
            stream.write_all(&answer).await.unwrap();
        });
        Questions::default().answer(QUESTION, asked, &tunnel).await.unwrap()
    }

    #[tokio::test]
    async fn answers_come_through_a_stream() {
        let short = answered(Some(100)).await;
        assert_eq!((short.len(), &short[..3]), (100, b"\x12\x34\x81".as_slice()));
        let long = answered(Some(3000)).await;
        assert_eq!(long, b"\x12\x34\x83\x00\0\0\0\0\0\0\0\0");
    }

    #[tokio::test]
    async fn no_answer_is_said() {
        assert_eq!(answered(None).await, b"\x12\x34\x81\x82\0\0\0\0\0\0\0\0");
        let other = b"\x43\x21";
        let (tunnel, _streams) = pipe_tunnel();
        let asked = "192.0.2.53:53".parse().unwrap();
        assert_eq!(Questions::default().answer(other, asked, &tunnel).await, None);
    }

    /// A name server that accepts connections, and never answers.
    #[tokio::test(start_paused = true)]
    async fn questions_without_answers_end_and_hold_up_no_others() {
        let (questions, asked) = (Questions::default(), "192.0.2.53:53".parse().unwrap());
        let (tunnel, mut streams) = pipe_tunnel();
        let server = tokio::spawn(async move {
            let mut kept = Vec::new();
            while let Some(mut stream) = streams.recv().await {
                read_request(&mut stream).await.unwrap();
                write_answer(&mut stream, &Answer::Ready(String::new())).await.unwrap();
                kept.push(stream);
            }
        });
        let begun = tokio::time::Instant::now();
        let mut asking = JoinSet::new();
        for number in 0..QUESTIONS_MAX + 10 {
            let (questions, tunnel) = (questions.clone(), tunnel.clone());
            let mut question = QUESTION.to_vec();
            question[13] = if number == 0 { b'b' } else { b'a' };
            asking.spawn(async move { questions.answer(&question, asked, &tunnel).await });
        }
        for early in 0..10 {
            assert!(asking.join_next().await.unwrap().unwrap().is_some(), "{early}");
        }
        assert_eq!(begun.elapsed(), Duration::ZERO, "those beyond the limit give way at once");
        let told = asking.join_all().await;
        assert!(told.iter().all(Option::is_some), "programs are told that there is no answer");
        assert_eq!(begun.elapsed(), ANSWER_TIMEOUT);
        server.abort();
    }

    #[tokio::test]
    async fn after_a_stop_programs_are_told_that_there_is_no_answer() {
        let stop = CancellationToken::new();
        let names = NameServer::bind("192.0.2.53:53".parse().unwrap(), stop.clone()).unwrap();
        let port = names.ports().unwrap()[0];
        let (tunnel, mut streams) = pipe_tunnel();
        let asking = async {
            let program = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            program.connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
            stop.cancel();
            names.finished().await;
            program.send(QUESTION).await.unwrap();
            let mut answer = [0; 64];
            let length = program.recv(&mut answer).await.unwrap();
            assert_eq!(&answer[..length], b"\x12\x34\x81\x82\0\0\0\0\0\0\0\0");
        };
        tokio::select! {
            () = names.run(tunnel) => panic!("it ended"),
            () = asking => {}
        }
        assert!(streams.try_recv().is_err(), "nobody was asked");
    }
}
