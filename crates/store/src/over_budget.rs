//! Why a budget refuses a change.

use std::fmt;

use thiserror::Error;

/// Whose use is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetScope {
    Project,
    /// The first name behind host and port.
    Owner,
    Host,
    Total,
}

impl BudgetScope {
    pub const ALL: [Self; 4] = [Self::Project, Self::Owner, Self::Host, Self::Total];

    pub fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Owner => "owner",
            Self::Host => "host",
            Self::Total => "total",
        }
    }
}

/// A change does not fit into what may be stored.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct OverBudget {
    pub scope: BudgetScope,
    /// The project, owner or host.
    pub whose: String,
    /// Of this change.
    pub bytes: u64,
    pub bytes_per_day: u64,
    /// Until it would fit, rounded up.
    pub seconds: u64,
}

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scope, whose, bytes, bytes_per_day, seconds } = self;
        match scope {
            BudgetScope::Project => write!(f, "the project {whose}")?,
            BudgetScope::Owner => write!(f, "the owner {whose}, with all projects together,")?,
            BudgetScope::Host => write!(f, "the host {whose}, with all projects together,")?,
            BudgetScope::Total => write!(f, "this server")?,
        }
        if bytes > bytes_per_day {
            write!(
                f,
                " may store {bytes_per_day} bytes in a day, and this change alone has {bytes}: make it smaller, or"
            )?;
        } else {
            write!(
                f,
                " has stored what it may in a day ({bytes_per_day} bytes): try again in {seconds} s, or"
            )?;
        }
        write!(f, " ask the operator to raise limits.{}_bytes_per_day", scope.name())
    }
}
