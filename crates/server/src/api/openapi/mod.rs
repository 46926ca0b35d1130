//! How a route is described: what it takes and answers. `Reference` is the OpenAPI 3.1 document; `web::docs` shows the
//! same to people, and a test writes docs/api.md from it. Each description stands beside its handler, in `routes` and `web`.
//! The schemas come from the types that are sent and received: most are in `api`, some in `core`.

pub(crate) mod endpoint;
pub(crate) mod parameters;
pub(crate) mod schemas;
pub(crate) mod write;

use countersign_core::values::digest::Sha256;

pub use crate::api::openapi::write::{ABOUT, AUTHENTICATION, AuthHeader};
pub use crate::api::openapi::{endpoint::*, parameters::*, schemas::SchemaField, schemas::Type};

/// Every endpoint, and the document that describes them.
#[derive(Debug)]
pub struct Reference {
    rows: Vec<Row>,
    bytes: Vec<u8>,
    tag: String,
}

impl Reference {
    pub fn of(rows: Vec<Row>) -> Self {
        let bytes = write::document(&rows).to_string().into_bytes();
        let tag = format!("\"{}\"", Sha256::of(&bytes));
        Self { rows, bytes, tag }
    }

    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The value of the `ETag` header.
    pub fn tag(&self) -> &str {
        &self.tag
    }
}
