//! Statements that several people prepared and hand in in bulk: in every order, and in every way in which their requests
//! can come in between each other (D218).
//!
//! Each person goes through all of their statements in their own order, whatever becomes of each.

use countersign_core::rules::decide::{
    sign::{SignRefusal, SignaturesBody},
    statement::StatementRefusal,
};
use countersign_testing::{RevokeRequest, World};

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

/// Hands everything in, in every order, and shows the repository at the end of each with all refusals. Gives the number of
/// orders.
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
