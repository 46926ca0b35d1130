mod buckets;
mod changes;
mod masters;
mod needs;
