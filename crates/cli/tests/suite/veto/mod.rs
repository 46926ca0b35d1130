//! Rotations that wait, and vetoes (D130–D138, D176).

mod attacks;
mod client;
mod fsck;
mod mirrors;
mod offline;
mod scene;
mod served;
