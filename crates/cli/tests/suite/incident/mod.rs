//! Stolen and lost keys: what they touched, what to do about it, and what a team can foresee (D140–D146).

mod report;
