//! Writers and readers that know what every byte must be.

use std::collections::BTreeMap;

use fbdt_proto::{Class, Instant, OpenError, Session, StreamError, StreamId};

use crate::violation::Violation;

/// The byte at `offset` of stream `stream` in one direction.
pub(crate) fn pattern(stream: u32, from_client: bool, offset: u64) -> u8 {
    let x = offset
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .wrapping_add(u64::from(stream) * 0x51 + u64::from(from_client));
    (x >> 56) as u8 ^ (offset >> 3) as u8
}

#[derive(Debug, Default)]
struct Writer {
    /// Bytes that the application wants to have sent in all.
    wanted: u64,
    written: u64,
    finish: bool,
    finished: bool,
    abandoned: bool,
}

#[derive(Debug, Default)]
struct Reader {
    read: u64,
    ended: bool,
}

/// One end's application: any number of streams.
#[derive(Debug)]
pub(crate) struct Application {
    client: bool,
    writers: BTreeMap<u32, Writer>,
    readers: BTreeMap<u32, Reader>,
    /// Whether it reads now.
    pub(crate) reading: bool,
    /// Bytes read on all streams.
    pub(crate) delivered: u64,
}

impl Application {
    pub(crate) const fn new(client: bool) -> Self {
        Self {
            client,
            writers: BTreeMap::new(),
            readers: BTreeMap::new(),
            reading: true,
            delivered: 0,
        }
    }

    pub(crate) fn open(
        &mut self,
        now: Instant,
        session: &mut Session,
        class: Class,
    ) -> Result<StreamId, OpenError> {
        let id = session.open_stream(now, class)?;
        self.join(id);
        Ok(id)
    }

    /// The peer opened this stream; this end writes nothing unless asked.
    pub(crate) fn join(&mut self, id: StreamId) {
        self.writers.entry(id.0).or_default();
        self.readers.entry(id.0).or_default();
    }

    pub(crate) fn want(&mut self, id: StreamId, bytes: u64) {
        if let Some(writer) = self.writers.get_mut(&id.0)
            && !writer.finish
        {
            writer.wanted += bytes;
        }
    }

    pub(crate) fn finish(&mut self, id: StreamId) {
        if let Some(writer) = self.writers.get_mut(&id.0) {
            writer.finish = true;
        }
    }

    pub(crate) fn abandon(&mut self, id: StreamId) {
        if let Some(writer) = self.writers.get_mut(&id.0) {
            writer.abandoned = true;
        }
    }

    pub(crate) fn is_abandoned(&self, id: u32) -> bool {
        self.writers.get(&id).is_some_and(|w| w.abandoned)
    }

    pub(crate) fn streams(&self) -> Vec<StreamId> {
        self.writers.keys().map(|id| StreamId(*id)).collect()
    }

    /// Bytes wanted and whether the end was announced.
    pub(crate) fn promised(&self, id: u32) -> (u64, bool) {
        self.writers.get(&id).map_or((0, false), |w| (w.wanted, w.finish))
    }

    /// Bytes read and whether the end was seen.
    pub(crate) fn received(&self, id: u32) -> (u64, bool) {
        self.readers.get(&id).map_or((0, false), |r| (r.read, r.ended))
    }

    /// Writes and reads what goes; checks every byte.
    pub(crate) fn run(
        &mut self,
        now: Instant,
        session: &mut Session,
        peer: &Self,
    ) -> Result<(), Violation> {
        for (&id, writer) in &mut self.writers {
            write(now, session, StreamId(id), self.client, writer);
        }
        if !self.reading {
            return Ok(());
        }
        for (&id, reader) in &mut self.readers {
            if reader.ended {
                continue;
            }
            loop {
                match session.read(now, StreamId(id), usize::MAX) {
                    Ok(Some(bytes)) => {
                        for (i, byte) in bytes.iter().enumerate() {
                            let offset = reader.read + i as u64;
                            if *byte != pattern(id, !self.client, offset) {
                                return Err(Violation::WrongByte { stream: id, offset });
                            }
                        }
                        reader.read += bytes.len() as u64;
                        self.delivered += bytes.len() as u64;
                    }
                    Ok(None) => {
                        reader.ended = true;
                        let (written, finish) = peer.promised(id);
                        if !finish || written != reader.read {
                            let delivered = reader.read;
                            return Err(Violation::WrongEnd { stream: id, delivered, written });
                        }
                        break;
                    }
                    Err(StreamError::Blocked) => break,
                    Err(_) => {
                        reader.ended = true;
                        break;
                    }
                }
            }
        }
        Ok(())
    }
}

fn write(now: Instant, session: &mut Session, id: StreamId, client: bool, writer: &mut Writer) {
    while writer.written < writer.wanted && !writer.abandoned {
        let size = (writer.wanted - writer.written).min(64 << 10);
        let data: Vec<u8> =
            (writer.written..writer.written + size).map(|o| pattern(id.0, client, o)).collect();
        match session.write(now, id, &data) {
            Ok(size) => writer.written += size as u64,
            Err(_) => return,
        }
    }
    if writer.finish && !writer.finished && writer.written == writer.wanted {
        writer.finished = true;
        session.finish(now, id);
    }
}
