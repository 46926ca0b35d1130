//! What the reference says about one endpoint. Both the OpenAPI document and the page for people come from it.

use std::sync::LazyLock;

use countersign_api::{answers::ErrorResponse, error_code::ErrorCode};
use countersign_core::values::bounds::{KEPT_REQUEST_BYTES, PATH_BYTES, PATH_SEGMENTS};
use countersign_core::values::shown::shown_bytes;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::http::{blocks::BlockedThing, blocks::ChangeBlocked, error::ApiError};
use crate::limits::{Limit, Limited};
use crate::metrics::{PAGE, named};
use crate::{api::openapi::schemas::Type, follow::mirror::state::NotTheOrigin};

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

/// A parameter, as the OpenAPI document has it.
#[derive(Debug, Clone, Serialize)]
pub struct Parameter {
    pub name: &'static str,
    #[serde(rename = "in")]
    pub part: RequestPart,
    #[serde(rename = "required")]
    pub is_required: bool,
    #[serde(rename = "description")]
    pub about: &'static str,
    pub schema: Value,
    pub example: Value,
}

named! {
    /// Where a parameter stands.
    #[derive(Serialize)]
    #[serde(rename_all = "lowercase")]
    pub enum RequestPart {
        Path = "path",
        Query = "query",
        Header = "header",
    }
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

#[derive(Debug, Clone)]
pub enum ContentSchema {
    Type(Type),
    /// A schema of few words.
    Inline(Value),
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
                "Projects and releases", "projects", "Who signs for a project, and which releases there are.",
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

    pub fn counted_as(self, name: &'static str) -> Self {
        Self { counted_as: name, ..self }
    }

    /// Paragraphs with empty lines between them. Text in backticks is code.
    pub fn about(self, text: impl Into<String>) -> Self {
        Self { about: text.into(), ..self }
    }

    pub fn takes(mut self, parameter: Parameter) -> Self {
        self.parameters.push(parameter);
        self
    }

    /// Clients ask again with the tag of their copy.
    pub fn revalidated(self) -> Self {
        let about = "The `ETag` of your copy. The answer is 304 if it is still current.";
        let current = DescribedAnswer::new(304, "your copy is still current");
        self.takes(Parameter::header("If-None-Match", about, text(), format!("\"{EXAMPLE_COMMIT}\"")))
            .answers(current.with_headers([ETAG, CACHE_CONTROL]))
    }

    /// The repository keeps the request as a proof, which bounds its body.
    pub fn is_kept(mut self) -> Self {
        self.about += &format!(" The body has at most {}.", shown_bytes(KEPT_REQUEST_BYTES));
        self
    }

    pub fn with_body<T: ToSchema>(self, examples: &[(&'static str, &str)]) -> Self {
        self.with_raw_body(Content::of::<T>(examples))
    }

    pub fn with_raw_body(self, body: Content) -> Self {
        Self { body: Some(body), ..self }
    }

    pub fn answers(mut self, answer: DescribedAnswer) -> Self {
        let position = self.answers.partition_point(|other| other.status <= answer.status);
        self.answers.insert(position, answer);
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

    /// What an endpoint can answer whose answers can be large, so that they wait for room.
    pub fn with_large_answers(self) -> Self {
        self.can_fail("")
            .fails("too many large answers are on their way; try again", ApiError::BUSY)
            .limited()
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

    pub fn optionally_signed(self) -> Self {
        Self { access: EndpointAccess::Optional, ..self }
    }
}

impl DescribedAnswer {
    pub fn new(status: u16, about: &str) -> Self {
        Self { status, about: about.to_owned(), headers: vec![REQUEST_ID], contents: Vec::new() }
    }

    pub fn error(status: u16, about: &str, example: Value) -> Self {
        let content = Content::of::<ErrorResponse>(&[]).with_example("error", example);
        Self::new(status, about).with_content(content)
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
        let examples = examples.iter().map(|(name, key)| (*name, find_example(key))).collect();
        Self { media_type: JSON, schema: ContentSchema::Type(Type::of::<T>()), examples }
    }

    pub fn text(media_type: &'static str) -> Self {
        Self { media_type, schema: ContentSchema::Inline(text()), examples: Vec::new() }
    }

    /// Bytes are not JSON, so a schema has nothing to say about them.
    pub fn bytes(media_type: &'static str) -> Self {
        Self { media_type, schema: ContentSchema::Inline(json!({})), examples: Vec::new() }
    }

    /// An object with any fields.
    pub fn object() -> Self {
        let schema = ContentSchema::Inline(json!({ "type": "object" }));
        Self { media_type: JSON, schema, examples: Vec::new() }
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
pub const CONTENT_ENCODING: Header =
    Header { name: "Content-Encoding", about: "`gzip` if it is compressed." };
pub const VARY: Header =
    Header { name: "Vary", about: "The header of the request on which the answer depends. Caches heed it." };
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

// Parameters that several endpoints share, and how others are made.

pub const EXAMPLE_INDEX: &str = "https/github.com/443/acme/app/releases/tag/v1/svc.index.json";
pub const EXAMPLE_PROJECT: &str = "https/github.com/443/acme/app";
pub const EXAMPLE_COMMIT: &str = "cafecafecafecafecafecafecafecafecafecafe";
/// A segment is anything but slashes, backslashes and control characters. None is a dot, two dots, or `.git`.
const SEGMENT_PATTERN: &str = r"((?!\.{1,2}(/|$)|\.[gG][iI][tT](/|$))[^/\\\x00-\x1f\x7f-\x9f]+(/|$))";

impl Parameter {
    /// A part of the path. It is always required; the others are optional.
    pub fn path(name: &'static str, about: &'static str, schema: Value, example: impl Into<Value>) -> Self {
        Self { name, part: RequestPart::Path, is_required: true, about, schema, example: example.into() }
    }

    pub fn query(name: &'static str, about: &'static str, schema: Value, example: impl Into<Value>) -> Self {
        Self { part: RequestPart::Query, is_required: false, ..Self::path(name, about, schema, example) }
    }

    pub fn header(name: &'static str, about: &'static str, schema: Value, example: impl Into<Value>) -> Self {
        Self { part: RequestPart::Header, is_required: false, ..Self::path(name, about, schema, example) }
    }
}

/// The schema of any text.
pub fn text() -> Value {
    json!({ "type": "string" })
}

/// The schema of a text that this regular expression describes.
pub fn matching(pattern: &str) -> Value {
    json!({ "type": "string", "pattern": pattern })
}

/// The schema of one of these words.
pub fn one_of(words: &[&str]) -> Value {
    json!({ "type": "string", "enum": words })
}

/// The schema of a path.
pub fn path() -> Value {
    let pattern = format!("^{SEGMENT_PATTERN}{{1,{PATH_SEGMENTS}}}$");
    json!({ "type": "string", "minLength": 1, "maxLength": PATH_BYTES, "pattern": pattern })
}

/// The schema of the id of a commit, in either letter case.
pub fn commit() -> Value {
    matching("^[0-9a-fA-F]{40}$")
}

/// The schema of a public key.
pub fn public_key() -> Value {
    matching("^svc-pub:[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]$")
}

pub fn example_key() -> Value {
    find_example("header.public_key")
}

pub fn file_path() -> Parameter {
    let about = "A mirror-relative path with plain slashes. `%2F` counts as a slash as well.";
    Parameter::path("path", about, path(), EXAMPLE_INDEX)
}

/// The path of anything at or below a project.
pub fn any_path() -> Parameter {
    let about = "The path of any file or directory, with plain slashes. It need not exist.";
    Parameter::path("path", about, path(), EXAMPLE_PROJECT)
}

/// The parameter that says where a list goes on.
pub fn after_index() -> Parameter {
    let about = "Continue after this `index_path`, the last one of the answer before.";
    Parameter::query("after", about, path(), EXAMPLE_INDEX)
}

// What the descriptions of pages have in common.

/// A page that shows the newest state.
pub fn living_page(id: &'static str, summary: &'static str, media_types: &[&'static str]) -> Endpoint {
    let page = DescribedAnswer::new(200, "the page").with_headers([ETAG, CACHE_CONTROL]);
    let page = media_types.iter().fold(page, |page, media_type| page.with_content(Content::text(media_type)));
    Endpoint::new(id, Section::Pages, summary)
        .revalidated()
        .answers(page)
        .fails("nothing is there", ApiError::new(ErrorCode::NoSuchPage, "The list has no such page"))
        .can_fail("")
        .fails("too many pages are being made, or the server has just started; try again", ApiError::BUSY)
        .limited()
}

/// A page that never changes.
pub fn lasting_page(id: &'static str, summary: &'static str) -> Endpoint {
    fixed(id, summary, "the page", HTML)
}

/// A file that pages load.
pub fn asset(id: &'static str, summary: &'static str, media_type: &'static str) -> Endpoint {
    fixed(id, summary, "the file", media_type).about("Loaded by the pages.")
}

/// A text that does not depend on what is stored.
pub fn fixed(id: &'static str, summary: &'static str, about: &str, media_type: &'static str) -> Endpoint {
    let answer = DescribedAnswer::new(200, about).with_headers([CACHE_CONTROL]);
    let answer = answer.with_content(Content::text(media_type));
    Endpoint::new(id, Section::Pages, summary).answers(answer).limited()
}

pub fn redirect(about: &str) -> DescribedAnswer {
    DescribedAnswer::new(307, about).with_headers([LOCATION])
}

/// A parameter that is not always checked, since a page at another address redirects first.
pub fn unchecked(parameter: Parameter) -> Parameter {
    let example = parameter.example.as_str().map_or_else(|| parameter.example.to_string(), str::to_owned);
    Parameter { schema: text(), example: json!(example), ..parameter }
}
