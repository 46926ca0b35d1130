mod kept_apart;
mod reading_and_writing;
mod registrars;
mod signature_sets;
mod signers_file;
mod transparency;
