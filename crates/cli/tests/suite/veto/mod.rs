//! Rotations that wait, and vetoes (D130–D138).

mod attacks;
mod client;
mod fsck;
mod mirrors;
mod scene;
mod served;
