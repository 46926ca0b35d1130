//! The API's description: what each endpoint takes and answers. `Reference` is the OpenAPI 3.1 document; `web::docs`
//! shows the same to people. The schemas come from the types that are sent and received: most are in `api`, some in `core`.

pub mod catalogue;
pub mod changes;
mod endpoint;
pub mod events;
pub mod journal;
pub mod log;
pub mod pages;
pub mod parameters;
pub mod reads;
mod row;
mod schemas;
pub mod service;
pub mod witness;
mod write;

use countersign_core::values::digest::Sha256;

pub use self::{
    endpoint::{
        Content, ContentSchema, DescribedAnswer, Endpoint, EndpointAccess, Header, Parameter, ParameterPlace,
        Section,
    },
    row::{Row, Verb},
    schemas::{SchemaField, Type},
    write::{ABOUT, AUTHENTICATION, AuthHeader},
};

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

    /// For `ETag`.
    pub fn tag(&self) -> &str {
        &self.tag
    }
}
