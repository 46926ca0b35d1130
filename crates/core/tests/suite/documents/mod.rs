mod kept_apart;
mod other_formats;
mod reading_and_writing;
mod registrars;
mod sha256sums;
mod signature_sets;
mod signers_file;
mod transparency;
