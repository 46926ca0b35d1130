//! How a route is described: what it takes and answers. `Reference` is the OpenAPI 3.1 document; `web::docs` shows the
//! same to people, and a test writes docs/api.md from it. Each description stands beside its handler, in `routes` and
//! `web`. The schemas come from the types that are sent and received: most are in `api`, some in `core`.

pub(crate) mod endpoint;
pub(crate) mod schemas;

use countersign_core::rules::auth::{MAX_AGE_MINUTES, MAX_REQUEST_LEAD_SECONDS};
use countersign_core::values::{digest::Sha256, wire};
use serde_json::{Map, Value, json};

use crate::api::openapi::schemas::{SCHEMAS_REF, Schemas};
pub use crate::api::openapi::{endpoint::*, schemas::SchemaField, schemas::Type};

/// Every endpoint, and the document that describes them.
#[derive(Debug)]
pub struct Reference {
    pub rows: Vec<Row>,
    pub bytes: Vec<u8>,
    /// The value of the `ETag` header.
    pub tag: String,
}

impl Reference {
    pub fn of(rows: Vec<Row>) -> Self {
        let bytes = document(&rows).to_string().into_bytes();
        let tag = format!("\"{}\"", Sha256::of(&bytes));
        Self { rows, bytes, tag }
    }
}

// The OpenAPI 3.1 document.

/// What holds for every endpoint.
pub const ABOUT: &str = "Countersign collects signatures on software releases, and publishes everything that you \
need to check them. The server holds no signing key.\n\n\
Every GET route also answers HEAD. A method that is not listed gets 405 with `Allow`, an unknown route 404. Every \
route answers 400 to an invalid HTTP request, or to one without exactly one `Host`, and 431 to a head that is too \
long. Every error has an `X-Request-Id`, and a JSON body with `error`, a text for people, and `code`, a name for programs \
that does not change.\n\n\
The server reads every body as JSON, whatever its `Content-Type`. It ignores unknown fields and refuses repeated ones.";

/// How a client proves who it is.
pub const AUTHENTICATION: &str = "Four headers, each exactly once. Join timestamp, nonce and the raw request body \
(or nothing) with `##`, take the SHA-512 digest of that string, and sign its 64 raw bytes with Ed25519. The server \
refuses a request from 6 minutes after its timestamp, and one whose timestamp is more than 10 seconds ahead.";
const _: () = assert!(MAX_AGE_MINUTES + 1 == 6 && MAX_REQUEST_LEAD_SECONDS == 10, "the text says so");

#[derive(Debug)]
pub struct AuthHeader {
    scheme: &'static str,
    pub name: &'static str,
    pub about: &'static str,
}

impl AuthHeader {
    pub const ALL: [Self; 4] = [
        Self {
            scheme: "timestamp",
            name: wire::HEADER_TIMESTAMP,
            about: "Now, as RFC 3339 in canonical form: the offset is `+00:00`, a fraction has no zeros at its end.",
        },
        Self { scheme: "nonce", name: wire::HEADER_NONCE, about: "A random UUID of version 4, used once." },
        Self {
            scheme: "signature",
            name: wire::HEADER_SIGNATURE,
            about: "The signature, unpadded base64 of its 64 bytes.",
        },
        Self {
            scheme: "public_key",
            name: wire::HEADER_PUBLIC_KEY,
            about: "The public key: `svc-pub:` and the unpadded base64 of its 32 bytes.",
        },
    ];

    /// The value of this header in the example of a request without a body.
    pub fn example(&self) -> String {
        find_example(&format!("header.{}", self.scheme)).as_str().unwrap_or_default().to_owned()
    }
}

fn document(rows: &[Row]) -> Value {
    let mut paths = Map::new();
    for row in rows {
        let methods = paths.entry(row.path.clone()).or_insert_with(|| json!({}));
        methods[row.method.to_ascii_lowercase()] = operation(&row.endpoint);
    }
    let tags = Section::ALL.map(|section| json!({ "name": section.title(), "description": section.about() }));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Countersign",
            "version": env!("CARGO_PKG_VERSION"),
            "description": format!("{ABOUT}\n\n**Authentication.** {AUTHENTICATION}"),
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "tags": tags,
        "paths": paths,
        "components": { "schemas": schemas(rows), "securitySchemes": security_schemes() },
    })
}

fn operation(endpoint: &Endpoint) -> Value {
    let responses: Map<_, _> =
        endpoint.answers.iter().map(|answer| (answer.status.to_string(), response(answer))).collect();
    let mut operation = json!({
        "operationId": endpoint.id,
        "tags": [endpoint.section.title()],
        "summary": endpoint.summary,
        "description": endpoint.about,
        "security": security(endpoint.access),
        "responses": responses,
    });
    if !endpoint.parameters.is_empty() {
        operation["parameters"] = json!(endpoint.parameters);
    }
    if let Some(body) = &endpoint.body {
        operation["requestBody"] = json!({ "required": true, "content": Map::from_iter([media(body)]) });
    }
    operation
}

fn security(access: EndpointAccess) -> Value {
    let all: Map<_, _> = AuthHeader::ALL.iter().map(|header| (header.scheme.to_owned(), json!([]))).collect();
    match access {
        EndpointAccess::Open => json!([]),
        EndpointAccess::Optional => json!([{}, all]),
        EndpointAccess::Signed => json!([all]),
    }
}

fn security_schemes() -> Value {
    let scheme = |header: &AuthHeader| {
        let scheme =
            json!({ "type": "apiKey", "in": "header", "name": header.name, "description": header.about });
        (header.scheme.to_owned(), scheme)
    };
    Value::Object(AuthHeader::ALL.iter().map(scheme).collect())
}

fn response(answer: &DescribedAnswer) -> Value {
    let header = |header: &Header| {
        let header_object =
            json!({ "description": header.about, "required": true, "schema": { "type": "string" } });
        (header.name.to_owned(), header_object)
    };
    let headers: Map<_, _> = answer.headers.iter().map(header).collect();
    let mut response = json!({ "description": answer.about, "headers": headers });
    if !answer.contents.is_empty() {
        response["content"] = Value::Object(answer.contents.iter().map(media).collect());
    }
    response
}

fn media(content: &Content) -> (String, Value) {
    let schema = match &content.schema {
        ContentSchema::Type(of) => json!({ "$ref": format!("{SCHEMAS_REF}{}", of.name()) }),
        ContentSchema::Inline(schema) => schema.clone(),
    };
    let mut media = json!({ "schema": schema });
    if !content.examples.is_empty() {
        let example = |(name, value): &(&str, Value)| ((*name).to_owned(), json!({ "value": value }));
        media["examples"] = Value::Object(content.examples.iter().map(example).collect());
    }
    (content.media_type.to_owned(), media)
}

fn schemas(rows: &[Row]) -> Schemas {
    let contents = rows.iter().flat_map(|row| {
        let answers = row.endpoint.answers.iter().flat_map(|answer| &answer.contents);
        answers.chain(&row.endpoint.body)
    });
    let types = contents.filter_map(|content| match content.schema {
        ContentSchema::Type(of) => Some(of),
        ContentSchema::Inline(_) => None,
    });
    types.flat_map(|of| of.schemas()).collect()
}
