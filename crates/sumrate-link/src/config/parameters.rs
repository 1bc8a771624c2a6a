//! Parameters of one direction, and changes of them. The same keys serve the file, schedules and the control socket.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Jitter, QueueLimit, RateSetting};
use crate::time::{Nanos, from_millis, to_millis};
use crate::trace;

/// Queue of a direction that has a rate but no queue setting: 20 ms.
pub const DEFAULT_QUEUE: QueueLimit = QueueLimit::Time(20_000_000);
/// Largest token bucket, bytes.
const MOST_BURST: u64 = 1_000_000_000;

/// Why a parameter was refused: the key and what to write instead.
#[derive(Debug, thiserror::Error)]
#[error("{key}: {problem}")]
pub struct ParameterError {
    /// The key.
    pub key: &'static str,
    /// What is wrong and what would be right.
    pub problem: String,
}

/// Parameters in force in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    /// Serialisation rate, IP bytes.
    pub rate: RateSetting,
    /// Token bucket, bytes: what an idle line saves up and lets out without spacing.
    pub burst: u64,
    /// Segments beyond the token bucket are dropped; nothing is queued or spaced.
    pub policer: bool,
    /// One-way propagation delay.
    pub delay: Nanos,
    /// Variation of the delay.
    pub jitter: Jitter,
    /// Packets may overtake each other; else each one waits for those before it.
    pub reorder: bool,
    /// Packets leave the link together, at multiples of this time; 0: each on its own.
    pub gather: Nanos,
    /// Bound of the queue.
    pub queue: QueueLimit,
    /// Share of segments lost, 0 to 1.
    pub loss: f64,
    /// Mean length of a loss burst in segments; 1: independent.
    pub loss_burst: f64,
    /// Whatever leaves the queue is dropped.
    pub blackout: bool,
    /// Nothing leaves the queue.
    pub hold: bool,
}

impl Default for Parameters {
    fn default() -> Self {
        Parameters {
            rate: RateSetting::Unlimited,
            burst: 0,
            policer: false,
            delay: 0,
            jitter: Jitter::NONE,
            reorder: false,
            gather: 0,
            queue: DEFAULT_QUEUE,
            loss: 0.0,
            loss_burst: 1.0,
            blackout: false,
            hold: false,
        }
    }
}

impl Parameters {
    /// Takes over what `update` sets.
    pub fn apply(&mut self, update: &Update) {
        fn set<T: Clone>(target: &mut T, value: &Option<T>) {
            if let Some(value) = value {
                target.clone_from(value);
            }
        }
        set(&mut self.rate, &update.rate);
        set(&mut self.burst, &update.burst);
        set(&mut self.policer, &update.policer);
        set(&mut self.delay, &update.delay);
        set(&mut self.jitter, &update.jitter);
        set(&mut self.reorder, &update.reorder);
        set(&mut self.gather, &update.gather);
        set(&mut self.queue, &update.queue);
        set(&mut self.loss, &update.loss);
        set(&mut self.loss_burst, &update.loss_burst);
        set(&mut self.blackout, &update.blackout);
        set(&mut self.hold, &update.hold);
    }

    /// The parameters as people write them.
    pub fn describe(&self) -> Description {
        Description {
            rate_mbps: self.rate.nominal().map(|rate| rate as f64 / 1e6),
            trace: matches!(self.rate, RateSetting::Trace(_)),
            burst_bytes: self.burst,
            policer: self.policer,
            delay_ms: to_millis(self.delay),
            jitter_ms: match self.jitter {
                Jitter::Uniform(most) => to_millis(most),
                Jitter::Normal(_) => 0.0,
            },
            jitter_sd_ms: match self.jitter {
                Jitter::Uniform(_) => 0.0,
                Jitter::Normal(deviation) => to_millis(deviation),
            },
            reorder: self.reorder,
            gather_ms: to_millis(self.gather),
            queue_ms: match self.queue {
                QueueLimit::Time(time) => Some(to_millis(time)),
                QueueLimit::Packets(_) => None,
            },
            queue_packets: match self.queue {
                QueueLimit::Time(_) => None,
                QueueLimit::Packets(packets) => Some(packets),
            },
            loss: self.loss,
            loss_burst: self.loss_burst,
            blackout: self.blackout,
            hold: self.hold,
        }
    }
}

/// Parameters in the units of the configuration, for JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Description {
    /// Mbit/s; the mean of a trace; absent: unlimited.
    pub rate_mbps: Option<f64>,
    /// Whether the rate follows a trace.
    pub trace: bool,
    /// Token bucket.
    pub burst_bytes: u64,
    /// Dropping what exceeds the token bucket.
    pub policer: bool,
    /// One-way delay.
    pub delay_ms: f64,
    /// Most extra delay.
    pub jitter_ms: f64,
    /// Standard deviation of the delay.
    pub jitter_sd_ms: f64,
    /// Whether packets may overtake each other.
    pub reorder: bool,
    /// Packets leave together at multiples of this time.
    pub gather_ms: f64,
    /// Queue bound in time.
    pub queue_ms: Option<f64>,
    /// Queue bound in segments.
    pub queue_packets: Option<u64>,
    /// Share lost.
    pub loss: f64,
    /// Mean burst.
    pub loss_burst: f64,
    /// Dropping everything.
    pub blackout: bool,
    /// Holding everything.
    pub hold: bool,
}

/// A checked change: what is `Some` is set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Update {
    /// See [`Parameters`].
    pub rate: Option<RateSetting>,
    /// See [`Parameters`].
    pub burst: Option<u64>,
    /// See [`Parameters`].
    pub policer: Option<bool>,
    /// See [`Parameters`].
    pub delay: Option<Nanos>,
    /// See [`Parameters`].
    pub jitter: Option<Jitter>,
    /// See [`Parameters`].
    pub reorder: Option<bool>,
    /// See [`Parameters`].
    pub gather: Option<Nanos>,
    /// See [`Parameters`].
    pub queue: Option<QueueLimit>,
    /// See [`Parameters`].
    pub loss: Option<f64>,
    /// See [`Parameters`].
    pub loss_burst: Option<f64>,
    /// See [`Parameters`].
    pub blackout: Option<bool>,
    /// See [`Parameters`].
    pub hold: Option<bool>,
}

/// A rate as written: a number, or the word `unlimited`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WrittenRate {
    /// Mbit/s.
    Mbps(f64),
    /// Must be `unlimited`.
    Word(String),
}

/// A change as written in TOML, JSON or on the command line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WrittenUpdate {
    /// Mbit/s of IP bytes, or `unlimited`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_mbps: Option<WrittenRate>,
    /// Trace file, relative to the configuration file (over the control socket: to the emulator's directory).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// Token bucket in bytes: filled at the rate while the line is idle.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub burst_bytes: Option<u64>,
    /// Drop what exceeds the token bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policer: Option<bool>,
    /// One-way delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<f64>,
    /// Most extra delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_ms: Option<f64>,
    /// Standard deviation of a normal delay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter_sd_ms: Option<f64>,
    /// Packets may overtake each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reorder: Option<bool>,
    /// Packets leave together at multiples of this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gather_ms: Option<f64>,
    /// Queue bound in time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_ms: Option<f64>,
    /// Queue bound in segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_packets: Option<u64>,
    /// Share of segments lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,
    /// Mean burst in segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_burst: Option<f64>,
    /// Drop everything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blackout: Option<bool>,
    /// Keep everything waiting.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<bool>,
}

impl WrittenUpdate {
    /// What `over` sets, else what `self` sets.
    pub fn overlaid(&self, over: &WrittenUpdate) -> WrittenUpdate {
        let mut result = over.clone();
        // A rate and a trace replace each other; so do the two bounds of the queue and the two jitters.
        if over.rate_mbps.is_none() && over.trace.is_none() {
            result.rate_mbps.clone_from(&self.rate_mbps);
            result.trace.clone_from(&self.trace);
        }
        if over.queue_ms.is_none() && over.queue_packets.is_none() {
            result.queue_ms = self.queue_ms;
            result.queue_packets = self.queue_packets;
        }
        if over.jitter_ms.is_none() && over.jitter_sd_ms.is_none() {
            result.jitter_ms = self.jitter_ms;
            result.jitter_sd_ms = self.jitter_sd_ms;
        }
        result.burst_bytes = over.burst_bytes.or(self.burst_bytes);
        result.policer = over.policer.or(self.policer);
        result.delay_ms = over.delay_ms.or(self.delay_ms);
        result.reorder = over.reorder.or(self.reorder);
        result.gather_ms = over.gather_ms.or(self.gather_ms);
        result.loss = over.loss.or(self.loss);
        result.loss_burst = over.loss_burst.or(self.loss_burst);
        result.blackout = over.blackout.or(self.blackout);
        result.hold = over.hold.or(self.hold);
        result
    }

    /// Checks the values; traces are read relative to `directory`.
    pub fn check(&self, directory: &Path) -> Result<Update, ParameterError> {
        Ok(Update {
            rate: self.check_rate(directory)?,
            burst: self.check_burst()?,
            policer: self.policer,
            delay: milliseconds("delay_ms", self.delay_ms)?,
            jitter: self.check_jitter()?,
            reorder: self.reorder,
            gather: milliseconds("gather_ms", self.gather_ms)?,
            queue: self.check_queue()?,
            loss: within("loss", self.loss, 0.0, 1.0)?,
            loss_burst: within("loss_burst", self.loss_burst, 1.0, 1e6)?,
            blackout: self.blackout,
            hold: self.hold,
        })
    }

    fn check_rate(&self, directory: &Path) -> Result<Option<RateSetting>, ParameterError> {
        if self.rate_mbps.is_some() && self.trace.is_some() {
            return refuse("trace", "a direction has rate_mbps or a trace, not both".into());
        }
        if let Some(file) = &self.trace {
            let trace = trace::load(&directory.join(file))
                .map_err(|error| ParameterError { key: "trace", problem: error.to_string() })?;
            return Ok(Some(RateSetting::Trace(Arc::new(trace))));
        }
        match &self.rate_mbps {
            None => Ok(None),
            Some(WrittenRate::Word(word)) if word == "unlimited" => {
                Ok(Some(RateSetting::Unlimited))
            }
            Some(WrittenRate::Mbps(rate)) if rate.is_finite() && (1e-3..=1e6).contains(rate) => {
                Ok(Some(RateSetting::Constant(trace::bits_per_second(*rate))))
            }
            Some(other) => refuse(
                "rate_mbps",
                format!(
                    "must be 0.001 to 1000000 or \"unlimited\", not {other:?}; to stop a link use blackout or hold"
                ),
            ),
        }
    }

    fn check_burst(&self) -> Result<Option<u64>, ParameterError> {
        match self.burst_bytes {
            Some(bytes) if bytes > MOST_BURST => {
                refuse("burst_bytes", format!("must be 0 to {MOST_BURST}, not {bytes}"))
            }
            bytes => Ok(bytes),
        }
    }

    fn check_jitter(&self) -> Result<Option<Jitter>, ParameterError> {
        if self.jitter_ms.is_some() && self.jitter_sd_ms.is_some() {
            return refuse(
                "jitter_sd_ms",
                "a direction has jitter_ms or jitter_sd_ms, not both".into(),
            );
        }
        let uniform = milliseconds("jitter_ms", self.jitter_ms)?.map(Jitter::Uniform);
        Ok(uniform.or(milliseconds("jitter_sd_ms", self.jitter_sd_ms)?.map(Jitter::Normal)))
    }

    fn check_queue(&self) -> Result<Option<QueueLimit>, ParameterError> {
        match (self.queue_ms, self.queue_packets) {
            (None, None) => Ok(None),
            (Some(_), Some(_)) => {
                refuse("queue_packets", "a queue has queue_ms or queue_packets, not both".into())
            }
            (Some(_), None) => Ok(milliseconds("queue_ms", self.queue_ms)?.map(QueueLimit::Time)),
            (None, Some(0)) => refuse("queue_packets", "must be at least 1".into()),
            (None, Some(packets)) => Ok(Some(QueueLimit::Packets(packets))),
        }
    }
}

/// Checks what only shows when a change meets the parameters in force; `mtu` is of the largest packet, bytes.
pub fn check_together(parameters: &Parameters, mtu: u32) -> Result<(), ParameterError> {
    if parameters.policer && parameters.burst < u64::from(mtu) {
        return refuse(
            "policer",
            format!(
                "needs burst_bytes of at least the mtu, {mtu}, not {}: larger packets would never pass",
                parameters.burst
            ),
        );
    }
    let (loss, burst) = (parameters.loss, parameters.loss_burst);
    if burst > 1.0 && loss < 1.0 && loss / (1.0 - loss) > burst {
        return refuse(
            "loss_burst",
            format!(
                "a loss of {loss} needs a mean burst of at least {:.2}, not {burst}",
                loss / (1.0 - loss)
            ),
        );
    }
    Ok(())
}

fn refuse<T>(key: &'static str, problem: String) -> Result<T, ParameterError> {
    Err(ParameterError { key, problem })
}

fn milliseconds(key: &'static str, value: Option<f64>) -> Result<Option<Nanos>, ParameterError> {
    Ok(within(key, value, 0.0, 3.6e6)?.map(from_millis))
}

fn within(
    key: &'static str,
    value: Option<f64>,
    low: f64,
    high: f64,
) -> Result<Option<f64>, ParameterError> {
    match value {
        Some(value) if !(low..=high).contains(&value) => {
            refuse(key, format!("must be {low} to {high}, not {value}"))
        }
        _ => Ok(value),
    }
}
