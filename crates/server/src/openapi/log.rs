//! The log of all commits.

use countersign_core::values::path::RepoPath;
use countersign_log::{NoStaple, NoTile};
use serde_json::json;

use super::{
    endpoint::{CACHE_CONTROL, Content, ContentSchema, DescribedAnswer, Endpoint, JSON, Parameter, Section},
    parameters::{bundle_name, file_path, tile_name},
};
use crate::error::ApiError;

const TEXT: &str = "text/plain";
/// What monitors and witnesses read, together.
const COUNTED_AS: &str = "log";

pub fn checkpoint() -> Endpoint {
    let note = Content { examples: vec![("checkpoint", json!(CHECKPOINT))], ..Content::text(TEXT) };
    described(
        "log_checkpoint",
        "The newest checkpoint of the log",
        "The size and the root of the log of all commits, signed by the log and cosigned by witnesses, as \
         `c2sp.org/tlog-checkpoint` says. A checkpoint includes all that came before it.",
    )
    .answers(cached("the checkpoint, a signed note").with_content(note))
    .fails("this server keeps no log", &ApiError::no_log())
}

pub fn cosigned() -> Endpoint {
    let note = Content { examples: vec![("checkpoint", json!(CHECKPOINT))], ..Content::text(TEXT) };
    described(
        "log_cosigned",
        "The newest checkpoint with enough cosignatures",
        "The checkpoint that proofs are made for: the newest one that as many witnesses have cosigned as the server wants. \
         Mirrors copy it.",
    )
    .answers(cached("the checkpoint, a signed note").with_content(note))
    .fails("this server keeps no log", &ApiError::no_log())
}

pub fn key() -> Endpoint {
    let key = Content { examples: vec![("key", json!(KEY))], ..Content::text(TEXT) };
    Endpoint::new(
        "log_key",
        Section::Reading,
        "The key of the log",
        "The verifier key of the log, as `c2sp.org/signed-note` writes it. Take it from another source if you can: this is \
         the server's word.",
    )
    .counted_as(COUNTED_AS)
    .answers(cached("the verifier key, and a line break").with_content(key))
    .fails("this server keeps no log", &ApiError::no_log())
    .limited()
}

pub fn tile() -> Endpoint {
    tiles(
        "log_tile",
        "Hashes of the log",
        "A tile of the log's Merkle tree, as `c2sp.org/tlog-tiles` says. Tiles never change.",
        tile_name(),
    )
}

pub fn entries() -> Endpoint {
    tiles(
        "log_entries",
        "Leaves of the log",
        "A bundle of leaves of the log, as `c2sp.org/tlog-tiles` says. Each leaf is a text that follows from one commit.",
        bundle_name(),
    )
}

pub fn proof() -> Endpoint {
    let path = RepoPath::parse("https/github.com/443/acme/app/releases/tag/v1/svc.index.json");
    let collecting = NoStaple::Collecting(path.expect("an example, which a test reads"));
    let staple = Content { media_type: JSON, schema: ContentSchema::Object, examples: Vec::new() };
    described(
        "proof",
        "What the log proves about a release",
        "A staple for the index at this path: the last leaf of the log, the proof that a checkpoint includes it, and the \
         records of the release and its project in the status map of that leaf. It proves offline whether the release is \
         complete or revoked, whether it is the newest, and which signers are the newest, as of the checkpoint.",
    )
    .with_parameter(file_path())
    .answers(cached("the staple").with_content(staple))
    .refuses(400, "the path is invalid", "chain.400")
    .fails("no such release, not complete, not in the log yet, or this server keeps no log", &collecting.into())
    .can_fail("")
}

fn tiles(id: &'static str, summary: &'static str, about: &str, name: Parameter) -> Endpoint {
    described(id, summary, about)
        .with_parameter(name)
        .answers(cached("the tile").with_content(Content::bytes()))
        .fails(
            "no such tile, not covered by the newest checkpoint, or this server keeps no log",
            &NoTile::NotCovered.into(),
        )
        .can_fail("")
}

fn described(id: &'static str, summary: &'static str, about: &str) -> Endpoint {
    let counted_as = if id == "proof" { id } else { COUNTED_AS };
    Endpoint::new(id, Section::Reading, summary, about)
        .counted_as(counted_as)
        .fails(
            "the log catches up after a start, waits for witnesses, or has stopped",
            &ApiError::no_log_yet(),
        )
        .limited()
}

fn cached(about: &str) -> DescribedAnswer {
    DescribedAnswer::new(200, about).with_header(CACHE_CONTROL)
}

const KEY: &str = "example.com/log+d455c521+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4\n";
const CHECKPOINT: &str = "\
example.com/log
1
iipcm3aIJ95alVLDigRMZpWcaPbS8htSYK9U0vh9uCc=

— example.com/log 1FXFIeo95mfFlSjutprtqzdb94Rd7e6645LnC2HWsQ0LoAFsPgRFgJmcZRk1fgp59iqhQFldqgE2Ze3UEGQY3lIDfww=
";
