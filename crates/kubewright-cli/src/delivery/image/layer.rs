//! Reproducible layers: the same files give the same bytes.
//!
//! Entries are sorted by path and have fixed owners and times; the gzip header has no time and no operating
//! system. Users and groups are numbers, since names depend on the machine.

use std::collections::BTreeMap;
use std::io::Write as _;

use anyhow::{Context as _, Result};
use bytes::Bytes;
use flate2::{Compression, GzBuilder};
use tar::{EntryType, Header};

use super::blob::{Blob, digest};

/// The media type of layers.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
/// gzip's value for an unknown operating system.
const UNKNOWN_SYSTEM: u8 = 255;

/// The files of a layer by absolute path.
#[derive(Debug, Default)]
pub(crate) struct Files(BTreeMap<String, Entry>);

#[derive(Debug)]
struct Entry {
    mode: u32,
    /// `None` for a directory.
    content: Option<Bytes>,
}

/// A compressed layer.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub(crate) blob: Blob,
    /// The digest of the uncompressed layer.
    pub(crate) diff_id: String,
    /// What it contains, for the history of the image.
    pub(crate) comment: &'static str,
}

impl Files {
    /// Adds a file and its parent directories.
    pub(crate) fn add(&mut self, path: &str, mode: u32, content: impl Into<Bytes>) {
        self.add_parents(path);
        self.0.insert(path.to_owned(), Entry { mode, content: Some(content.into()) });
    }

    /// Adds a directory and its parents.
    pub(crate) fn add_directory(&mut self, path: &str, mode: u32) {
        self.add_parents(path);
        self.0.insert(path.to_owned(), Entry { mode, content: None });
    }

    fn add_parents(&mut self, path: &str) {
        for (at, _) in path.match_indices('/').filter(|(at, _)| *at > 0) {
            let parent = path[..at].to_owned();
            self.0.entry(parent).or_insert(Entry { mode: 0o755, content: None });
        }
    }

    /// Writes the layer. `time` is the modification time of all entries, in seconds.
    pub(crate) fn layer(&self, time: u64, comment: &'static str) -> Result<Layer> {
        let tar = self.tar(time).context("cannot write a layer")?;
        let mut gzip = GzBuilder::new()
            .mtime(0)
            .operating_system(UNKNOWN_SYSTEM)
            .write(Vec::with_capacity(tar.len() / 2), Compression::best());
        gzip.write_all(&tar)
            .and_then(|()| gzip.finish())
            .context("cannot compress a layer")
            .map(|data| Layer { blob: Blob::new(MEDIA_TYPE, data), diff_id: digest(&tar), comment })
    }

    fn tar(&self, time: u64) -> std::io::Result<Vec<u8>> {
        let mut builder = tar::Builder::new(Vec::new());
        for (path, entry) in &self.0 {
            let mut header = Header::new_ustar();
            let content: &[u8] = entry.content.as_deref().unwrap_or_default();
            // Names in image layers are relative.
            let mut name = path.trim_start_matches('/').to_owned();
            if entry.content.is_none() {
                name.push('/');
            }
            header.set_path(&name)?;
            let kind = if entry.content.is_some() { EntryType::Regular } else { EntryType::Directory };
            header.set_entry_type(kind);
            header.set_mode(entry.mode);
            header.set_uid(0);
            header.set_gid(0);
            header.set_mtime(time);
            header.set_size(content.len() as u64);
            header.set_cksum();
            builder.append(&header, content)?;
        }
        builder.into_inner()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(order: &[&str]) -> Files {
        let mut files = Files::default();
        for path in order {
            files.add(path, 0o644, path.as_bytes().to_vec());
        }
        files
    }

    #[test]
    fn the_order_of_adding_does_not_matter() {
        let (one, two) = (files(&["/etc/b", "/a"]), files(&["/a", "/etc/b"]));
        let [one, two] = [one, two].map(|files| files.layer(0, "").unwrap());
        assert_eq!((one.blob.digest(), one.diff_id), (two.blob.digest(), two.diff_id));
    }

    #[test]
    fn parents_come_before_their_files() {
        let layer = files(&["/etc/ssl/certs/a.crt"]).layer(7, "").unwrap();
        let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(layer.blob.data()));
        let entries: Vec<(String, u64, u64)> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                (entry.path().unwrap().display().to_string(), header.mtime().unwrap(), header.uid().unwrap())
            })
            .collect();
        let paths: Vec<&str> = entries.iter().map(|(path, ..)| path.as_str()).collect();
        assert_eq!(paths, ["etc/", "etc/ssl/", "etc/ssl/certs/", "etc/ssl/certs/a.crt"]);
        assert!(entries.iter().all(|(_, time, user)| (*time, *user) == (7, 0)), "{entries:?}");
    }

    #[test]
    fn the_gzip_header_has_no_time_and_no_system() {
        let layer = files(&["/a"]).layer(7, "").unwrap();
        assert_eq!(layer.blob.data()[4..8], [0; 4]);
        assert_eq!(layer.blob.data()[9], UNKNOWN_SYSTEM);
    }
}
