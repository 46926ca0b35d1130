//! What the files of a repository are for, told by their names alone. The names are spelled here once more on purpose.

/// The role of a path: what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathRole {
    Active {
        project: u8,
        slot: u8,
    },
    Pending {
        project: u8,
        slot: u8,
    },
    /// A file beside what is pending: that it waits, and a veto that was begun.
    Beside {
        project: u8,
        slot: u8,
    },
    Superseded {
        project: u8,
        dir: u64,
        slot: u8,
    },
    /// A veto, by the beginning of the digest of the file that was vetoed.
    Vetoed {
        project: u8,
        dir: u64,
        slot: u8,
    },
    History {
        project: u8,
        number: u32,
    },
    Release {
        project: u8,
        release: u8,
        slot: u8,
    },
    /// No rule of this world writes here.
    Unknown,
}

/// Slots of a signers file.
pub const FILE: usize = 0;
pub const METADATA: usize = 1;
pub const REGISTRATION: usize = 2;
pub const SET: usize = 3;
pub const METADATA_SET: usize = 4;
const SIGNERS_SLOTS: [&str; 5] =
    ["", ".metadata.json", ".registration.json", ".signatures.json", ".metadata.json.signatures.json"];

/// Slots beside a signers file that is pending.
pub const AGREED: usize = 0;
pub const VETO: usize = 1;
pub const VETO_SET: usize = 2;
const BESIDE_SLOTS: [&str; 3] = [".agreed.json", ".veto.json.pending", ".veto.json.signatures.json.pending"];

/// Slots of a veto that is complete. Those who signed it are in the second.
const VETOED_SLOTS: [&str; 2] = ["svc.veto.json", "svc.veto.json.signatures.json"];

/// Slots of a release.
pub const INDEX: usize = 0;
pub const COPY: usize = 1;
pub const COLLECTING: usize = 2;
pub const COMPLETE: usize = 3;
pub const REVOKED: usize = 4;
pub const REVOCATION: usize = 5;
pub const REVOCATION_SET: usize = 6;
pub const REVOCATION_COPY: usize = 7;
pub const BEGUN: usize = 8;
pub const BEGUN_SET: usize = 9;
pub const REQUEST: usize = 10;
pub const REGISTRANT: usize = 11;
pub const OBJECTIONS: usize = 12;
pub const WITHDRAWN: usize = 13;
pub const FORMATS: usize = 14;
/// What was said of contents before. No rule depends on it, so a state does not remember it (`Contents::forget_said`).
pub const EARLIER: usize = 15;
/// What builders state.
pub const REBUILDS: usize = 16;
const RELEASE_SLOTS: [&str; 17] = [
    "", ".signers.json", ".signatures.json.pending", ".signatures.json", ".signatures.json.revoked",
    ".revocation.json", ".revocation.json.signatures.json", ".revocation.json.signers.json",
    ".revocation.json.pending", ".revocation.json.signatures.json.pending", ".revocation.json.request.json",
    ".registrant.json", ".objections.json", ".withdrawn.json", ".formats.json", ".earlier-objections.json",
    ".rebuilds.json",
];

/// Parts of a project, each of which the decisions mostly read or write as a whole. Releases follow, one part each.
pub const IN_FORCE: usize = 0;
/// What is stored with the signers in force, what they have vetoed, and the history.
pub const RECORD: usize = 1;
pub const PROPOSED: usize = 2;
pub const REPLACED: usize = 3;
pub const FIRST_RELEASE: usize = 4;

/// A set of parts, by bit.
pub type PartMask = u16;

/// The projects of a world and the directories of their releases, by which paths are told apart.
#[derive(Debug, Clone, Default)]
pub struct RoleNames {
    pub projects: Vec<ProjectNames>,
}

#[derive(Debug, Clone)]
pub struct ProjectNames {
    pub id: String,
    pub release_dirs: Vec<String>,
}

impl RoleNames {
    pub fn role(&self, path: &str) -> PathRole {
        let number = |at: usize| u8::try_from(at).expect("a small world");
        let found = self.projects.iter().enumerate().find_map(|(project, names)| {
            let below = path.strip_prefix(&names.id)?.strip_prefix('/')?;
            role_below(number(project), below).or_else(|| {
                let in_release = |dir: &String| below.strip_prefix(dir.as_str())?.strip_prefix('/');
                let (release, name) =
                    names.release_dirs.iter().enumerate().find_map(|(n, dir)| Some((n, in_release(dir)?)))?;
                let suffix = name.strip_prefix("svc.index.json")?;
                let slot = RELEASE_SLOTS.iter().position(|known| *known == suffix)?;
                Some(PathRole::Release {
                    project: number(project),
                    release: number(release),
                    slot: number(slot),
                })
            })
        });
        found.unwrap_or(PathRole::Unknown)
    }

    /// All parts: those of each project, and one for files of no known kind.
    pub fn part_count(&self) -> usize {
        self.first_part(self.projects.len()) + 1
    }

    pub fn first_part(&self, project: usize) -> usize {
        self.projects[..project].iter().map(|names| FIRST_RELEASE + names.release_dirs.len()).sum()
    }

    pub fn part(&self, role: PathRole) -> usize {
        let of = |project: u8, part: usize| self.first_part(usize::from(project)) + part;
        match role {
            PathRole::Active { project, slot } if usize::from(slot) == FILE => of(project, IN_FORCE),
            PathRole::Active { project, .. }
            | PathRole::History { project, .. }
            | PathRole::Vetoed { project, .. } => of(project, RECORD),
            PathRole::Pending { project, .. } | PathRole::Beside { project, .. } => of(project, PROPOSED),
            PathRole::Superseded { project, .. } => of(project, REPLACED),
            PathRole::Release { project, release, .. } => of(project, FIRST_RELEASE + usize::from(release)),
            PathRole::Unknown => self.part_count() - 1,
        }
    }

    /// The part of files of no known kind, which can be anywhere.
    fn unknown_part(&self) -> PartMask {
        1 << (self.part_count() - 1)
    }

    /// The parts that can hold files below this directory.
    pub fn parts_below(&self, dir: &str) -> PartMask {
        let mut mask = self.unknown_part();
        for (n, names) in self.projects.iter().enumerate() {
            let first = self.first_part(n);
            let below = dir.strip_prefix(&names.id).and_then(|rest| rest.strip_prefix('/'));
            let all = || mask_of(first..self.first_part(n + 1));
            mask |= match below.and_then(|below| below.split('/').next()) {
                Some("svc.signers") => mask_of([first + IN_FORCE, first + RECORD]),
                Some("svc.signers.history" | "svc.signers.vetoed") => mask_of([first + RECORD]),
                Some("svc.signers.pending") => mask_of([first + PROPOSED]),
                Some("svc.signers.superseded") => mask_of([first + REPLACED]),
                Some(_) => all(),
                None if names.id == dir || names.id.starts_with(&format!("{dir}/")) => all(),
                None => 0,
            };
        }
        mask
    }

    /// The parts below `dir` that can hold files of a release.
    pub fn releases_below(&self, dir: &str) -> PartMask {
        let others = self.parts_of_each(&[IN_FORCE, RECORD, PROPOSED, REPLACED]) & !self.unknown_part();
        self.parts_below(dir) & !others
    }

    /// The mask of these parts of every project.
    pub fn parts_of_each(&self, parts: &[usize]) -> PartMask {
        let firsts = (0..self.projects.len()).map(|project| self.first_part(project));
        let of = |first: usize| mask_of(parts.iter().map(move |part| first + part));
        firsts.fold(self.unknown_part(), |mask, first| mask | of(first))
    }
}

fn mask_of(parts: impl IntoIterator<Item = usize>) -> PartMask {
    parts.into_iter().fold(0, |mask, part| mask | 1 << part)
}

fn role_below(project: u8, below: &str) -> Option<PathRole> {
    let slot = |name: &str, ending: &str| {
        let suffix = name.strip_prefix("svc.signers.json")?;
        let of = |slot: usize| SIGNERS_SLOTS[slot].to_owned() + if slot >= SET { ending } else { "" };
        (0..SIGNERS_SLOTS.len()).find(|slot| of(*slot) == suffix).and_then(|slot| u8::try_from(slot).ok())
    };
    let position =
        |names: &[&str], name: &str| u8::try_from(names.iter().position(|known| *known == name)?).ok();
    let beside = |name: &str| position(&BESIDE_SLOTS, name.strip_prefix("svc.signers.json")?);
    let short = |dir: &str| u64::from_str_radix(dir.get(..16)?, 16).ok();
    match below.split('/').collect::<Vec<_>>()[..] {
        ["svc.signers", name] => Some(PathRole::Active { project, slot: slot(name, "")? }),
        ["svc.signers.pending", name] => match beside(name) {
            Some(slot) => Some(PathRole::Beside { project, slot }),
            None => Some(PathRole::Pending { project, slot: slot(name, ".pending")? }),
        },
        ["svc.signers.superseded", dir, name] => {
            Some(PathRole::Superseded { project, dir: short(dir)?, slot: slot(name, ".pending")? })
        }
        ["svc.signers.vetoed", dir, name] => {
            Some(PathRole::Vetoed { project, dir: short(dir)?, slot: position(&VETOED_SLOTS, name)? })
        }
        ["svc.signers.history", name] => {
            Some(PathRole::History { project, number: name.strip_suffix(".json")?.parse().ok()? })
        }
        _ => None,
    }
}
