//! What a run was made of.

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Played {
    pub requests: usize,
    pub successes: usize,
    /// Successful changes of state.
    pub changes: usize,
    pub activations: usize,
    pub completed_indexes: usize,
    pub revocations: usize,
    pub withdrawals: usize,
    pub objections: usize,
    /// Rotations that waited, and vetoes that stopped one.
    pub waited: usize,
    pub vetoes: usize,
}
