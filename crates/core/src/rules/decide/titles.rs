//! The commit message of each decision: how it begins, and its lines. A replay reads there what a commit claims to be.

use crate::{
    documents::agreement::Agreement,
    values::{key::PublicKey, path::RepoPath},
};

pub const CREATE: &str = "Create the repository";
pub const REGISTER: &str = "Register";
pub const PROPOSE: &str = "Propose signers for";
pub const REPLACE: &str = "Replace the proposed signers of";
pub const SIGN: &str = "Sign";
pub const COMPLETE: &str = "Sign and complete";
pub const ACTIVATE: &str = "Activate the signers of";
pub const AGREE: &str = "Agree to the signers of";
pub const RECORD_VETO: &str = "Record a veto of the pending signers of";
pub const VETO: &str = "Veto the pending signers of";
pub const ADD: &str = "Add";
pub const CORRECT: &str = "Correct";
pub const WITHDRAW: &str = "Withdraw";
pub const OBJECT: &str = "Object to";
pub const TAKE_BACK_OBJECTION: &str = "Take back the objection to";
pub const RECORD_REVOCATION: &str = "Record a revocation signature on";
pub const REVOKE: &str = "Revoke";
pub const DROP: &str = "Drop the pending signers of";

/// The beginnings of the lines below the title.
pub const BY: &str = "By: ";
pub const FROM: &str = "From: ";
pub const DUE: &str = "Due: ";

/// The message of a change to `subject` that the owner of a key makes. More lines can follow.
pub(crate) fn message(title: &str, subject: &RepoPath, by: &PublicKey) -> String {
    format!("{title} {subject}\n\n{BY}{by}\n")
}

/// The line that says when signers take effect that wait.
pub(crate) fn due_line(agreement: &Agreement) -> String {
    format!("{DUE}{}\n", agreement.due_at)
}
