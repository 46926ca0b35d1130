//! What a witness answers, and what witnesses send.

use countersign_core::{
    log::checkpoint::CheckpointError,
    values::{
        bounds::{NOTE_BYTES, WITNESS_REQUEST_BYTES},
        wire,
    },
};
use countersign_log::{CosignError, CosignRefusal};
use serde_json::json;

use super::endpoint::{
    CACHE_CONTROL, Content, ContentSchema, DescribedAnswer, Endpoint, JSON, Parameter, ParameterPlace,
    Section,
};
use crate::error::ApiError;

const TEXT: &str = "text/plain";
const COUNTED_AS: &str = "witness";

pub fn add_checkpoint() -> Endpoint {
    let lines = Content { examples: vec![("cosignature", json!(LINE))], ..Content::text(TEXT) };
    let size = Content { examples: vec![("size", json!("7\n"))], ..Content::text(wire::LOG_SIZE_TYPE) };
    let form = CheckpointError::Form("it must have three lines: origin, size and root");
    let unsigned = CheckpointError::NotSigned("example.com/log".to_owned());
    let endpoint = Endpoint::new(
        "add_checkpoint",
        Section::Watching,
        "Cosign a checkpoint of a log",
        "Only a witness has this (`countersign witness`). The body is as `c2sp.org/tlog-witness` says: `old` and the size \
         that the witness has seen, a consistency proof, an empty line, and the checkpoint. Of the log that it replays, a \
         witness cosigns only a checkpoint whose root it has counted itself.",
    )
    .counted_as(COUNTED_AS)
    .answers(
        DescribedAnswer::new(200, "the cosignature, as a line of a signed note")
            .with_header(CACHE_CONTROL)
            .with_content(lines),
    )
    .fails(
        "the body is malformed, or the old size is larger than the checkpoint's",
        &CosignRefusal::Malformed(form).into(),
    )
    .fails(
        "no known key of the log has signed it, or the witness has stopped for this log",
        &CosignRefusal::NotSigned(unsigned).into(),
    )
    .fails("the witness does not know this log; or this server is not a witness", &ApiError::no_witness())
    .fails("the body did not arrive in time", &ApiError::too_slow())
    .answers(
        DescribedAnswer::new(409, "the witness has seen another size, which is the body")
            .with_header(CACHE_CONTROL)
            .with_content(size),
    )
    .fails(
        "the body is too large",
        &ApiError::too_large(WITNESS_REQUEST_BYTES),
    )
    .fails("the checkpoint does not continue what the witness has seen", &CosignRefusal::BadProof.into())
    .can_fail("")
    .fails(
        "the witness has not come that far yet; try again",
        &CosignRefusal::NotReplayed { size: 8, replayed: 7 }.into(),
    )
    .limited();
    Endpoint { body: Some(request_body(REQUEST)), ..endpoint }
}

pub fn witnessed_checkpoint() -> Endpoint {
    let note = Content { examples: vec![("checkpoint", json!(CHECKPOINT))], ..Content::text(TEXT) };
    let schema = json!({ "type": "string", "pattern": "^[0-9a-f]{64}$" });
    let example = json!("4d3203c8f35cdf600e475f55fede6081a703d3d322f208865fca2ec4f0e030f8");
    let about = "The SHA-256 of the log's origin, in hexadecimal.";
    Endpoint::new(
        "witnessed_checkpoint",
        Section::Watching,
        "The newest checkpoint that a witness has cosigned",
        "Only a witness has this. It is a signed note with the signature of the log and the cosignature of the witness.",
    )
    .counted_as(COUNTED_AS)
    .with_parameter(Parameter { name: "origin", place: ParameterPlace::Path, about, schema, example })
    .answers(DescribedAnswer::new(200, "the checkpoint").with_header(CACHE_CONTROL).with_content(note))
    .fails(
        "the witness has cosigned nothing of such a log; or this server is not a witness",
        &ApiError::nothing_cosigned(),
    )
    .fails("the witness does not know yet which log it follows; try again", &CosignRefusal::NotKnownYet.into())
    .limited()
}

pub fn cosignature() -> Endpoint {
    let accepted = Content {
        media_type: JSON,
        schema: ContentSchema::Object,
        examples: vec![("accepted", json!({ "size": 1 }))],
    };
    let form = CheckpointError::Form("it must have three lines: origin, size and root");
    let endpoint = Endpoint::new(
        "log_cosignature",
        Section::Watching,
        "A witness's cosignature of a checkpoint",
        "For witnesses that the server cannot ask. The body is the text of a checkpoint of this server's log, an empty line, \
         and the signature line of the witness. Only witnesses that the operator has configured are accepted.",
    )
    .answers(DescribedAnswer::new(200, "the cosignature was kept").with_content(accepted))
    .fails("the body is malformed", &CosignRefusal::Malformed(form).into())
    .fails(
        "no configured witness has signed it, or it is of another log",
        &CosignError::UnknownWitness.into(),
    )
    .fails("this server keeps no log", &ApiError::no_log())
    .fails("the body did not arrive in time", &ApiError::too_slow())
    .fails(
        "the checkpoint is not one that waits for witnesses: fetch the newest one",
        &CosignError::NotWaiting(7).into(),
    )
    .fails("the body is too large", &ApiError::too_large(NOTE_BYTES))
    .can_fail("")
    .fails("too many large bodies at a time; try again", &ApiError::busy())
    .limited();
    Endpoint { body: Some(request_body(COSIGNED)), ..endpoint }
}

fn request_body(example: &str) -> Content {
    Content { examples: vec![("request", json!(example))], ..Content::text(TEXT) }
}

const LINE: &str = "— example.com/witness CY73fwAAAABlU/EAYHYcA6wpnZ7fZBFWABe2IDOVesXYAq84XoFyeffDRxVoNucZyxMEVzWRgcFt6P1xPN8cRthFTo+yQyRtk8lBBg==\n";
const REQUEST: &str = "\
old 0

example.com/log
1
iipcm3aIJ95alVLDigRMZpWcaPbS8htSYK9U0vh9uCc=

— example.com/log 1FXFIeo95mfFlSjutprtqzdb94Rd7e6645LnC2HWsQ0LoAFsPgRFgJmcZRk1fgp59iqhQFldqgE2Ze3UEGQY3lIDfww=
";
const COSIGNED: &str = "\
example.com/log
1
iipcm3aIJ95alVLDigRMZpWcaPbS8htSYK9U0vh9uCc=

— example.com/witness CY73fwAAAABlU/EAYHYcA6wpnZ7fZBFWABe2IDOVesXYAq84XoFyeffDRxVoNucZyxMEVzWRgcFt6P1xPN8cRthFTo+yQyRtk8lBBg==
";
const CHECKPOINT: &str = "\
example.com/log
1
iipcm3aIJ95alVLDigRMZpWcaPbS8htSYK9U0vh9uCc=

— example.com/log 1FXFIeo95mfFlSjutprtqzdb94Rd7e6645LnC2HWsQ0LoAFsPgRFgJmcZRk1fgp59iqhQFldqgE2Ze3UEGQY3lIDfww=
— example.com/witness CY73fwAAAABlU/EAYHYcA6wpnZ7fZBFWABe2IDOVesXYAq84XoFyeffDRxVoNucZyxMEVzWRgcFt6P1xPN8cRthFTo+yQyRtk8lBBg==
";
