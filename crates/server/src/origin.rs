//! Where a request came from.

use std::sync::Arc;

use crate::{limits::MeteredClient, patience::Patience};

/// What handlers can know about where a request came from.
#[derive(Debug, Clone)]
pub struct RequestOrigin {
    pub(crate) client: Option<MeteredClient>,
    pub(crate) patience: Arc<Patience>,
}
