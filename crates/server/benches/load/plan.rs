//! What a repository of a given size holds. Everything follows from shape and size, so that a kept repository can be
//! measured without reading it first.

use std::{fmt, str::FromStr};

use countersign_core::documents::layout;
use countersign_core::values::{digest::Sha256, key::SecretKey, path::RepoPath};

use crate::Failure;

/// The files of a complete release in the tree: its index, the copy of its signers file, its signatures.
const FILES_PER_RELEASE: usize = 3;
/// The active signers file, its metadata, the signatures on both, the registration, and the history.
const FILES_PER_PROJECT: usize = 6;
const MAX_OWNERS: usize = 1_000;

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Standard,
    Owners,
    Tags,
}

impl Shape {
    pub(crate) fn default_sizes(self) -> Vec<usize> {
        match self {
            Self::Standard => vec![1_000, 100_000],
            Self::Owners => vec![50_000 * (FILES_PER_PROJECT + FILES_PER_RELEASE)],
            Self::Tags => vec![20_000 * FILES_PER_RELEASE + FILES_PER_PROJECT],
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Standard => "standard",
            Self::Owners => "owners",
            Self::Tags => "tags",
        })
    }
}

impl FromStr for Shape {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let shapes = [Self::Standard, Self::Owners, Self::Tags];
        let found = shapes.into_iter().find(|shape| shape.to_string() == text);
        found.ok_or_else(|| format!("{text} is no shape: standard, owners or tags").into())
    }
}

/// Each owner has one project, and the same number of complete releases.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) owners: usize,
    pub(crate) releases_per_owner: usize,
}

impl Plan {
    pub(crate) fn new(shape: Shape, files: usize) -> Self {
        let owners = match shape {
            Shape::Standard => (files / 100).clamp(1, MAX_OWNERS),
            Shape::Owners => files.div_ceil(FILES_PER_PROJECT + FILES_PER_RELEASE),
            Shape::Tags => 1,
        };
        let for_releases = (files / owners).saturating_sub(FILES_PER_PROJECT);
        // Rounded: the files of projects do not leave a multiple of three.
        let releases = ((for_releases + FILES_PER_RELEASE / 2) / FILES_PER_RELEASE).max(1);
        Self { owners, releases_per_owner: releases }
    }

    pub(crate) fn releases(&self) -> usize {
        self.owners * self.releases_per_owner
    }

    /// The complete releases are stored owner by owner.
    pub(crate) fn owner_of(&self, release: usize) -> usize {
        release / self.releases_per_owner
    }

    pub(crate) fn version_of(&self, release: usize) -> String {
        format!("v1.{}", release % self.releases_per_owner)
    }

    pub(crate) fn index(&self, release: usize) -> Result<RepoPath, Failure> {
        index_in(&project_of(&owner_name(self.owner_of(release)))?, &self.version_of(release))
    }

    /// The owner of the next release that collects signatures. Owners take turns.
    pub(crate) fn collecting_owner(&self, i: usize) -> usize {
        i % self.owners
    }
}

pub(crate) fn owner_name(owner: usize) -> String {
    format!("owner{owner:05}")
}

pub(crate) fn project_of(owner: &str) -> Result<RepoPath, Failure> {
    Ok(RepoPath::parse(&format!("https/dl.example.org/443/{owner}/app"))?)
}

pub(crate) fn index_in(project: &RepoPath, version: &str) -> Result<RepoPath, Failure> {
    Ok(layout::index_in(&RepoPath::parse(&format!("{project}/{version}"))?))
}

/// Each owner has its own keys. Shared ones would make all signers files one blob.
pub(crate) fn key_of(owner: &str, signer: usize) -> SecretKey {
    SecretKey::from_seed(Sha256::of(format!("{owner}, signer {signer}").as_bytes()).as_bytes())
}
