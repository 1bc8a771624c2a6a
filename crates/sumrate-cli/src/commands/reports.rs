//! Caches the report of a session's paths for 100 ms.

use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::exit::Places;
use crate::service::{ServiceError, encode_report};
use crate::status::FarReport;

/// A report that is younger is given again.
const LEAST_AGE: Duration = Duration::from_millis(100);

/// The reports of one session. One at a time is made.
#[derive(Default)]
pub(super) struct Reports(Mutex<Option<(Instant, Bytes)>>);

impl Reports {
    /// The newest report, encoded for the stream. `make` is called at most ten times a second, and at
    /// most as often as the credential's sessions may have reports together.
    ///
    /// # Errors
    /// It is too long.
    pub(super) async fn newest(
        &self,
        credential: &Places,
        make: impl FnOnce() -> FarReport,
    ) -> Result<Bytes, ServiceError> {
        let mut last = self.0.lock().await;
        match &*last {
            Some((at, report)) if at.elapsed() < LEAST_AGE => return Ok(report.clone()),
            Some((_, report)) if credential.reports.check().is_err() => return Ok(report.clone()),
            Some(_) => {}
            None => credential.reports.until_ready().await,
        }
        let report = Bytes::from(encode_report(&make())?);
        *last = Some((Instant::now(), report.clone()));
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_report_is_made_ten_times_a_second_at_most() {
        let (reports, places, mut made) = (Reports::default(), Places::default(), 0);
        for round in 1..=5 {
            for _ in 0..1000 {
                let make = || {
                    made += 1;
                    FarReport::default()
                };
                let report = reports.newest(&places, make).await.unwrap();
                assert_eq!(&report[4..], br#"{"paths":{}}"#);
            }
            assert_eq!(made, round);
            tokio::time::advance(LEAST_AGE).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn sessions_of_a_credential_share_its_reports() {
        let places = Places::default();
        // Nothing is left of what a second allows.
        while places.reports.check().is_ok() {}
        let old = Bytes::from_static(b"old");
        let reports = Reports(Mutex::new(Some((Instant::now(), old.clone()))));
        tokio::time::advance(LEAST_AGE).await;
        while places.reports.check().is_ok() {}
        let made = reports.newest(&places, || unreachable!("a report is made")).await;
        assert_eq!(made.unwrap(), old);
    }
}
