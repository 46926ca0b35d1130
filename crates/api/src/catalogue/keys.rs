//! What waits for a key, and what is known of it.

use countersign_core::{
    documents::signers::Role,
    rules::stored::ReleaseState,
    values::{
        json::{Field, Json, ParseError},
        key::PublicKey,
        path::RepoPath,
        time::Timestamp,
    },
};
use serde::{Serialize, Serializer};

use super::fields::{count, flag, list, more, text, time};
use crate::objected::ListedObjection;

/// The kinds of files that wait for signatures, in the order in which they are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum WaitingKind {
    /// A revocation that was begun and needs more signatures.
    Revocation,
    /// A proposed signers file.
    Signers,
    /// The index of a release.
    Release,
}

impl WaitingKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Revocation => "revocation",
            Self::Signers => "signers",
            Self::Release => "release",
        }
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        let found =
            [Self::Revocation, Self::Signers, Self::Release].into_iter().find(|kind| kind.name() == text);
        found.ok_or("must be revocation, signers or release")
    }
}

/// Something that waits for a key's signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct WaitingFile {
    pub kind: WaitingKind,
    /// The index to sign or to revoke, or the proposed signers file.
    #[schema(value_type = String)]
    pub file_path: RepoPath,
    #[schema(value_type = String)]
    pub project_id: RepoPath,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    /// Signatures that count so far.
    pub collected: usize,
    pub needed: usize,
    /// The roles in which the key is asked to sign: `artifact`, `admin`, `master` or `revocation`.
    #[schema(value_type = Vec<String>)]
    #[serde(serialize_with = "write_roles")]
    pub roles: Vec<Role>,
    pub since: Timestamp,
    /// The key that registered the release, proposed the signers file or began the revocation. Absent if the server no
    /// longer knows.
    #[schema(value_type = Option<String>, nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<PublicKey>,
    /// The reason of a revocation.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What signers object to in a release, the oldest first. Absent if nothing. Show it before anything else.
    #[schema(value_type = Option<Vec<ListedObjection>>, nullable = false)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub objections: Vec<ListedObjection>,
    /// The time at which a signers file that has all signatures takes effect, unless the masters veto it.
    #[schema(value_type = Option<String>, nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_until: Option<Timestamp>,
    /// Whether this key's signature is all that is missing. Absent if not.
    #[schema(value_type = Option<bool>, nullable = false)]
    #[serde(skip_serializing_if = "is_false")]
    pub completes: bool,
}

impl WaitingFile {
    pub(crate) fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        let object = field.open_object()?;
        Ok(Self {
            kind: object.required("kind")?.parsed(WaitingKind::parse)?,
            file_path: object.required("file_path")?.parsed(RepoPath::parse)?,
            project_id: object.required("project_id")?.parsed(RepoPath::parse)?,
            tag: text(&object, "tag")?,
            collected: count(&object, "collected")?,
            needed: count(&object, "needed")?,
            roles: list(&object, "roles", |role| role.parsed(parse_role))?,
            since: object.required("since")?.parsed(Timestamp::parse)?,
            by: object.optional("by").map(|key| key.parsed(PublicKey::parse)).transpose()?,
            reason: text(&object, "reason")?,
            objections: match object.optional("objections") {
                Some(_) => list(&object, "objections", ListedObjection::parse_field)?,
                None => Vec::new(),
            },
            waits_until: time(&object, "waits_until")?,
            completes: flag(&object, "completes")?,
        })
    }
}

/// What waits for a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct KeyPendingResponse {
    #[schema(value_type = String)]
    pub public_key: PublicKey,
    /// The files: begun revocations first, then signers files, then releases; of each kind the oldest first.
    pub pending: Vec<WaitingFile>,
    /// Whether more waits than one answer lists. First registrations are left out before anything else.
    pub more: bool,
}

impl KeyPendingResponse {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        let object = json.root().open_object()?;
        Ok(Self {
            public_key: object.required("public_key")?.parsed(PublicKey::parse)?,
            pending: list(&object, "pending", WaitingFile::parse_field)?,
            more: more(&object)?,
        })
    }
}

/// A project whose signers file in force lists a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct KeyListing {
    #[schema(value_type = String)]
    pub project_id: RepoPath,
    /// The roles as the signers file lists them: `artifact`, `admin`, `master` or `revocation`.
    #[schema(value_type = Vec<String>)]
    #[serde(serialize_with = "write_roles")]
    pub roles: Vec<Role>,
    /// The name that this signers file gives the key.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Whether the key can register new releases and has no role. Absent if not.
    #[schema(value_type = Option<bool>, nullable = false)]
    #[serde(skip_serializing_if = "is_false")]
    pub registrar: bool,
}

impl KeyListing {
    fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        let object = field.open_object()?;
        Ok(Self {
            project_id: object.required("project_id")?.parsed(RepoPath::parse)?,
            roles: list(&object, "roles", |role| role.parsed(parse_role))?,
            name: text(&object, "name")?,
            registrar: flag(&object, "registrar")?,
        })
    }
}

/// A release that a key has signed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct SignedRelease {
    #[schema(value_type = String)]
    pub index_path: RepoPath,
    #[schema(value_type = String)]
    pub project_id: RepoPath,
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
    pub state: ReleaseState,
    pub signed_at: Timestamp,
    /// Whether it is or was complete, and without this signature it would not have been. Absent if not.
    #[schema(value_type = Option<bool>, nullable = false)]
    #[serde(skip_serializing_if = "is_false")]
    pub decisive: bool,
}

impl SignedRelease {
    fn parse_field(field: &Field<'_>) -> Result<Self, ParseError> {
        let object = field.open_object()?;
        Ok(Self {
            index_path: object.required("index_path")?.parsed(RepoPath::parse)?,
            project_id: object.required("project_id")?.parsed(RepoPath::parse)?,
            tag: text(&object, "tag")?,
            state: object.required("state")?.parsed(ReleaseState::parse)?,
            signed_at: object.required("signed_at")?.parsed(Timestamp::parse)?,
            decisive: flag(&object, "decisive")?,
        })
    }
}

/// Releases that a key has signed, as many as one answer has room for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct KeySignedResponse {
    #[schema(value_type = String)]
    pub public_key: PublicKey,
    /// The releases, the newest signature first.
    pub signed: Vec<SignedRelease>,
    /// Whether there are more. Ask again with `after` and the last `index_path`.
    pub more: bool,
}

impl KeySignedResponse {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        let object = json.root().open_object()?;
        Ok(Self {
            public_key: object.required("public_key")?.parsed(PublicKey::parse)?,
            signed: list(&object, "signed", SignedRelease::parse_field)?,
            more: more(&object)?,
        })
    }
}

/// What is known of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct KeyResponse {
    #[schema(value_type = String)]
    pub public_key: PublicKey,
    /// Signers files in force that list it.
    pub listed: Vec<KeyListing>,
    /// Whether more list it than one answer has room for.
    pub listed_more: bool,
    /// Projects of which it signed a signers file that took effect, and whose signers file in force does not list it.
    /// At most 100.
    #[schema(value_type = Vec<String>)]
    pub formerly: Vec<RepoPath>,
    /// The time at which it last signed a release, a signers file that took effect, or a revocation in force, anywhere
    /// on this server. Absent if it never did.
    #[schema(nullable = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_signed_at: Option<Timestamp>,
    /// How many releases carry its signature.
    pub signed_count: usize,
    /// The last of them, the newest signature first.
    pub signed: Vec<SignedRelease>,
    /// Revocations that it signed and that wait for the signatures of others.
    pub begun: Vec<WaitingFile>,
}

impl KeyResponse {
    pub fn parse(bytes: &[u8]) -> Result<Self, ParseError> {
        let json = Json::parse(bytes)?;
        let object = json.root().open_object()?;
        Ok(Self {
            public_key: object.required("public_key")?.parsed(PublicKey::parse)?,
            listed: list(&object, "listed", KeyListing::parse_field)?,
            listed_more: object.required("listed_more")?.boolean()?,
            formerly: list(&object, "formerly", |project| project.parsed(RepoPath::parse))?,
            last_signed_at: time(&object, "last_signed_at")?,
            signed_count: count(&object, "signed_count")?,
            signed: list(&object, "signed", SignedRelease::parse_field)?,
            begun: list(&object, "begun", WaitingFile::parse_field)?,
        })
    }
}

/// One word for a role.
pub fn role_name(role: Role) -> &'static str {
    match role {
        Role::Artifact => "artifact",
        Role::Admin => "admin",
        Role::Master => "master",
        Role::Revocation => "revocation",
    }
}

fn parse_role(text: &str) -> Result<Role, &'static str> {
    let found = Role::ALL.into_iter().find(|role| role_name(*role) == text);
    found.ok_or("must be artifact, admin, master or revocation")
}

fn write_roles<S: Serializer>(roles: &[Role], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(roles.iter().map(|role| role_name(*role)))
}

fn is_false(flag: &bool) -> bool {
    !*flag
}
