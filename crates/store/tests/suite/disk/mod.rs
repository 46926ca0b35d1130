mod failures;
mod faults;
mod missing;
mod orphans;
mod recent_failure;
