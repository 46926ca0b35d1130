//! The way of one request through its redirects, and what is sent along.

use reqwest::header::HeaderValue;
use url::Url;

use super::{
    error::{FetchError, Hop, HopRefusal, RequestFailure, Wait},
    pace::{Pace, Timeouts},
};
use crate::shown::shown_url;

/// The places to which redirects may lead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redirects {
    /// Redirects may lead nowhere but to the same scheme, host and port.
    SameOrigin,
    /// Redirects may lead wherever a request may go at all.
    Guarded,
}

/// The URL that was asked for and the one that a redirect led to.
pub(crate) struct FetchRoute {
    pub(super) given: Url,
    pub(super) current: Url,
    pub(super) hop: Hop,
    /// Whether the last redirect led from https to plain http.
    pub(super) left_tls: bool,
}

impl FetchRoute {
    pub(super) fn start(given: &Url) -> Self {
        Self { given: given.clone(), current: given.clone(), hop: Hop::AsGiven, left_tls: false }
    }

    pub(super) fn follow(
        &mut self,
        location: Option<&HeaderValue>,
        redirects: Redirects,
    ) -> Result<(), FetchError> {
        let missing = || self.broken("it redirects without saying where to".into());
        let location = location.ok_or_else(missing)?;
        let target = location.to_str().ok().and_then(|text| self.current.join(text).ok());
        self.hop = Hop::Redirect;
        let led = target.ok_or(HopRefusal::NotAUrl).and_then(|target| self.lead_to(target, redirects));
        led.map_err(|refusal| self.refused(refusal))
    }

    pub(super) fn lead_to(&mut self, target: Url, redirects: Redirects) -> Result<(), HopRefusal> {
        let previous = std::mem::replace(&mut self.current, target);
        self.left_tls = previous.scheme() == "https" && self.current.scheme() == "http";
        if redirects == Redirects::SameOrigin && previous.origin() != self.current.origin() {
            return Err(HopRefusal::OtherOrigin);
        }
        Ok(())
    }

    pub(crate) fn shown(&self) -> String {
        let given = shown_url(self.given.as_str());
        if self.current == self.given {
            return format!("`{given}`");
        }
        format!("`{given}`, redirected to `{}`,", shown_url(self.current.as_str()))
    }

    pub(super) fn refused(&self, reason: HopRefusal) -> FetchError {
        FetchError::Refused { url: self.shown(), hop: self.hop, reason }
    }

    pub(super) fn timed_out(&self, wait: Wait) -> FetchError {
        FetchError::TimedOut { url: self.shown(), wait }
    }

    pub(super) fn too_slow(&self, pace: &Pace) -> FetchError {
        let Pace { bytes_per_second, window, .. } = *pace;
        FetchError::TooSlow { url: self.shown(), bytes_per_second, window }
    }

    pub(super) fn failed(&self, error: &reqwest::Error, timeouts: Timeouts) -> FetchError {
        match RequestFailure::of(error, timeouts, &self.current) {
            RequestFailure::Refused(refusal) => self.refused(refusal.into()),
            RequestFailure::TimedOut(wait) => self.timed_out(wait),
            RequestFailure::Broken(reason) => self.broken(reason),
        }
    }

    pub(super) fn broken(&self, reason: String) -> FetchError {
        FetchError::Broken { url: self.shown(), reason }
    }
}
