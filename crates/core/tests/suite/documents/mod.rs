mod kept_apart;
mod reading_and_writing;
mod signature_sets;
mod signers_file;
mod transparency;
