//! How the server reads a request, whatever it asks for: who signed it, its head, its body, its path.

mod authentication;
mod authentication_headers;
mod bodies;
mod errors;
mod heads;
mod path_attacks;
