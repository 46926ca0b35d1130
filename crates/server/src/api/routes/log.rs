//! The log of all commits: checkpoints, tiles and staples (D89); and a witness of logs (D94), as c2sp.org/tlog-witness
//! says.

use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::header::{CONTENT_ENCODING, VARY};
use axum::http::{HeaderName, HeaderValue};
use axum::{Json, body::Bytes, response::IntoResponse, response::Response};
use countersign_core::log::checkpoint::{Checkpoint, CheckpointError, WitnessRequest};
use countersign_core::log::{note::Note, tile::TileKind, tile::TileName};
use countersign_core::values::bounds::{NOTE_BYTES, WITNESS_REQUEST_BYTES};
use countersign_core::values::{digest::Sha256, path::RepoPath, wire, wire::routes as paths};
use countersign_log::{CosignError, CosignRefusal, LogWitness, NoStaple, NoTile, TransparencyLog};
use serde_json::json;

use crate::api::openapi::{Content, DescribedAnswer, EXAMPLE_INDEX, Endpoint, Parameter, Section};
use crate::api::routing::{Question, RouteTable, decode};
use crate::api::{openapi, state::App};
use crate::follow::witness;
use crate::http::{body::read_public, error::ApiError, request::accepts_gzip, sending::typed};
use crate::nodes::asking::{CosigningStats, take_cosignatures};

const TEXT: &str = "text/plain; charset=utf-8";
/// What is signed stays as it is.
const FOR_EVER: &str = "public, max-age=31536000, immutable";
const FOR_SECONDS: &str = "public, max-age=2";
const NO_CACHE: &str = "no-cache";

pub(crate) fn routes() -> RouteTable {
    let note = || example("checkpoint", format!("{EXAMPLE_NOTE}{LOG_LINE}"));
    let tile = |about, pattern: &str, example| {
        let schema = json!({ "type": "string", "maxLength": 40, "pattern": pattern });
        Parameter::path("path", about, schema, example)
    };
    let collecting =
        NoStaple::Collecting(RepoPath::parse(EXAMPLE_INDEX).expect("an example, which a test reads"));
    RouteTable::default()
        .get_below(paths::PROOF, proof, logged("proof", "What the log proves about a release")
            .about(
                "A staple for the index at this path: the last leaf of the log, the proof that a checkpoint includes it, and the \
                 records of the release and its project in the status map of that leaf. It proves offline whether the release is \
                 complete or revoked, whether it is the newest, and which signers are the newest, as of the checkpoint.",
            )
            .counted_as("proof")
            .takes(openapi::file_path())
            .answers(cached("the staple", Content::object()))
            .refuses(400, "the path is invalid", "chain.400")
            .fails("no such release, not complete, not in the log yet, or this server keeps no log", collecting)
            .can_fail(""))
        .get(paths::LOG_CHECKPOINT, checkpoint, logged("log_checkpoint", "The newest checkpoint of the log")
            .about(
                "The size and the root of the log of all commits, signed by the log and cosigned by witnesses, as \
                 `c2sp.org/tlog-checkpoint` says. A checkpoint includes all that came before it.",
            )
            .answers(cached("the checkpoint, a signed note", note()))
            .fails("this server keeps no log", ApiError::NO_LOG))
        .get(paths::LOG_COSIGNED, cosigned, logged("log_cosigned", "The newest checkpoint with enough cosignatures")
            .about(
                "The checkpoint that proofs are made for: the newest one that as many witnesses have cosigned as the server wants. \
                 Mirrors copy it.",
            )
            .answers(cached("the checkpoint, a signed note", note()))
            .fails("this server keeps no log", ApiError::NO_LOG))
        .get(paths::LOG_KEY, key, Endpoint::new("log_key", Section::Reading, "The key of the log")
            .about(
                "The verifier key of the log, as `c2sp.org/signed-note` writes it. Take it from another source if you can: this is \
                 the server's word.",
            )
            .counted_as(COUNTED_AS)
            .answers(cached("the verifier key, and a line break", example("key", EXAMPLE_KEY.to_owned())))
            .fails("this server keeps no log", ApiError::NO_LOG)
            .limited())
        .get_below(paths::LOG_TILE, tiles, describe_tiles("log_tile", "Hashes of the log")
            .answers(cached("the tile", Content::bytes("application/octet-stream")))
            .about("A tile of the log's Merkle tree, as `c2sp.org/tlog-tiles` says. Tiles never change.")
            .takes(tile("The level, the number of the tile in groups of three digits, and the width of a partial tile.", &format!("^([0-9]|[1-5][0-9]|6[0-3])/{TILE_NUMBER}$"), "0/x001/234.p/5")))
        .get_below(&format!("{}/entries", paths::LOG_TILE), tiles, describe_tiles("log_entries", "Leaves of the log")
            .answers(DescribedAnswer::new(200, "the bundle").with_headers([openapi::CACHE_CONTROL, openapi::CONTENT_ENCODING, openapi::VARY]).with_content(Content::bytes("application/octet-stream")))
            .about(
                "A bundle of leaves of the log, as `c2sp.org/tlog-tiles` says. Each leaf is a text that follows from one commit. \
                 Clients that accept gzip get it compressed.",
            )
            .takes(Parameter::header("Accept-Encoding", "Whether the bundle can be sent in gzip. `gzip;q=0` refuses that.", openapi::text(), "gzip"))
            .takes(tile("The number of the bundle in groups of three digits, and the width of a partial bundle.", &format!("^{TILE_NUMBER}$"), "x001/234.p/5")))
        // Names whose first slash is percent-encoded too.
        .also_get(&format!("{}%2F{{*path}}", paths::LOG_TILE), tiles)
        .also_get(&format!("{}%2f{{*path}}", paths::LOG_TILE), tiles)
        .post(paths::LOG_COSIGNATURE, cosignature, Endpoint::new("log_cosignature", Section::Watching, "A witness's cosignature of a checkpoint")
            .about(
                "For witnesses that the server cannot ask. The body is the text of a checkpoint of this server's log, an empty line, \
                 and a signature line for each key of the witness. Only witnesses that the operator has configured are accepted.",
            )
            .with_raw_body(example("request", format!("{EXAMPLE_NOTE}{WITNESS_LINE}")))
            .answers(DescribedAnswer::new(200, "the cosignature was kept").with_content(Content::object().with_example("accepted", json!({ "size": 1 }))))
            .fails("the body is malformed", malformed())
            .fails("no configured witness has signed it, or it is of another log", CosignError::UnknownWitness)
            .fails("this server keeps no log", ApiError::NO_LOG)
            .fails("the body did not arrive in time", ApiError::TOO_SLOW)
            .fails("the checkpoint is not one that waits for witnesses: fetch the newest one", CosignError::NotWaiting(7))
            .fails("the body is too large", ApiError::too_large(NOTE_BYTES))
            .can_fail("")
            .fails("too many large bodies at a time; try again", ApiError::BUSY)
            .limited())
}

pub(crate) fn witness_routes() -> RouteTable {
    let unsigned = CheckpointError::NotSigned("example.com/log".to_owned());
    let size = Content::text(wire::LOG_SIZE_TYPE).with_example("size", "7\n");
    RouteTable::default()
        .post(paths::ADD_CHECKPOINT, add_checkpoint, Endpoint::new("add_checkpoint", Section::Watching, "Cosign a checkpoint of a log")
            .about(
                "Only a witness has this (`countersign witness`). The body is as `c2sp.org/tlog-witness` says: `old` and the size \
                 that the witness has seen, a consistency proof, an empty line, and the checkpoint. Of the log that it replays, a \
                 witness cosigns only a checkpoint whose root it has counted itself.",
            )
            .counted_as("witness")
            .with_raw_body(example("request", format!("old 0\n\n{EXAMPLE_NOTE}{LOG_LINE}")))
            .answers(cached("the cosignature, as a line of a signed note; one for each key of the witness", example("cosignature", WITNESS_LINE.to_owned())))
            .fails("the body is malformed, or the old size is larger than the checkpoint's", malformed())
            .fails("no known key of the log has signed it, or the witness has stopped for this log", CosignRefusal::NotSigned(unsigned))
            .fails("the witness does not know this log; or this server is not a witness", ApiError::NO_WITNESS)
            .fails("the body did not arrive in time", ApiError::TOO_SLOW)
            .answers(DescribedAnswer::new(409, "the witness has seen another size, which is the body").with_headers([openapi::CACHE_CONTROL]).with_content(size))
            .fails("the body is too large", ApiError::too_large(WITNESS_REQUEST_BYTES))
            .fails("the checkpoint does not continue what the witness has seen", CosignRefusal::BadProof)
            .can_fail("")
            .fails("the witness has not come that far yet; try again", CosignRefusal::NotReplayed { size: 8, replayed: 7 })
            .limited())
        .get("/{origin}/checkpoint", witnessed_checkpoint, Endpoint::new("witnessed_checkpoint", Section::Watching, "The newest checkpoint that a witness has cosigned")
            .about("Only a witness has this. It is a signed note with the signature of the log and the cosignature of the witness.")
            .counted_as("witness")
            .takes(Parameter::path("origin", "The SHA-256 of the log's origin, in hexadecimal.", openapi::matching("^[0-9a-f]{64}$"), "4d3203c8f35cdf600e475f55fede6081a703d3d322f208865fca2ec4f0e030f8"))
            .answers(cached("the checkpoint", example("checkpoint", format!("{EXAMPLE_NOTE}{LOG_LINE}{WITNESS_LINE}"))))
            .fails("the witness has cosigned nothing of such a log; or this server is not a witness", ApiError::NOTHING_COSIGNED)
            .fails("the witness does not know yet which log it follows; try again", CosignRefusal::NotKnownYet)
            .limited())
}

/// What monitors and witnesses read, together.
const COUNTED_AS: &str = "log";
const TILE_NUMBER: &str = r"(x[0-9]{3}/){0,5}[0-9]{3}(\.p/[1-9][0-9]{0,2})?";
const EXAMPLE_KEY: &str = "example.com/log+d455c521+AQOhB7/zzhC+HXDdGOdLwJln5NYwm6UNXx3chmQSVTG4\n";
const EXAMPLE_NOTE: &str = "example.com/log\n1\niipcm3aIJ95alVLDigRMZpWcaPbS8htSYK9U0vh9uCc=\n\n";
const LOG_LINE: &str = "— example.com/log 1FXFIeo95mfFlSjutprtqzdb94Rd7e6645LnC2HWsQ0LoAFsPgRFgJmcZRk1fgp59iqhQFldqgE2Ze3UEGQY3lIDfww=\n";
const WITNESS_LINE: &str = "— example.com/witness CY73fwAAAABlU/EAYHYcA6wpnZ7fZBFWABe2IDOVesXYAq84XoFyeffDRxVoNucZyxMEVzWRgcFt6P1xPN8cRthFTo+yQyRtk8lBBg==\n";

fn logged(id: &'static str, summary: &'static str) -> Endpoint {
    let about = "the log catches up after a start, waits for witnesses, or has stopped";
    Endpoint::new(id, Section::Reading, summary)
        .counted_as(COUNTED_AS)
        .fails(about, ApiError::NO_LOG_YET)
        .limited()
}

fn describe_tiles(id: &'static str, summary: &'static str) -> Endpoint {
    let about = "no such tile, not covered by the newest checkpoint, or this server keeps no log";
    logged(id, summary).fails(about, NoTile::NotCovered).can_fail("")
}

fn cached(about: &str, content: Content) -> DescribedAnswer {
    DescribedAnswer::new(200, about).with_headers([openapi::CACHE_CONTROL]).with_content(content)
}

fn example(name: &'static str, text: String) -> Content {
    Content::text("text/plain").with_example(name, text)
}

fn malformed() -> ApiError {
    CosignRefusal::Malformed(CheckpointError::Form("it must have three lines: origin, size and root")).into()
}

async fn checkpoint(Question { app, sender, .. }: Question) -> Result<Response, ApiError> {
    let note = find_log(&app)?.checkpoint_note().ok_or(ApiError::NO_LOG_YET)?;
    app.sending.bound(typed(note.as_str().to_owned(), TEXT, FOR_SECONDS), &sender).await
}

/// Answers with all cosignatures, because a mirror does not know how many are enough.
async fn cosigned(Question { app, sender, .. }: Question) -> Result<Response, ApiError> {
    let note = find_log(&app)?.cosigned_note().ok_or(ApiError::NO_LOG_YET)?;
    app.sending.bound(typed(note, TEXT, FOR_SECONDS), &sender).await
}

async fn key(State(app): State<App>) -> Result<Response, ApiError> {
    Ok(typed(format!("{}\n", find_log(&app)?.key()), TEXT, FOR_SECONDS))
}

/// Takes cosignatures from a witness that the server cannot ask (D96).
async fn cosignature(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let log = find_log(&app)?;
    let body = read_public(&app.large_bodies, request, NOTE_BYTES).await?;
    let note = Note::parse(&body).map_err(|error| CosignRefusal::Malformed(error.into()))?;
    let checkpoint = Checkpoint::parse(note.text()).map_err(CosignRefusal::Malformed)?;
    let size = checkpoint.size;
    let now = app.now();
    let added = app.sending.read(move || take_cosignatures(&log, &checkpoint, &note, now)).await??;
    CosigningStats::note_cosigned(&app.cosigning, size, &added);
    Ok(Json(json!({ "size": size })).into_response())
}

async fn tiles(Question { app, uri, headers, .. }: Question) -> Result<Response, ApiError> {
    let log = find_log(&app)?;
    let name = parse_tile(uri.path()).ok_or(ApiError::NO_SUCH_TILE)?;
    let is_bundle = name.kind() == TileKind::Entries;
    let is_packed = is_bundle && accepts_gzip(&headers);
    let bytes = app.sending.read(move || match is_packed {
        true => log.packed_bundle(&name).map(Bytes::from_owner),
        false => log.tile(&name).map(Bytes::from),
    });
    let mut response = typed(bytes.await??, "application/octet-stream", FOR_EVER);
    if is_bundle {
        // A cache must not give one client what another one accepts.
        response.headers_mut().insert(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    if is_packed {
        response.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    Ok(response)
}

/// The tile that a path names. Every slash of the name, also the first, can be percent-encoded.
fn parse_tile(path: &str) -> Option<TileName> {
    let name = decode(path.strip_prefix(paths::LOG_TILE)?)?;
    TileName::parse(name.strip_prefix('/')?)
}

async fn proof(question: Question) -> Result<Response, ApiError> {
    let (path, Question { app, sender, .. }) = (question.path()?, question);
    let (log, store) = (find_log(&app)?, Arc::clone(&app.store));
    let staple = app.sending.read(move || log.staple(|| store.head(), &path).1).await??;
    app.sending.bound(typed(staple.write(), openapi::JSON, FOR_SECONDS), &sender).await
}

fn find_log(app: &App) -> Result<Arc<TransparencyLog>, ApiError> {
    Ok(app.log.get().cloned().ok_or(ApiError::NO_LOG)?)
}

async fn add_checkpoint(State(app): State<App>, request: Request) -> Result<Response, ApiError> {
    let witness = find_witness(&app)?;
    let body = read_public(&app.large_bodies, request, WITNESS_REQUEST_BYTES).await?;
    let request = WitnessRequest::parse(&body).map_err(CosignRefusal::Malformed)?;
    match witness::cosign(&witness, request, &app.clock, app.role.mirror()).await {
        Ok(cosignatures) => {
            let lines: String = cosignatures.iter().map(|cosignature| cosignature.line.to_string()).collect();
            Ok(typed(lines, TEXT, NO_CACHE))
        }
        Err(CosignRefusal::OtherSize(size)) => {
            // The log wants to read the size alone.
            let status = ApiError::from(CosignRefusal::OtherSize(size)).status();
            Ok(typed((status, format!("{size}\n")), wire::LOG_SIZE_TYPE, NO_CACHE))
        }
        Err(refusal) => {
            let is_stopped = matches!(refusal, CosignRefusal::Stopped(_));
            let mut response = ApiError::from(refusal).into_response();
            if is_stopped {
                let name = HeaderName::from_static(wire::WITNESS_STOPPED);
                response.headers_mut().insert(name, HeaderValue::from_static("until its operator decides"));
            }
            Ok(response)
        }
    }
}

async fn witnessed_checkpoint(State(app): State<App>, origin: Path<String>) -> Result<Response, ApiError> {
    let witness = find_witness(&app)?;
    let origin = Sha256::parse(&origin).ok_or(ApiError::NOTHING_COSIGNED)?;
    let note = witness.checkpoint_of(&origin)?.ok_or(ApiError::NOTHING_COSIGNED)?;
    Ok(typed(note, TEXT, NO_CACHE))
}

fn find_witness(app: &App) -> Result<Arc<LogWitness>, ApiError> {
    Ok(app.witness.clone().ok_or(ApiError::NO_WITNESS)?)
}
