//! What a server says, for people who type commands and never see a request.

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

/// One of the reasons for which a change is in the way of another.
#[derive(Debug)]
pub(super) struct Conflict {
    /// A part of the server's message, which is always the same.
    said: &'static str,
    /// For programs.
    pub(super) name: &'static str,
    /// The next step.
    pub(super) hint: &'static str,
}

/// The server's messages for 409.
const CONFLICTS: [Conflict; 23] = [
    Conflict {
        said: "Project already registered",
        name: "project_registered",
        hint: "nothing is left to do; `countersign update SIGNERS_URL` proposes new signers",
    },
    Conflict {
        said: "Registration already in progress",
        name: "registration_pending",
        hint: "`countersign status PROJECT` shows who has yet to sign it",
    },
    Conflict {
        said: "overlaps with the project",
        name: "project_overlaps",
        hint: "register the project at a directory that is neither inside nor around the other one",
    },
    Conflict {
        said: "Another signers update",
        name: "other_update_pending",
        hint: "`countersign status PROJECT` shows the pending one: sign it, or let an admin propose yours",
    },
    Conflict {
        said: "signers history",
        name: "history_full",
        hint: "propose a signers file with fewer keys",
    },
    Conflict {
        said: "registrations below",
        name: "too_many_registrations",
        hint: "complete one of them, or ask the server's operator to drop one",
    },
    Conflict {
        said: "were replaced already",
        name: "too_many_proposals",
        hint: "complete the pending proposal (`countersign status PROJECT` shows who is missing), or let the masters stop \
               it: `countersign veto PROJECT`",
    },
    Conflict {
        said: "Signature already collected",
        name: "already_signed",
        hint: "nothing is left for you to do; `countersign status NAME` shows who is missing",
    },
    Conflict {
        said: "is complete already",
        name: "already_complete",
        hint: "nothing is left to sign; `countersign status NAME` shows who has signed",
    },
    Conflict {
        said: "Release already registered",
        name: "release_registered",
        hint: "`countersign status NAME` shows how far it is; another version needs a tag or directory of its own",
    },
    Conflict {
        said: "releases that still wait",
        name: "too_many_releases",
        hint: "`countersign pending` lists them: sign some first",
    },
    Conflict {
        said: "has not been fully signed",
        name: "not_complete",
        hint: "only complete releases are revoked; correct this one with `countersign release`, or leave it unsigned",
    },
    Conflict {
        said: "Another revocation",
        name: "other_revocation_pending",
        hint: "leave --reason out to co-sign the pending one",
    },
    Conflict {
        said: "have vetoed this signers file",
        name: "vetoed",
        hint: "ask the masters; another file, also one with a new timestamp, can be proposed",
    },
    Conflict {
        said: "Another veto",
        name: "other_veto_pending",
        hint: "leave --reason out to co-sign the pending one",
    },
    Conflict {
        said: "Too late: ",
        name: "too_late",
        hint: "the proposed signers are in force: `countersign chain PROJECT` shows them",
    },
    Conflict {
        said: "is a file where a directory",
        name: "path_taken",
        hint: "publish it in a directory of its own",
    },
    Conflict {
        said: "so it can no longer be withdrawn",
        name: "already_complete",
        hint: "it is complete: `countersign revoke NAME --reason TEXT` revokes it",
    },
    Conflict {
        said: "was withdrawn already",
        name: "already_withdrawn",
        hint: "nothing is left to do; `countersign status NAME` shows who withdrew it and why",
    },
    Conflict {
        said: "It was corrected",
        name: "corrected",
        hint: "`countersign status NAME` shows the corrected release: look at it, then run this again",
    },
    Conflict {
        said: "the objection must be later",
        name: "not_later",
        hint: "check this computer's clock, and run it again",
    },
    Conflict {
        said: "that it could take back",
        name: "no_objection",
        hint: "nothing is left to do; `countersign status NAME` shows all objections",
    },
    Conflict {
        said: "is revoked",
        name: "revoked",
        hint: "do not use it; `countersign status NAME` shows the reason",
    },
];

/// `None` where the message of another version is not known here; it speaks for itself.
pub(super) fn find_conflict(said: &str) -> Option<&'static Conflict> {
    CONFLICTS.iter().find(|conflict| said.contains(conflict.said))
}
