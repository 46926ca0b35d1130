//! How long to wait before the next try.

use std::time::Duration;

use ring::rand::{SecureRandom as _, SystemRandom};

/// The shortest and the longest wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    pub min: Duration,
    pub max: Duration,
}

impl Default for Retries {
    fn default() -> Self {
        Self { min: Duration::from_secs(1), max: Duration::from_secs(5 * 60) }
    }
}

/// The waits between tries, each about twice as long as the one before.
#[derive(Debug)]
pub struct Backoff {
    retries: Retries,
    longest: Duration,
}

impl Backoff {
    pub fn new(retries: Retries) -> Self {
        Self { retries, longest: retries.min }
    }

    /// `chance`, from 0 to 1, spreads those that failed together. `asked` is the other side's wish. It can make the
    /// wait longer, up to the operator's maximum.
    pub fn next_wait(&mut self, chance: f64, asked: Option<Duration>) -> Duration {
        let Retries { min, max } = self.retries;
        self.longest = self.longest.saturating_mul(2).min(max);
        let shortest = (self.longest / 2).max(min);
        let spread = self.longest.saturating_sub(shortest).mul_f64(chance.clamp(0.0, 1.0));
        (shortest + spread).max(asked.unwrap_or_default()).min(max)
    }
}

/// Between 0 and 1.
pub(crate) fn chance() -> f64 {
    let mut bytes = [0; 4];
    // Without it, those that failed together retry together, which does no harm.
    let _ = SystemRandom::new().fill(&mut bytes);
    f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX)
}
