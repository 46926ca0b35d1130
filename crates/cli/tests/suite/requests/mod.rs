//! How the server reads a request, whatever it asks for: who signed it, its head, its body, its path.
//! `scenarios/requests.txt` has what fits in a line.

mod authentication;
mod bodies;
mod heads;
mod path_attacks;
