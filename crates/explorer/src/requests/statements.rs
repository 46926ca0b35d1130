//! Withdrawals, objections, rebuilds and vetoes, as their documents say them.

use std::sync::Arc;

use countersign_core::documents::index::{AssetName, ReleaseIndex};
use countersign_core::documents::signed_request::{WithdrawBody, Withdrawal};
use countersign_core::documents::statement::{
    Objection, Rebuild, RebuiltFile, SignedStatement, StatementKind, Veto,
};
use countersign_core::rules::decide::activate::{ActivateRefusal, activate_due};
use countersign_core::rules::decide::rebuild::rebuild;
use countersign_core::rules::decide::statement::{StatementRefusal, object, veto};
use countersign_core::rules::decide::withdraw::{WithdrawRefusal, withdraw};
use countersign_core::values::{digest::Sha512, key::Signature, time::Timestamp};
use countersign_testing::{path, shifted_seconds, signed_request};

use crate::action::{Action, Got, Offered, Says, Seen, Word};
use crate::requests::{Asked, Decision, Requests, changed, content_at, digests_of, json_text};
use crate::{contents::ContentId, contents::Contents, view::View};

/// The commit that builders build.
pub const COMMIT: &str = "00112233445566778899aabbccddeeff00112233";

/// How far a document can be ahead of the clock, in seconds.
pub const LEAD: i64 = 600;

impl Word {
    pub fn text(self) -> Option<&'static str> {
        match self {
            Self::First => Some("it does not match my build"),
            Self::TakenBack => None,
            Self::Again => Some("it does not match after all"),
            Self::OfOther => Some("another file does not match"),
            Self::Ahead => Some("it will not match"),
        }
    }

    fn seconds(self) -> i64 {
        match self {
            Self::First => 0,
            Self::TakenBack => 60,
            Self::Again | Self::OfOther => 120,
            Self::Ahead => 1_000_000_000,
        }
    }
}

impl Got {
    /// Whether it is about the files of the release that is there, and dated in time.
    pub fn is_right(self) -> bool {
        matches!(self, Self::Same | Self::Part | Self::Different | Self::Again)
    }

    pub fn seconds(self) -> i64 {
        match self {
            Self::Same => 0,
            Self::Part => 30,
            Self::Different => 60,
            Self::Again | Self::OfOther | Self::OfElsewhere | Self::Unlisted | Self::AsObjection => 120,
            Self::Ahead => 1_000_000_000,
        }
    }

    /// The files, as a builder got them that made those of `index`.
    fn files(self, index: &ReleaseIndex) -> Vec<RebuiltFile> {
        let published = index.published_files.iter();
        let mut files: Vec<RebuiltFile> = published
            .map(|file| RebuiltFile { file_name: file.file_name.clone(), digests: file.digests })
            .collect();
        match self {
            Self::Part => files.truncate(1),
            Self::Different => files[0].digests.sha512 = Some(Sha512::of(b"another build")),
            Self::Unlisted => files[0] = rebuilt("a", b"one"),
            Self::Same
            | Self::Again
            | Self::OfOther
            | Self::OfElsewhere
            | Self::Ahead
            | Self::AsObjection => {}
        }
        files
    }
}

impl Says {
    pub fn text(self) -> &'static str {
        match self {
            Self::First => "we did not ask for this",
            Self::Second => "a key was stolen",
            Self::OfOther => "not that file",
            Self::OfBefore => "not after that file",
        }
    }
}

fn rebuilt(name: &str, content: &[u8]) -> RebuiltFile {
    RebuiltFile { file_name: AssetName::parse(name).expect("a name"), digests: digests_of(content) }
}

impl Requests<'_> {
    pub(super) fn withdraw(&self, asked: Asked<'_>, action: Action, now: Timestamp) -> Decision {
        let Asked { contents, state, reads } = asked;
        let Action::Withdraw { project, release, by, seen } = action else {
            unreachable!("asked for withdrawals alone")
        };
        let file_path = self.paths[usize::from(project)].indexes[usize::from(release)].clone();
        let index = content_at(contents, state, &file_path, reads);
        let subject_digest = Some(match seen {
            Seen::This => Sha512::of(contents.bytes(index)),
            Seen::Other => Sha512::of(b"another file"),
        });
        let body = WithdrawBody { file_path, reason: "the wrong tag".to_owned(), subject_digest };
        let request = signed_request(&self.world.people[usize::from(by)].secret, now, &json_text(&body));
        match withdraw(&View { contents, state, reads }, &Withdrawal { request, body }) {
            Ok((change, ())) => changed(change),
            Err(WithdrawRefusal::Stored(error)) => Decision::Corrupt(error),
            Err(refusal) => Decision::Refused(refusal.to_string()),
        }
    }

    pub(super) fn object(&mut self, asked: Asked<'_>, action: Action, now: Timestamp) -> Decision {
        let Asked { contents, state, reads } = asked;
        let Action::Object { project, release, word, by, offered } = action else {
            unreachable!("asked for objections alone")
        };
        let file_path = self.paths[usize::from(project)].indexes[usize::from(release)].clone();
        let index = content_at(contents, state, &file_path, reads);
        let subject_digest = match word {
            Word::OfOther => Sha512::of(b"another file"),
            Word::First | Word::TakenBack | Word::Again | Word::Ahead => Sha512::of(contents.bytes(index)),
        };
        let timestamp = shifted_seconds(self.world.clocks[0], i128::from(word.seconds()));
        let document = Objection { text: word.text().map(str::to_owned), subject_digest, timestamp };
        let (text, signature) = self.sign_text(contents, by, offered, document.write());
        let (kind, public_key) = (StatementKind::Objection, self.world.people[usize::from(by)].public);
        let statement = SignedStatement { kind, file_path, text, signature, public_key };
        match object(&View { contents, state, reads }, &statement, now) {
            Ok((change, _)) => changed(change),
            Err(StatementRefusal::Stored(error)) => Decision::Corrupt(error),
            Err(refusal) => Decision::Refused(refusal.to_string()),
        }
    }

    pub(super) fn rebuild(&mut self, asked: Asked<'_>, action: Action, now: Timestamp) -> Decision {
        let Asked { contents, state, reads } = asked;
        let Action::Rebuild { project, release, got, by, offered } = action else {
            unreachable!("asked for rebuilds alone")
        };
        let plan = &self.world.projects[usize::from(project)];
        let file_path = self.paths[usize::from(project)].indexes[usize::from(release)].clone();
        let id = content_at(contents, state, &file_path, reads);
        let index = ReleaseIndex::parse(contents.bytes(id));
        // Where no release is, a file is stated all the same.
        let files = index.map_or_else(|_| vec![rebuilt("app.tar.gz", b"one")], |index| got.files(&index));
        let this = Sha512::of(contents.bytes(id));
        let timestamp = shifted_seconds(self.world.clocks[0], i128::from(got.seconds()));
        let document = Rebuild {
            rebuild_of: match got {
                Got::OfElsewhere => path(&format!("{}/releases/tag/v0/svc.index.json", plan.id)),
                _ => file_path.clone(),
            },
            subject_digest: if got == Got::OfOther { Sha512::of(b"another file") } else { this },
            source_commit: COMMIT.to_owned(),
            files,
            timestamp,
        };
        let objection = || Objection { text: Some("no".to_owned()), subject_digest: this, timestamp };
        let text = if got == Got::AsObjection { objection().write() } else { document.write() };
        let (text, signature) = self.sign_text(contents, by, offered, text);
        let (kind, public_key) = (StatementKind::Rebuild, self.world.people[usize::from(by)].public);
        let statement = SignedStatement { kind, file_path, text, signature, public_key };
        match rebuild(&View { contents, state, reads }, &statement, now) {
            Ok((change, _)) => changed(change),
            Err(StatementRefusal::Stored(error)) => Decision::Corrupt(error),
            Err(refusal) => Decision::Refused(refusal.to_string()),
        }
    }

    pub(super) fn veto(&mut self, asked: Asked<'_>, action: Action, now: Timestamp) -> Decision {
        let Asked { contents, state, reads } = asked;
        let Action::Veto { project, says, by, offered } = action else {
            unreachable!("asked for vetoes alone")
        };
        let plan = &self.world.projects[usize::from(project)];
        let file = self.paths[usize::from(project)].pending.clone();
        let in_force = path(&format!("{}/svc.signers/svc.signers.json", plan.id));
        let mut digest = |file| {
            let id = content_at(contents, state, file, reads);
            Sha512::of(contents.bytes(id))
        };
        let (proposed, previous, other) = (digest(&file), digest(&in_force), Sha512::of(b"another file"));
        let document = Veto {
            veto: says.text().to_owned(),
            project_id: plan.id.clone(),
            signers_file_digest: if says == Says::OfOther { other } else { proposed },
            previous: if says == Says::OfBefore { other } else { previous },
            timestamp: self.world.clocks[0],
        };
        let (text, signature) = self.sign_text(contents, by, offered, document.write());
        let (kind, public_key) = (StatementKind::Veto, self.world.people[usize::from(by)].public);
        let statement = SignedStatement { kind, file_path: file, text, signature, public_key };
        match veto(&View { contents, state, reads }, &statement, now) {
            Ok((change, _)) => changed(change),
            Err(StatementRefusal::Stored(error)) => Decision::Corrupt(error),
            Err(refusal) => Decision::Refused(refusal.to_string()),
        }
    }

    pub(super) fn activate(&self, asked: Asked<'_>, project: u8, now: Timestamp) -> Decision {
        let Asked { contents, state, reads } = asked;
        let id = &self.world.projects[usize::from(project)].id;
        match activate_due(&View { contents, state, reads }, id, now) {
            Ok((change, ())) => changed(change),
            Err(ActivateRefusal::Stored(error)) => Decision::Corrupt(error),
            Err(refusal) => Decision::Refused(refusal.to_string()),
        }
    }

    fn sign_text(
        &mut self,
        contents: &mut Contents,
        by: u8,
        offered: Offered,
        text: Vec<u8>,
    ) -> (String, Signature) {
        let id: ContentId = contents.intern(&Arc::from(&text[..]));
        let signature = self.offer(contents, by, offered, id);
        (String::from_utf8(text).expect("our documents are text"), signature)
    }
}
