mod kept_apart;
mod reading_and_writing;
mod sha256sums;
mod signature_sets;
mod signers_file;
mod transparency;
