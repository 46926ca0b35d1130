//! What a server says, for people who type commands and never see a request.

use Said::{Begins, Has};
use countersign_forge::guard::GuardRefusal;

use crate::error::CliError;

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

/// Only where it stands alone: a part of a path stays as it is.
fn replace_word(text: &str, word: &str, meaning: &str) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, behind) = (&rest[..at], &rest[at + word.len()..]);
        let begins = before.chars().next_back().or(replaced.chars().next_back());
        let begins = begins.is_none_or(|c| c.is_whitespace() || "(\"'`".contains(c));
        let ends = behind.chars().next().is_none_or(|c| c.is_whitespace() || ":,;.)\"'`".contains(c));
        replaced.push_str(before);
        replaced.push_str(if begins && ends { meaning } else { word });
        rest = behind;
    }
    replaced + rest
}

/// The part of a message that is always the same.
#[derive(Debug)]
enum Said {
    /// All messages that quote what people wrote have such a beginning, so no quoted text is taken for another message.
    Begins(&'static str),
    /// Behind a path or a number.
    Has(&'static str),
}

/// One of the reasons for which a change is in the way of another.
#[derive(Debug)]
pub(super) struct Conflict {
    said: Said,
    /// For programs.
    pub(super) name: &'static str,
    /// The next step.
    pub(super) hint: &'static str,
}

/// The server's messages for 409.
const CONFLICTS: [Conflict; 27] = [
    Conflict {
        said: Begins("Project already registered"),
        name: "project_registered",
        hint: "nothing is left to do; `countersign update SIGNERS_URL` proposes new signers",
    },
    Conflict {
        said: Begins("Registration already in progress"),
        name: "registration_pending",
        hint: "`countersign status PROJECT` shows who has yet to sign it",
    },
    Conflict {
        said: Begins("The project "),
        name: "project_overlaps",
        hint: "register the project at a directory that is neither inside nor around the other one",
    },
    Conflict {
        said: Begins("Another signers update"),
        name: "other_update_pending",
        hint: "`countersign status PROJECT` shows the pending one: sign it, or let an admin propose yours",
    },
    Conflict {
        said: Begins("A master key proposed or signed"),
        name: "masters_update_pending",
        hint: "`countersign status PROJECT` shows the pending one: sign it, or let a master propose yours",
    },
    Conflict {
        said: Begins("The signers history"),
        name: "history_full",
        hint: "propose a signers file with fewer keys",
    },
    Conflict {
        said: Has("registrations below"),
        name: "too_many_registrations",
        hint: "complete one of them, or ask the server's operator to drop one",
    },
    Conflict {
        said: Has("were replaced already"),
        name: "too_many_proposals",
        hint: "complete the pending proposal (`countersign status PROJECT` shows who is missing), or let the masters stop \
               it: `countersign veto PROJECT`",
    },
    Conflict {
        said: Begins("Signature already collected"),
        name: "already_signed",
        hint: "nothing is left for you to do; `countersign status NAME` shows who is missing",
    },
    Conflict {
        said: Has("is complete already"),
        name: "already_complete",
        hint: "nothing is left to sign; `countersign status NAME` shows who has signed",
    },
    Conflict {
        said: Begins("Release already registered"),
        name: "release_registered",
        hint: "`countersign status NAME` shows how far it is; another version needs a tag or directory of its own",
    },
    Conflict {
        said: Has("releases that still wait"),
        name: "too_many_releases",
        hint: "`countersign pending` lists them: sign some first",
    },
    Conflict {
        said: Begins("File has not been fully signed"),
        name: "not_complete",
        hint: "only complete releases are revoked; correct this one with `countersign release`, or leave it unsigned",
    },
    Conflict {
        said: Begins("Another revocation"),
        name: "other_revocation_pending",
        hint: "leave --reason out to join the pending one",
    },
    Conflict {
        said: Begins("The masters of "),
        name: "vetoed",
        hint: "ask the masters; you can propose another file, even if only its timestamp is new",
    },
    Conflict {
        said: Begins("The veto is not about"),
        name: "other_proposal",
        hint: "`countersign status PROJECT` shows what is proposed now: look at it, then run this again",
    },
    Conflict {
        said: Has(" has no signers in force"),
        name: "first_registration",
        hint: "leave it unsigned: it takes effect only when all keys in it have signed",
    },
    Conflict {
        said: Begins("Another veto"),
        name: "other_veto_pending",
        hint: "leave --reason out to join the pending one",
    },
    Conflict {
        said: Begins("Too late: "),
        name: "too_late",
        hint: "the proposed signers are due, and take effect as soon as the server can put them into force; until then \
               only its operator can remove them, with `countersign admin drop PROJECT`",
    },
    Conflict {
        said: Has("is a file where a directory"),
        name: "path_taken",
        hint: "publish it in a directory of its own",
    },
    Conflict {
        said: Has("so it can no longer be withdrawn"),
        name: "already_complete",
        hint: "it is complete: `countersign revoke NAME --reason TEXT` revokes it",
    },
    Conflict {
        said: Has("was withdrawn already"),
        name: "already_withdrawn",
        hint: "nothing is left to do; `countersign status NAME` shows who withdrew it and why",
    },
    Conflict {
        said: Begins("Digest mismatch"),
        name: "corrected",
        hint: "`countersign status NAME` shows the corrected release: look at it, then run this again",
    },
    Conflict {
        said: Has("the objection must be later"),
        name: "not_later",
        hint: "check this computer's clock, and run it again",
    },
    Conflict {
        said: Has("that it could take back"),
        name: "no_objection",
        hint: "nothing is left to do; `countersign status NAME` shows all objections",
    },
    Conflict {
        said: Has("objections already"),
        name: "too_many_objections",
        hint: "keys that have objected can still change what they said; `countersign status NAME` shows all objections",
    },
    Conflict {
        said: Has("is revoked"),
        name: "revoked",
        hint: "do not use it; `countersign status NAME` shows the reason",
    },
];

/// `None` where the message of another version is not known here; it speaks for itself.
pub(super) fn find_conflict(said: &str) -> Option<&'static Conflict> {
    let begins = |conflict: &&Conflict| matches!(conflict.said, Begins(text) if said.starts_with(text));
    let has = |conflict: &&Conflict| matches!(conflict.said, Has(text) if said.contains(text));
    CONFLICTS.iter().find(begins).or_else(|| CONFLICTS.iter().find(has))
}

#[cfg(test)]
mod tests;

/// A server that only a signers file names, at an address where strangers must not send this computer (D227).
pub(super) fn not_asked(address: &str, refusal: &GuardRefusal) -> CliError {
    let reason = match refusal {
        GuardRefusal::NotPublic { kind, .. } => format!("it is or resolves to {kind}"),
        GuardRefusal::PlainHttp { .. } => "its address is not https".to_owned(),
        GuardRefusal::Scheme { .. } | GuardRefusal::UserInfo | GuardRefusal::Host(_) => refusal.to_string(),
    };
    CliError::usage(
        format!(
            "the project's signers file names the server {address}, which this computer does not ask: {reason}"
        ),
        format!(
            "if you know this server, name it yourself: --server {address}, or `countersign config set server`"
        ),
    )
}
