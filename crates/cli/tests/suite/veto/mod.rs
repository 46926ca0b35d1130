//! Rotations that wait, and vetoes (D130–D138, D176).

mod client;
mod repeated;
mod scene;
mod served;
