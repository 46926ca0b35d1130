//! Releases that are withdrawn, and objections to releases (D120–D126). What the client says of them is text
//! (`client_objections.txt`), and so are pages (`objections_pages.txt`).

mod hostile;
mod served;
