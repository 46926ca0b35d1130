mod failures;
mod faults;
mod missing;
mod recent_failure;
