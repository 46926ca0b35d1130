//! The routes of the specification. What each takes and answers is in `tests/scenarios`; here is what needs more than a
//! line.

mod checksums;
mod histories;
mod lists;
mod reference;
mod registration;
