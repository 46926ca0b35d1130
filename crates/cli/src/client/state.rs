//! What a server shows of one release or one project, as of one commit (D232). Signatures, objections and withdrawals
//! in it verify; whether their authors are the right ones, each command finds out.

use countersign_api::state::{DroppedReleases, LogAnswer, StateResponse};
use countersign_core::documents::{history::Agreement, history::History, layout, signers::SignersFile};
use countersign_core::proof::state::{State, StateSubject};
use countersign_core::rules::snapshot::{ReadError, Scratch, Snapshot as _};
use countersign_core::values::shown::{plural, quoted};
use countersign_core::values::{
    bounds::STATE_BYTES, digest::Sha512, json::ParseError, key::PublicKey, path::RepoPath, time::Timestamp,
    wire::routes,
};
use countersign_explain::describe::proposal::{VetoedProposal, list_vetoed};
use countersign_explain::{progress::Names, words::shown_signer};
use serde_json::{Value, json};

use crate::words::{error::CliError, output::quote, table::when_text};
use crate::{client::ServerClient, client::now, settings::trust::TrustFile};

/// What of a path is asked for (D241).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StateQuestion {
    /// What is at the path.
    Path,
    /// The release of the project with this tag, or in this directory.
    Tag(String),
    /// The release in the directory; of a project, its newest one, `PROJECT@latest`.
    Newest,
}

impl StateQuestion {
    /// Whether an answer is about what was asked for.
    fn is_about(&self, path: &RepoPath, answer: &StateResponse) -> bool {
        match (self, &answer.state.subject) {
            (Self::Path, StateSubject::Release(index)) => index == path || *index == layout::index_in(path),
            (Self::Path | Self::Newest, StateSubject::Project(project)) => {
                let signers = [layout::active_signers(project), layout::pending_signers(project)];
                project == path || signers.contains(path)
            }
            (Self::Tag(tag), StateSubject::Release(index)) => {
                StateSubject::indexes_of_tag(path, tag).contains(index)
            }
            (Self::Newest, StateSubject::Release(index)) => index.is_inside(path),
            (Self::Tag(_), StateSubject::Project(_)) => false,
        }
    }
}

impl ServerClient {
    /// The state of a release or a project, as of one commit; `None` if the server says that it has neither there.
    pub(crate) async fn state(
        &self,
        path: &RepoPath,
        question: &StateQuestion,
    ) -> Result<Option<Shown>, CliError> {
        let mut url = self.route(routes::STATE, Some(path));
        match question {
            StateQuestion::Path => {}
            StateQuestion::Tag(tag) => drop(url.query_pairs_mut().append_pair("tag", tag)),
            StateQuestion::Newest => drop(url.query_pairs_mut().append_pair("newest", "true")),
        }
        let past = TrustFile::locate().map(|trust| trust.find_past(path)).unwrap_or_default();
        let known = past.history.entries.last().map(|entry| Sha512::of(entry.signers_config.as_bytes()));
        if let Some(known) = known {
            url.query_pairs_mut().append_pair("history_after", &known.to_prefixed());
        }
        if let Some(size) = past.log_size {
            url.query_pairs_mut().append_pair("log_size", &size.to_string());
        }
        let Some(answer) = self.find(url, STATE_BYTES).await? else { return Ok(None) };
        let state = StateResponse::parse(&answer.bytes).and_then(|mut state| {
            if !question.is_about(path, &state) {
                return Err(ParseError::new("path", "it is about something else"));
            }
            match state.history_after.take() {
                None => {}
                Some(after) if Some(after) == known => state.state.put_before(past.history),
                Some(_) => return Err(ParseError::new("history_after", "it was not asked for")),
            }
            Ok(state)
        });
        let state = state.map_err(|error| self.unusable(path, &answer, error))?;
        Shown::new(self, state).map(Some)
    }

    /// The state of what is at a path. It is empty if the path has nothing.
    pub(crate) async fn state_at(&self, path: &RepoPath) -> Result<Shown, CliError> {
        let found = self.state(path, &StateQuestion::Path).await?;
        Ok(found.unwrap_or_else(|| Shown::nothing(self, path)))
    }
}

/// The state of one release or one project, as files.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) answer: StateResponse,
    pub(crate) files: Scratch,
    /// The server that shows it.
    pub(crate) client: ServerClient,
}

impl Shown {
    pub(super) fn new(client: &ServerClient, answer: StateResponse) -> Result<Self, CliError> {
        let files = answer.state.to_files();
        let files =
            files.map_err(|error| client.unusable_content(&error.path, ParseError::new("", error.reason)))?;
        Ok(Self { answer, files, client: client.clone() })
    }

    /// The state that says that there is nothing at this path.
    pub(crate) fn nothing(client: &ServerClient, path: &RepoPath) -> Self {
        let project = path.parent().unwrap_or_else(|| path.clone());
        let (subject, files) = (StateSubject::Release(path.clone()), Default::default());
        let answer = StateResponse {
            commit: String::new(),
            committed_at: Timestamp::from_unix_seconds(0).expect("1970 is a year"),
            state: State { subject, project, evidence: None, history: None, files },
            staple: None,
            log: LogAnswer::default(),
            history_after: None,
            drops: DroppedReleases::default(),
            skipped: Vec::new(),
        };
        Self { answer, files: Scratch::default(), client: client.clone() }
    }

    pub(crate) fn subject(&self) -> &StateSubject {
        &self.answer.state.subject
    }

    pub(crate) fn project(&self) -> &RepoPath {
        &self.answer.state.project
    }

    pub(crate) fn history(&self) -> &History {
        self.answer.state.history()
    }

    pub(crate) fn contains(&self, path: &RepoPath) -> bool {
        self.files.contains(path)
    }

    /// A stored document, as text.
    pub(crate) fn document(&self, path: &RepoPath) -> Option<String> {
        let bytes = self.files.read(path).ok().flatten()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// A stored document, parsed.
    pub(crate) fn parsed<T>(
        &self,
        path: &RepoPath,
        parse: fn(&[u8]) -> Result<T, ParseError>,
    ) -> Result<Option<T>, CliError> {
        self.read(|files| files.read_document(path, parse))
    }

    /// Puts the names of signers in the place of their keys where the hint of an error replaces a key (D246).
    pub(crate) fn naming_keys(&self, error: CliError) -> CliError {
        let (names, keys) = (self.names(), self.listed_keys().unwrap_or_default());
        let hint = keys.into_iter().fold(error.hint().to_owned(), |hint, key| match names.signer(key).name {
            Some(name) if quote(&name) == name => {
                hint.replace(&format!("--replace {key}="), &format!("--replace {name}="))
            }
            Some(_) | None => hint,
        });
        error.with_hint(hint)
    }

    /// What core reads in the files. An error says that one of them is not what its path says.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Scratch) -> Result<T, ReadError>) -> Result<T, CliError> {
        read(&self.files).map_err(|ReadError { path, reason }| {
            self.client.unusable_content(&path, ParseError::new("", reason))
        })
    }

    /// Releases of the project whose signatures proposed signers would drop (D16): the server's word, for information.
    pub(crate) fn drops(&self) -> DroppedReleases {
        let DroppedReleases { releases, more } = &self.answer.drops;
        let is_own = |index: &&RepoPath| match self.subject() {
            StateSubject::Project(project) => index.is_inside(project),
            StateSubject::Release(_) => false,
        };
        DroppedReleases { releases: releases.iter().filter(is_own).cloned().collect(), more: *more }
    }

    /// The signers in force.
    pub(crate) fn signers(&self) -> Result<Option<SignersFile>, CliError> {
        self.parsed(&layout::active_signers(self.project()), SignersFile::parse)
    }

    /// The signers file in force, and one that is proposed.
    fn signers_files(&self) -> Result<Vec<SignersFile>, CliError> {
        let proposed = self.parsed(&layout::pending_signers(self.project()), SignersFile::parse)?;
        Ok(self.signers()?.into_iter().chain(proposed).collect())
    }

    /// What those are called whom the two files list; no names where one of them is not readable.
    pub(crate) fn names(&self) -> Names {
        Names::of(&self.signers_files().unwrap_or_default())
    }

    /// The keys of the signers file in force, and of one that is proposed.
    pub(crate) fn listed_keys(&self) -> Result<Vec<PublicKey>, CliError> {
        Ok(self.signers_files()?.iter().flat_map(SignersFile::keys).collect())
    }
}

// Proposed signers beyond their signatures: until when they wait (D131), what masters vetoed last (D135), and which
// signatures a rotation drops. The server's word, except that signatures which do not verify are not counted.

/// How many releases are named that lose their signatures.
const MOST_NAMED: usize = 5;

/// When proposed signers take effect that have all signatures. `None` while they collect.
pub(crate) fn find_due(shown: &Shown) -> Result<Option<Timestamp>, CliError> {
    let agreement = layout::agreement_of(&layout::pending_signers(shown.project()));
    Ok(shown.parsed(&agreement, Agreement::parse)?.map(|agreement| agreement.due_at))
}

/// When signers take effect that have all signatures, in words. A block of the operator can hold them back (D173).
pub(crate) fn due_text(until: Timestamp) -> String {
    let is_past = now().is_ok_and(|now| until <= now);
    match is_past {
        true => format!(
            "was due on {}, and the server's operator holds it back; only `countersign admin drop` removes it before the \
             block ends",
            when_text(until)
        ),
        false => format!("takes effect on {}", when_text(until)),
    }
}

/// The proposal that the masters vetoed last. It is shown until the next activation (D136).
pub(crate) fn find_vetoed(shown: &Shown) -> Result<Option<VetoedProposal>, CliError> {
    let vetoed = shown.read(|files| list_vetoed(files, shown.project()))?;
    Ok(vetoed.into_iter().next())
}

pub(crate) fn vetoed_json(vetoed: &VetoedProposal) -> Value {
    let VetoedProposal { reason, vetoed_at, signed, .. } = vetoed;
    let keys: Vec<PublicKey> = signed.iter().map(|member| member.signer.key).collect();
    json!({"reason": reason, "vetoed_by": keys, "vetoed_at": vetoed_at})
}

/// Says who vetoed a proposal, when and why.
pub(crate) fn vetoed_text(VetoedProposal { reason, vetoed_at, signed, .. }: &VetoedProposal) -> String {
    let who: Vec<String> = signed.iter().map(|member| shown_signer(&member.signer)).collect();
    let at = vetoed_at.map(when_text).unwrap_or_default();
    format!("by {}, {at}, for the reason {}", who.join(", "), quoted(reason))
}

/// The releases that lose their signatures, as in `2 collecting releases: …`.
pub(crate) fn dropped_text(DroppedReleases { releases, more }: &DroppedReleases) -> Option<String> {
    let count = releases.len();
    if count == 0 {
        return None;
    }
    let named = releases.iter().take(MOST_NAMED).map(RepoPath::as_str).collect::<Vec<_>>();
    let (least, rest) = (if *more { "at least " } else { "" }, count.saturating_sub(MOST_NAMED));
    let rest = if rest > 0 { format!(" and {rest} more") } else { String::new() };
    Some(format!("{least}{count} collecting release{}: {}{rest}", plural(count), named.join(", ")))
}
