mod replay;
mod seen_nonces;
