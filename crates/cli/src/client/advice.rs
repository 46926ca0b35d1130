//! The next step after an error of a server. It depends on the code, and never on the words of a message (D230). Those
//! words are only shown, with the names that commands have.

use countersign_api::error_code::ErrorCode as C;

use crate::words::error::{ErrorKind, replace_where};

const CHECK_KEY: &str = "check --key: only keys that the project's signers file lists for this can do it";

/// The next step for a code whose status does not say enough.
fn own_hint(code: C) -> Option<&'static str> {
    Some(match code {
        C::KeyNotListed | C::MayNotRevoke => CHECK_KEY,
        C::ChangeBlocked | C::WitnessStopped => "ask the server's operator",
        C::ReadOnlyMirror => "a mirror is read-only: name the other server with --server URL",
        C::CommitNotKept => {
            "the server no longer keeps the events since then: look at the state, and watch without --since"
        }
        C::ProjectRegistered => {
            "nothing is left to do; `countersign signers edit PROJECT` makes the next signers file, which `countersign update` proposes"
        }
        C::RegistrationPending => "`countersign status PROJECT` shows who has yet to sign it",
        C::ProjectOverlaps => {
            "register the project at a directory that is neither inside nor around the other one"
        }
        C::OtherUpdatePending => {
            "`countersign status PROJECT` shows the pending one: sign it, or let an admin propose yours"
        }
        C::MastersUpdatePending => {
            "`countersign status PROJECT` shows the pending one: sign it, or let a master propose yours"
        }
        C::Vetoed => "ask the masters; you can propose another file, even if only its timestamp is new",
        C::HistoryFull => "propose a signers file with fewer keys",
        C::TooManyRegistrations => "complete one of them, or ask the server's operator to drop one",
        C::TooManyProposals => {
            "complete the pending proposal (`countersign status PROJECT` shows who is missing), or let the masters stop it: \
             `countersign veto PROJECT`"
        }
        C::AlreadySigned => "nothing is left for you to do; `countersign status NAME` shows who is missing",
        C::AlreadyComplete => "nothing is left to sign; `countersign status NAME` shows who has signed",
        C::ReleaseRegistered => {
            "`countersign status NAME` shows how far it is; another version needs a tag or directory of its own"
        }
        C::TooManyReleases => "`countersign pending` lists them: sign some first",
        C::AlreadyWithdrawn => {
            "nothing is left to do; `countersign status NAME` shows who withdrew it and why"
        }
        C::Corrected => {
            "`countersign status NAME` shows the corrected release: look at it, then run this again"
        }
        C::Revoked => "do not use it; `countersign status NAME` shows the reason",
        C::NotLater => "check this computer's clock, and run it again",
        C::OtherRelease => {
            "state it anew of this release: `countersign rebuild NAME --files DIR --source COMMIT`"
        }
        C::AlreadyStated => {
            "to add files, build them from the commit that you stated; `countersign status NAME` shows it"
        }
        C::NoObjection => "nothing is left to do; `countersign status NAME` shows all objections",
        C::TooManyObjections => {
            "keys that have objected can still change what they said; `countersign status NAME` shows all objections"
        }
        C::NotComplete => {
            "only complete releases are revoked; correct this one with `countersign release`, or leave it unsigned"
        }
        C::OtherRevocationPending | C::OtherVetoPending => "leave --reason out to join the pending one",
        C::FirstRegistration => "leave it unsigned: it takes effect only when all keys in it have signed",
        C::OtherProposal => {
            "`countersign status PROJECT` shows what is proposed now: look at it, then run this again"
        }
        C::TooLate => {
            "the proposed signers are due, and take effect as soon as the server can put them into force; until then only its \
             operator can remove them, with `countersign admin drop PROJECT`"
        }
        C::PathTaken => "publish it in a directory of its own",
        C::ChangeTooLarge => "`countersign pending` lists what waits: sign or withdraw some first",
        C::UpstreamMissing | C::UpstreamUnreachable | C::UpstreamInvalid => {
            "correct the file that the message names, and check that the server can read it there; then run this again"
        }
        C::OutcomeUnknown => {
            "look first whether it was done (`countersign status NAME`), and run it again only if it was not"
        }
        _ => return None,
    })
}

/// What kind of error it is, and what to do. Without a code of this version, the status says it.
pub(super) fn advise(code: Option<C>, status: u16) -> (ErrorKind, &'static str) {
    let status = code.map_or(status, C::status);
    let kind = match status {
        429 | 502..=504 => ErrorKind::Unreachable,
        _ => ErrorKind::Other,
    };
    (kind, code.and_then(own_hint).unwrap_or_else(|| hint_of_status(status)))
}

/// Whether the server failed at something that it was told to fetch.
pub(super) fn is_fetched(code: Option<C>) -> bool {
    matches!(code, Some(C::UpstreamMissing | C::UpstreamUnreachable | C::UpstreamInvalid))
}

fn hint_of_status(status: u16) -> &'static str {
    match status {
        400 => "correct what the message names",
        401 => "check this computer's clock, and that --key names the right key",
        403 => CHECK_KEY,
        404 => "check the name, and --server: `countersign pending` lists what waits for you",
        409 => "`countersign status NAME` shows what is there",
        429 => "wait as long as the message says, then run it again",
        500 => {
            "check that the server can read what the message names; if it can, give its operator the request id"
        }
        502..=504 => "run it again in a few minutes",
        _ => "give the server's operator the request id: its log says more",
    }
}

// What a server says, for people who type commands and never see a request.

/// Names of the API, and what a user of this client calls them.
const WORDS: [(&str, &str); 16] = [
    ("POST /v1/register_repo", "`countersign register`"),
    ("POST /v1/update_signers", "`countersign update`"),
    ("POST /v1/signatures", "`countersign sign`"),
    ("POST /v1/assets", "`countersign release`"),
    ("POST /v1/revoke", "`countersign revoke`"),
    ("POST /v1/withdraw", "`countersign withdraw`"),
    ("POST /v1/object", "`countersign object`"),
    ("POST /v1/veto", "`countersign veto`"),
    ("veto_json", "the veto"),
    ("forge_release_url", "the release's page"),
    ("csum_files", "--checksums"),
    ("signers_file_url", "the signers file's URL"),
    ("revocation_json", "the revocation"),
    ("objection_json", "the objection"),
    ("subject_digest", "the digest of what was shown"),
    ("public_key", "the key"),
];

pub(super) fn to_client_words(said: &str) -> String {
    WORDS.iter().fold(said.to_owned(), |said, (word, meaning)| replace_word(&said, word, meaning))
}

/// Replaces a word where it stands alone. A part of a path stays as it is.
fn replace_word(text: &str, word: &str, meaning: &str) -> String {
    let opens = |c: char| c.is_whitespace() || "(\"'`".contains(c);
    let closes = |c: char| c.is_whitespace() || ":,;.)\"'`".contains(c);
    replace_where(text, word, meaning, |before, behind| {
        before.chars().next_back().is_none_or(opens) && behind.chars().next().is_none_or(closes)
    })
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;
    use serde_json::{Map, Value, json};

    use crate::client::{ServerClient, advice::*, attempts::Answer};
    use crate::words::output::Output;

    fn client() -> ServerClient {
        ServerClient::new("http://127.0.0.1:1", Output::silent()).expect("it is an address")
    }

    /// What a command does with an answer, all but the words: exit code, hint, details, and what the client says before
    /// it repeats the server's words.
    fn react(client: &ServerClient, status: u16, body: &Value) -> (u8, String, Map<String, Value>, String) {
        let answer = Answer {
            status: StatusCode::from_u16(status).expect("it is a status"),
            bytes: body.to_string().into_bytes(),
            request_id: None,
            content_type: "application/json".to_owned(),
            location: None,
            retry_after: None,
        };
        let error = client.refused(&answer);
        let said = to_client_words(body["error"].as_str().unwrap_or_default());
        let introduction =
            error.to_string().strip_suffix(&said).expect("the server's words are told").to_owned();
        (error.kind().exit_code(), error.hint().to_owned(), error.details.clone(), introduction)
    }

    /// Sentences that once meant something to a client, and one that never did.
    const OTHER_WORDS: [&str; 5] = [
        "Signature already collected: this is a mirror of a file that is revoked",
        "the operator says that you may not revoke https://dl.example.org/",
        "Too late: it is complete already",
        "Project already registered",
        "Das geht nicht.",
    ];

    #[test]
    fn only_the_code_decides_what_the_client_does_and_every_conflict_has_a_next_step_of_its_own() {
        let client = client();
        for code in C::ALL {
            let (name, status) = (code.name(), code.status());
            let reaction = react(&client, status, &json!({ "error": "x", "code": code }));
            assert_eq!(reaction.2["code"], name);
            assert_eq!(reaction.2.get("conflict").and_then(Value::as_str), (status == 409).then_some(name));
            for words in OTHER_WORDS.into_iter().chain([code.meaning()]) {
                assert_eq!(
                    react(&client, status, &json!({ "error": words, "code": code })),
                    reaction,
                    "{name}: {words}"
                );
            }
            // Only logs and witnesses meet these.
            let is_of_logs = matches!(code, C::OtherLogSize | C::CheckpointNotWaiting);
            assert!(status != 409 || is_of_logs || reaction.1 != hint_of_status(409), "{name}");
        }
    }

    #[test]
    fn without_a_code_that_it_knows_the_client_goes_by_the_status() {
        let client = client();
        for status in (400..=431).chain(500..=507) {
            let plain = react(&client, status, &json!({ "error": "x" }));
            assert_eq!(plain.2, Map::from_iter([("status".to_owned(), json!(status))]));
            assert_eq!(plain.1, hint_of_status(status));
            for words in OTHER_WORDS {
                assert_eq!(react(&client, status, &json!({ "error": words })), plain, "{status}");
            }
            let (exit_code, hint, details, _) =
                react(&client, status, &json!({ "error": "x", "code": "of_2031" }));
            assert_eq!((exit_code, &hint), (plain.0, &plain.1));
            assert_eq!(details["code"], "of_2031");
            let conflict = details.get("conflict").and_then(Value::as_str);
            assert_eq!(conflict, (status == 409).then_some("of_2031"));
        }
    }
}
