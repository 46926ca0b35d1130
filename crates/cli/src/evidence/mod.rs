//! What a server shows, and what of it is proven: releases, signers, logs and files.

pub(crate) mod carried;
pub(crate) mod comparison;
pub(crate) mod download;
pub(crate) mod freshness;
pub(crate) mod log_memory;
pub(crate) mod log_policy;
pub(crate) mod proof;
pub(crate) mod release;
pub(crate) mod report;
pub(crate) mod repository_copy;
pub(crate) mod review;
