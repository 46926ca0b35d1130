//! The stream of commits.

use countersign_core::values::{shown::shown_bytes, wire};
use serde_json::json;

use super::{
    endpoint::{CACHE_CONTROL, Content, ContentSchema, DescribedAnswer, Endpoint, Header, Section},
    parameters::{COMMIT, after_commit, wait_seconds},
};
use crate::{
    error::ApiError,
    journal::{MIN_BYTES_PER_SECOND, not_in_history},
};

const NEWEST_COMMIT: Header =
    Header { name: "X-svc-commit", about: "The newest commit when the answer began, which is its last one." };

pub fn journal() -> Endpoint {
    let stream = Content {
        media_type: wire::JOURNAL_TYPE,
        schema: ContentSchema::Bytes,
        examples: vec![("first", json!(EXAMPLE))],
    };
    let malformed = "after: must be the id of a commit, of 40 hexadecimal digits";
    Endpoint::new(
        "journal",
        Section::Reading,
        "Every commit with its content",
        &format!(
            "What the server has stored, commit by commit from the oldest to the newest, in the form that `git \
             fast-import` reads. In an empty bare repository, that gives the same commit ids. The answer ends with the \
             commit that was the newest when it began. It is empty if there is nothing new.\n\nA follower that is \
             slower than {} a second loses its place if others wait for one. An answer that breaks off can be continued \
             after its last whole commit.",
            shown_bytes(MIN_BYTES_PER_SECOND),
        ),
    )
    .with_parameter(after_commit())
    .with_parameter(wait_seconds())
    .answers(
        DescribedAnswer::new(200, "the commits")
            .with_header(NEWEST_COMMIT)
            .with_header(CACHE_CONTROL)
            .with_content(stream),
    )
    .fails("a parameter is malformed, unknown or repeated", &ApiError::invalid_parameter(malformed))
    .fails("the commit is not in the history of this server", &not_in_history(COMMIT))
    .can_fail("")
    .fails("too many followers; try again", &ApiError::too_many_followers())
    .limited()
}

const EXAMPLE: &str = "\
commit refs/heads/main
original-oid cafecafecafecafecafecafecafecafecafecafe
author Countersign <countersign@localhost> 1769853600 +0000
committer Countersign <countersign@localhost> 1769853600 +0000
data 22
Create the repository
M 100644 inline svc.repository.json
data 3
{}


";
