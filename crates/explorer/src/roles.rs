//! What the files of a repository are for, told by their names alone. The names are spelled here once more on purpose.

/// What a path is for.
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
    Superseded {
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
const RELEASE_SLOTS: [&str; 12] = [
    "",
    ".signers.json",
    ".signatures.json.pending",
    ".signatures.json",
    ".signatures.json.revoked",
    ".revocation.json",
    ".revocation.json.signatures.json",
    ".revocation.json.signers.json",
    ".revocation.json.pending",
    ".revocation.json.signatures.json.pending",
    ".revocation.json.request.json",
    ".registrant.json",
];

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
}

fn role_below(project: u8, below: &str) -> Option<PathRole> {
    let slot = |name: &str, ending: &str| {
        let suffix = name.strip_prefix("svc.signers.json")?;
        let of = |slot: usize| SIGNERS_SLOTS[slot].to_owned() + if slot >= SET { ending } else { "" };
        (0..SIGNERS_SLOTS.len()).find(|slot| of(*slot) == suffix).and_then(|slot| u8::try_from(slot).ok())
    };
    match below.split('/').collect::<Vec<_>>()[..] {
        ["svc.signers", name] => Some(PathRole::Active { project, slot: slot(name, "")? }),
        ["svc.signers.pending", name] => Some(PathRole::Pending { project, slot: slot(name, ".pending")? }),
        ["svc.signers.superseded", dir, name] => Some(PathRole::Superseded {
            project,
            dir: u64::from_str_radix(dir.get(..16)?, 16).ok()?,
            slot: slot(name, ".pending")?,
        }),
        ["svc.signers.history", name] => {
            Some(PathRole::History { project, number: name.strip_suffix(".json")?.parse().ok()? })
        }
        _ => None,
    }
}
