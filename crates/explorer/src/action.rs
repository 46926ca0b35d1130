//! All requests of a world. A new kind of request is one more arm here, in `requests`, and in `invariants::steps`.

use std::fmt;

use countersign_core::rules::decide::{sign::SignRefusal, sign::SignaturesBody, statement::StatementRefusal};
use countersign_testing::{RevokeRequest, World};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    Register {
        project: u8,
        file: u8,
        by: u8,
    },
    Update {
        project: u8,
        file: u8,
        by: u8,
    },
    SignProposal {
        project: u8,
        by: u8,
        offered: Offered,
    },
    SignIndex {
        project: u8,
        release: u8,
        by: u8,
        offered: Offered,
    },
    Assets {
        project: u8,
        release: u8,
        content: u8,
        by: u8,
    },
    Revoke {
        project: u8,
        release: u8,
        document: Document,
        by: u8,
        offered: Offered,
    },
    Withdraw {
        project: u8,
        release: u8,
        by: u8,
        seen: Seen,
    },
    Object {
        project: u8,
        release: u8,
        word: Word,
        by: u8,
        offered: Offered,
    },
    Rebuild {
        project: u8,
        release: u8,
        got: Got,
        by: u8,
        offered: Offered,
    },
    Veto {
        project: u8,
        says: Says,
        by: u8,
        offered: Offered,
    },
    /// The server puts into effect what has waited long enough.
    Activate {
        project: u8,
    },
    Drop {
        project: u8,
    },
    SetClock {
        to: u8,
    },
}

/// An action with its number in the list of its world.
#[derive(Debug, Clone, Copy)]
pub struct ListedAction {
    pub number: u16,
    pub action: Action,
}

/// Which signature a request brings under the name of its signer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Offered {
    Right,
    /// The right bytes, signed by another person of the world.
    OfAnother,
    /// The signer's own, on other bytes.
    OnOther,
    /// The right one, and in all other formats, too.
    InFormats,
    /// The right one, and those of another person in other formats.
    WrongFormats,
}

impl Offered {
    /// Whether all of it is the signer's own, on the right bytes.
    pub fn is_right(self) -> bool {
        matches!(self, Self::Right | Self::InFormats)
    }
}

/// What a revocation says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Document {
    First,
    Second,
    /// The first person is to begin it.
    Initiated,
    /// The document does not say which index is meant.
    Unnamed,
    /// The document means an index with another content.
    OfOther,
}

/// The index that a withdrawal is meant for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Seen {
    This,
    /// The withdrawal is meant for an index with another content.
    Other,
}

/// What a signer says of a release. Each word but the last two is later than those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Word {
    First,
    TakenBack,
    Again,
    /// The word is said of an index with another content.
    OfOther,
    /// The word is dated ahead of every clock.
    Ahead,
}

/// What a builder says that it got. Each of the first four is later than those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Got {
    Same,
    /// The first file alone, which is the same.
    Part,
    /// One digest of the first file is another.
    Different,
    Again,
    /// The release with another content.
    OfOther,
    /// A release at another path.
    OfElsewhere,
    /// A file that the release does not have.
    Unlisted,
    /// The statement is dated ahead of every clock.
    Ahead,
    /// The text is an objection.
    AsObjection,
}

/// What a veto says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Says {
    First,
    Second,
    /// The veto is about another signers file.
    OfOther,
    /// The veto is spoken by the masters of another signers file.
    OfBefore,
}

impl Action {
    pub fn project(&self) -> Option<u8> {
        match *self {
            Self::Register { project, .. }
            | Self::Update { project, .. }
            | Self::SignProposal { project, .. }
            | Self::SignIndex { project, .. }
            | Self::Assets { project, .. }
            | Self::Revoke { project, .. }
            | Self::Withdraw { project, .. }
            | Self::Object { project, .. }
            | Self::Rebuild { project, .. }
            | Self::Veto { project, .. }
            | Self::Activate { project }
            | Self::Drop { project } => Some(project),
            Self::SetClock { .. } => None,
        }
    }

    /// The person whose key it is, unless it is the server, the operator or time.
    pub fn person(&self) -> Option<u8> {
        match *self {
            Self::Register { by, .. }
            | Self::Update { by, .. }
            | Self::SignProposal { by, .. }
            | Self::SignIndex { by, .. }
            | Self::Assets { by, .. }
            | Self::Revoke { by, .. }
            | Self::Withdraw { by, .. }
            | Self::Object { by, .. }
            | Self::Rebuild { by, .. }
            | Self::Veto { by, .. } => Some(by),
            Self::Activate { .. } | Self::Drop { .. } | Self::SetClock { .. } => None,
        }
    }

    /// The request by the person that a permutation puts in the place of this one.
    pub fn renamed(self, people: &[u8]) -> Self {
        let of = |by: u8| people[usize::from(by)];
        match self {
            Self::Register { project, file, by } => Self::Register { project, file, by: of(by) },
            Self::Update { project, file, by } => Self::Update { project, file, by: of(by) },
            Self::SignProposal { project, by, offered } => {
                Self::SignProposal { project, by: of(by), offered }
            }
            Self::SignIndex { project, release, by, offered } => {
                Self::SignIndex { project, release, by: of(by), offered }
            }
            Self::Assets { project, release, content, by } => {
                Self::Assets { project, release, content, by: of(by) }
            }
            Self::Revoke { project, release, document, by, offered } => {
                Self::Revoke { project, release, document, by: of(by), offered }
            }
            Self::Withdraw { project, release, by, seen } => {
                Self::Withdraw { project, release, by: of(by), seen }
            }
            Self::Object { project, release, word, by, offered } => {
                Self::Object { project, release, word, by: of(by), offered }
            }
            Self::Rebuild { project, release, got, by, offered } => {
                Self::Rebuild { project, release, got, by: of(by), offered }
            }
            Self::Veto { project, says, by, offered } => Self::Veto { project, says, by: of(by), offered },
            Self::Activate { .. } | Self::Drop { .. } | Self::SetClock { .. } => self,
        }
    }
}

impl fmt::Display for Offered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Right => "",
            Self::OfAnother => ", with another person's signature",
            Self::OnOther => ", with a signature on other bytes",
            Self::InFormats => ", also in other formats",
            Self::WrongFormats => ", with another person's in other formats",
        })
    }
}

// Statements that several people prepared and hand in in bulk: in every order, and in every way in which their requests
// can come in between each other (D218).
//
// Each person goes through all of their statements in their own order, whatever becomes of each.

/// Something that a person signed before, with what the server had shown then.
#[derive(Debug, Clone)]
pub enum Statement {
    Revoke(Box<RevokeRequest>),
    Sign(SignaturesBody),
}

/// What became of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reception {
    Taken,
    /// Nothing was left to do.
    DoneAlready,
    Refused(String),
}

/// Hands everything in, in every order, and shows the repository at the end of each with all refusals. Gives the number
/// of orders.
pub fn hand_in_all(
    world: &World,
    hands: &[Vec<Statement>],
    at_end: &mut impl FnMut(&World, &[String]),
) -> usize {
    let slices: Vec<&[Statement]> = hands.iter().map(Vec::as_slice).collect();
    continue_from(world, &slices, &mut Vec::new(), at_end)
}

fn continue_from(
    world: &World,
    hands: &[&[Statement]],
    refused: &mut Vec<String>,
    at_end: &mut impl FnMut(&World, &[String]),
) -> usize {
    let mut orders = 0;
    for (turn, hand) in hands.iter().enumerate() {
        let Some((next, rest)) = hand.split_first() else { continue };
        let mut after = world.clone();
        let before = refused.len();
        if let Reception::Refused(reason) = receive(&mut after, next) {
            refused.push(reason);
        }
        let mut left = hands.to_vec();
        left[turn] = rest;
        orders += continue_from(&after, &left, refused, at_end);
        refused.truncate(before);
    }
    if orders == 0 {
        at_end(world, refused);
        return 1;
    }
    orders
}

/// What the server answers, and whether a client counts a refusal as done.
fn receive(world: &mut World, statement: &Statement) -> Reception {
    match statement {
        Statement::Revoke(request) => match world.revoke(request) {
            Ok(_) => Reception::Taken,
            Err(StatementRefusal::AlreadyRevoked(_) | StatementRefusal::AlreadySigned(_)) => {
                Reception::DoneAlready
            }
            Err(refusal) => Reception::Refused(refusal.to_string()),
        },
        Statement::Sign(submission) => match world.submit(submission) {
            Ok(_) => Reception::Taken,
            Err(SignRefusal::AlreadySigned(_) | SignRefusal::AlreadyComplete(_)) => Reception::DoneAlready,
            Err(refusal) => Reception::Refused(refusal.to_string()),
        },
    }
}
