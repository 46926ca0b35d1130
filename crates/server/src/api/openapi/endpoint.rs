//! What the reference says about one endpoint. Both the OpenAPI document and the page for people come from it.

use std::sync::LazyLock;

use countersign_api::answers::ErrorResponse;
use countersign_core::values::{bounds::KEPT_REQUEST_BYTES, shown::shown_bytes};
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::http::{blocks::BlockedThing, blocks::ChangeBlocked, error::ApiError};
use crate::limits::{Limit, Limited};
use crate::{api::openapi::schemas::Type, follow::mirror::state::NotTheOrigin, metrics::PAGE};

const TOO_MANY_REQUESTS: u16 = 429;
pub const JSON: &str = "application/json";
pub const HTML: &str = "text/html";

/// A route, as the reference shows it.
#[derive(Debug, Clone)]
pub struct Row {
    /// `GET` or `POST`. Every GET is also a HEAD.
    pub method: &'static str,
    /// The path of the route, in which `{path}` stands for the rest.
    pub path: String,
    pub endpoint: Endpoint,
}

#[derive(Debug, Clone)]
pub struct Endpoint {
    pub id: &'static str,
    /// The name under which metrics count its requests.
    pub counted_as: &'static str,
    pub section: Section,
    pub summary: &'static str,
    /// Paragraphs with empty lines between them. Text in backticks is code.
    pub about: String,
    pub access: EndpointAccess,
    pub parameters: Vec<Parameter>,
    pub body: Option<Content>,
    /// Sorted by status.
    pub answers: Vec<DescribedAnswer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndpointAccess {
    Open,
    /// Authentication headers are optional.
    Optional,
    Signed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Section {
    Changing,
    Signing,
    Reading,
    Watching,
    Pages,
}

#[derive(Debug, Clone)]
pub struct Parameter {
    pub name: &'static str,
    pub place: ParameterPlace,
    pub about: &'static str,
    pub schema: Value,
    pub example: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterPlace {
    /// A part of the path. It is always required; the others are optional.
    Path,
    Query,
    Header,
}

#[derive(Debug, Clone)]
pub struct DescribedAnswer {
    pub status: u16,
    pub about: String,
    pub headers: Vec<Header>,
    /// One for each form that the client can ask for; empty if the answer has no body.
    pub contents: Vec<Content>,
}

#[derive(Debug, Clone, Copy)]
pub struct Header {
    pub name: &'static str,
    pub about: &'static str,
}

#[derive(Debug, Clone)]
pub struct Content {
    pub media_type: &'static str,
    pub schema: ContentSchema,
    /// The examples, each with a name of its own.
    pub examples: Vec<(&'static str, Value)>,
}

#[derive(Debug, Clone, Copy)]
pub enum ContentSchema {
    Type(Type),
    /// A JSON object with any fields.
    Object,
    Text,
    Bytes,
}

impl ContentSchema {
    pub fn of<T: ToSchema>() -> Self {
        Self::Type(Type::of::<T>())
    }
}

impl Section {
    pub const ALL: [Self; 5] = [Self::Changing, Self::Signing, Self::Reading, Self::Watching, Self::Pages];

    pub fn title(self) -> &'static str {
        self.texts().0
    }

    /// The name of the group in the address of its page.
    pub fn slug(self) -> &'static str {
        self.texts().1
    }

    pub fn about(self) -> &'static str {
        self.texts().2
    }

    /// The title of the group, its name in addresses, and what it is about.
    fn texts(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::Changing => (
                "Projects and releases",
                "projects",
                "Who signs for a project, and which releases there are.",
            ),
            Self::Signing => ("Signing", "signing", "What waits for signatures, and how to submit them."),
            Self::Reading => {
                ("Reading and checking", "reading", "Everything that you need to check a release. Public.")
            }
            Self::Watching => ("The service", "service", "Is the server there, and what does it offer?"),
            Self::Pages => ("Pages", "pages", "For people, in a browser."),
        }
    }
}

impl Endpoint {
    /// The prose follows with [`Endpoint::about`].
    pub fn new(id: &'static str, section: Section, summary: &'static str) -> Self {
        Self {
            id,
            counted_as: if section == Section::Pages { PAGE } else { id },
            section,
            summary,
            about: String::new(),
            access: EndpointAccess::Open,
            parameters: Vec::new(),
            body: None,
            answers: Vec::new(),
        }
    }

    pub fn counted_as(mut self, name: &'static str) -> Self {
        self.counted_as = name;
        self
    }

    /// Paragraphs with empty lines between them. Text in backticks is code.
    pub fn about(mut self, text: impl Into<String>) -> Self {
        self.about = text.into();
        self
    }

    pub fn takes(mut self, parameter: Parameter) -> Self {
        self.parameters.push(parameter);
        self
    }

    /// The repository keeps the request as a proof, which bounds its body.
    pub fn is_kept(mut self) -> Self {
        self.about += &format!(" The body has at most {}.", shown_bytes(KEPT_REQUEST_BYTES));
        self
    }

    pub fn with_body<T: ToSchema>(self, examples: &[(&'static str, &str)]) -> Self {
        self.with_raw_body(Content::of::<T>(examples))
    }

    pub fn with_raw_body(mut self, body: Content) -> Self {
        self.body = Some(body);
        self
    }

    pub fn answers(mut self, answer: DescribedAnswer) -> Self {
        let place = self.answers.partition_point(|other| other.status <= answer.status);
        self.answers.insert(place, answer);
        self
    }

    /// Another form of an answer.
    pub fn with_content(mut self, status: u16, content: Content) -> Self {
        if let Some(answer) = self.answers.iter_mut().find(|answer| answer.status == status) {
            answer.contents.push(content);
        }
        self
    }

    pub fn answers_with<T: ToSchema>(
        self,
        status: u16,
        about: &str,
        examples: &[(&'static str, &str)],
    ) -> Self {
        self.answers(DescribedAnswer::new(status, about).with_content(Content::of::<T>(examples)))
    }

    /// An error that `core` returns, by the name of its example.
    pub fn refuses(self, status: u16, about: &str, example: &str) -> Self {
        self.answers(DescribedAnswer::error(status, about, find_example(example)))
    }

    /// An error that the server itself makes.
    pub fn fails(self, about: &str, error: impl Into<ApiError>) -> Self {
        let error = error.into();
        let example = json!({ "error": error.message, "code": error.code });
        let mut answer = DescribedAnswer::error(error.code.status(), about, example);
        if error.retry_after.is_some() {
            answer = answer.with_headers([RETRY_AFTER]);
        }
        self.answers(answer)
    }

    /// Adds the refusal of too many requests, which every endpoint has except health checks.
    pub fn limited(self) -> Self {
        let limited = Limited { limit: Limit::Address, seconds: 1 };
        self.fails("too many requests from this address, or of this key; the message says which", limited)
    }

    pub fn is_limited(&self) -> bool {
        self.answers.iter().any(|answer| answer.status == TOO_MANY_REQUESTS)
    }

    pub fn can_fail(self, about: &str) -> Self {
        let about = format!("the server failed{about}; the message never names a path on its disk");
        self.fails(&about, ApiError::PANICKED)
    }

    /// Adds the refusal of a blocked change, for changes that have no other 403.
    pub fn can_be_blocked(self) -> Self {
        let blocked = ChangeBlocked(BlockedThing::Host("dl.example.org".to_owned()));
        let about = "the operator has blocked the key, the host or the project; or this is a mirror";
        self.fails(about, blocked)
    }

    /// Adds the refusal of a mirror, for signed questions that have no other 403.
    pub fn can_be_elsewhere(self) -> Self {
        let origin = "https://sign.example.org".to_owned();
        self.fails("this is a mirror; the message names the origin", NotTheOrigin { origin })
    }

    /// Adds the refusal of a busy server, for large answers that wait for room.
    pub fn can_be_busy(self) -> Self {
        self.fails("too many large answers are on their way; try again", ApiError::BUSY)
    }

    /// What every endpoint that needs a signature can answer before it reads the request.
    pub fn signed(mut self) -> Self {
        self.access = EndpointAccess::Signed;
        self.refuses(401, "authentication headers are missing or invalid, or the nonce was used", "error.401")
            .fails("the body did not arrive within 30 seconds", ApiError::TOO_SLOW)
            .fails("the body is too large", ApiError::too_large(1_048_576))
            .fails("too many requests wait; try again", ApiError::BUSY)
            .fails("the server's disk is full", ApiError::DISK_FULL)
            .limited()
    }

    /// Browsers get errors as a page, except those from before the server reads the request.
    pub fn with_error_pages(mut self) -> Self {
        for answer in self.answers.iter_mut().filter(|answer| answer.status >= 400 && answer.status != 429) {
            answer.contents.push(Content::text(HTML));
        }
        self
    }

    pub fn optionally_signed(mut self) -> Self {
        self.access = EndpointAccess::Optional;
        self
    }
}

impl DescribedAnswer {
    pub fn new(status: u16, about: &str) -> Self {
        Self { status, about: about.to_owned(), headers: vec![REQUEST_ID], contents: Vec::new() }
    }

    pub fn not_modified() -> Self {
        Self::new(304, "your copy is still current").with_headers([ETAG, CACHE_CONTROL])
    }

    pub fn error(status: u16, about: &str, example: Value) -> Self {
        let schema = ContentSchema::of::<ErrorResponse>();
        Self::new(status, about).with_content(Content {
            media_type: JSON,
            schema,
            examples: vec![("error", example)],
        })
    }

    pub fn with_content(mut self, content: Content) -> Self {
        self.contents.push(content);
        self
    }

    pub fn with_headers<const N: usize>(mut self, headers: [Header; N]) -> Self {
        self.headers.extend(headers);
        self
    }
}

impl Content {
    /// Examples by name, and by their name in the file of examples.
    pub fn of<T: ToSchema>(examples: &[(&'static str, &str)]) -> Self {
        let examples = examples.iter().map(|(name, place)| (*name, find_example(place))).collect();
        Self { media_type: JSON, schema: ContentSchema::of::<T>(), examples }
    }

    pub fn text(media_type: &'static str) -> Self {
        Self { media_type, schema: ContentSchema::Text, examples: Vec::new() }
    }

    /// Content that no schema describes, such as a stream without an end.
    pub fn bytes(media_type: &'static str) -> Self {
        Self { media_type, schema: ContentSchema::Bytes, examples: Vec::new() }
    }

    /// An object with any fields.
    pub fn object() -> Self {
        Self { media_type: JSON, schema: ContentSchema::Object, examples: Vec::new() }
    }

    pub fn with_example(mut self, name: &'static str, example: impl Into<Value>) -> Self {
        self.examples.push((name, example.into()));
        self
    }
}

pub const REQUEST_ID: Header =
    Header { name: "X-Request-Id", about: "The id of this request. The server's log lines repeat it." };
pub const RETRY_AFTER: Header =
    Header { name: "Retry-After", about: "Seconds to wait before you try again." };
pub const ETAG: Header =
    Header { name: "ETag", about: "The tag of this version. Send it back in `If-None-Match`." };
pub const CACHE_CONTROL: Header = Header { name: "Cache-Control", about: "How long you can use a copy." };
pub const LOCATION: Header = Header { name: "Location", about: "The other address." };
pub const CONTENT_LENGTH: Header = Header { name: "Content-Length", about: "In bytes." };

/// The decisions themselves make these; a test of core writes the file.
static EXAMPLES: LazyLock<Value> = LazyLock::new(|| {
    serde_json::from_str(include_str!("examples.json")).expect("a test has read the whole document")
});

/// # Panics
/// If no example has this name. A test builds the whole document.
pub fn find_example(name: &str) -> Value {
    EXAMPLES.get(name).unwrap_or_else(|| panic!("no example is named {name}")).clone()
}
