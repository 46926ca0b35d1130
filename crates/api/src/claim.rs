//! What a commit claims to be, by its message alone. A claim proves nothing: it says which decision to run again.

use countersign_core::{
    documents::layout,
    rules::decide::titles,
    values::{key::PublicKey, path::RepoPath, time::Timestamp},
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    Create,
    Register {
        project: RepoPath,
        submitter: Option<PublicKey>,
    },
    /// An update. With `due`, the proposal comes back with all consent, and waits.
    Update {
        project: RepoPath,
        submitter: PublicKey,
        url: String,
        due: Option<Timestamp>,
    },
    Sign {
        file: RepoPath,
        signer: PublicKey,
        completes: bool,
    },
    /// The signature completes the consent to signers, which wait.
    Agree {
        project: RepoPath,
        signer: PublicKey,
        due: Timestamp,
    },
    /// Signers have waited long enough; no one asked.
    Activate {
        project: RepoPath,
    },
    Veto {
        project: RepoPath,
        master: PublicKey,
        completes: bool,
    },
    Assets {
        index: RepoPath,
        caller: PublicKey,
    },
    Withdraw {
        index: RepoPath,
        caller: PublicKey,
    },
    /// An objection. `stands` is false if it is taken back.
    Object {
        index: RepoPath,
        objector: PublicKey,
        stands: bool,
    },
    Revoke {
        file: RepoPath,
        revoker: PublicKey,
        completes: bool,
    },
    Drop {
        project: RepoPath,
    },
}

impl Claim {
    pub fn parse(message: &str) -> Option<Self> {
        let mut lines = message.lines();
        let first = lines.next()?;
        let field = |name: &str| lines.clone().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
        let by = field(titles::BY).and_then(|key| PublicKey::parse_prefixed(&key).ok());
        let from = field(titles::FROM);
        let due = field(titles::DUE).and_then(|time| Timestamp::parse(&time).ok());
        let subject = |title: &str| subject_of(first, title);
        let sign = |file: RepoPath, completes| Some(Self::Sign { file, signer: by?, completes });
        let revoke = |file: RepoPath, completes| Some(Self::Revoke { file, revoker: by?, completes });
        if first == titles::CREATE {
            Some(Self::Create)
        } else if let Some(project) = subject(titles::REGISTER) {
            Some(Self::Register { project, submitter: by })
        } else if let Some(project) = subject(titles::PROPOSE).or_else(|| subject(titles::REPLACE)) {
            Some(Self::Update { project, submitter: by?, url: from?, due })
        } else if let Some(project) = subject(titles::ACTIVATE) {
            match field(titles::BY) {
                Some(_) => sign(layout::pending_signers(&project), true),
                None => Some(Self::Activate { project }),
            }
        } else if let Some(project) = subject(titles::AGREE) {
            Some(Self::Agree { project, signer: by?, due: due? })
        } else if let Some(project) = subject(titles::RECORD_VETO) {
            Some(Self::Veto { project, master: by?, completes: false })
        } else if let Some(project) = subject(titles::VETO) {
            Some(Self::Veto { project, master: by?, completes: true })
        } else if let Some(file) = subject(titles::COMPLETE) {
            // Before the title that it begins with.
            sign(file, true)
        } else if let Some(file) = subject(titles::SIGN) {
            sign(file, false)
        } else if let Some(index) = subject(titles::ADD).or_else(|| subject(titles::CORRECT)) {
            Some(Self::Assets { index, caller: by? })
        } else if let Some(index) = subject(titles::WITHDRAW) {
            Some(Self::Withdraw { index, caller: by? })
        } else if let Some(index) = subject(titles::OBJECT) {
            Some(Self::Object { index, objector: by?, stands: true })
        } else if let Some(index) = subject(titles::TAKE_BACK_OBJECTION) {
            Some(Self::Object { index, objector: by?, stands: false })
        } else if let Some(file) = subject(titles::RECORD_REVOCATION) {
            revoke(file, false)
        } else if let Some(file) = subject(titles::REVOKE) {
            revoke(file, true)
        } else {
            Some(Self::Drop { project: subject(titles::DROP)? })
        }
    }
}

/// The path behind a title.
fn subject_of(line: &str, title: &str) -> Option<RepoPath> {
    let text = line.strip_prefix(title)?.strip_prefix(' ')?;
    RepoPath::parse(text).ok().filter(|path| path.as_str() == text)
}
