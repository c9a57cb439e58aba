//! Writes images to disk: as an OCI layout directory, and as an archive.
//!
//! The archive is an OCI layout with the `manifest.json` of `docker save`. containerd (`ctr images import`,
//! kind, k3d) reads the index and keeps the digest of the image; Docker, podman and minikube read
//! `manifest.json`. It has one reference, because podman rejects archives with several.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, anyhow};
use oci_client::Reference;
use oci_spec::image::{ImageIndexBuilder, MediaType};
use serde_json::json;
use tar::{EntryType, Header};

use super::Image;
use super::blob::Blob;
use crate::error::Hint as _;

const LAYOUT: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;

/// Writes an OCI layout directory. Blobs of an earlier image that are no longer used are removed.
pub(crate) fn write_directory(image: &Image, reference: &Reference, folder: &Path) -> Result<()> {
    let failed = || format!("cannot write the image to {}", folder.display());
    let advice = "check the directory and the free disk space, or choose another with --dest";
    ensure_ours(folder)?;
    let blobs = folder.join("blobs/sha256");
    fs::create_dir_all(&blobs).with_context(failed).hint(advice)?;
    let mut names = Vec::new();
    for blob in image.blobs(true) {
        let file = blobs.join(blob.hex());
        names.push(blob.hex().to_owned());
        if fs::metadata(&file).is_ok_and(|existing| existing.len() == blob.size()) {
            continue;
        }
        replace(&file, blob.data()).with_context(failed).hint(advice)?;
    }
    replace(&folder.join("oci-layout"), LAYOUT.as_bytes()).with_context(failed).hint(advice)?;
    let index = index(image, reference, true)?;
    replace(&folder.join("index.json"), index.data()).with_context(failed).hint(advice)?;
    for entry in fs::read_dir(&blobs).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        if !names.iter().any(|name| entry.file_name() == name.as_str()) {
            fs::remove_file(entry.path()).with_context(failed)?;
        }
    }
    Ok(())
}

/// A directory with other content is not overwritten.
fn ensure_ours(folder: &Path) -> Result<()> {
    let is_empty = match fs::read_dir(folder) {
        Ok(mut entries) => entries.next().is_none(),
        Err(_) => true,
    };
    if is_empty || folder.join("oci-layout").is_file() {
        return Ok(());
    }
    Err(anyhow!("{} is not empty and not an OCI layout", folder.display()))
        .hint("choose another directory with --dest")
}

/// Writes a file so that readers see the old or the new content.
fn replace(file: &Path, data: &[u8]) -> Result<()> {
    let folder = file.parent().context("the path has no parent directory")?;
    let mut new = tempfile::Builder::new().prefix(".image-").tempfile_in(folder)?;
    new.write_all(data)?;
    let new = new.into_temp_path();
    #[cfg(unix)]
    fs::set_permissions(&new, std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
    new.persist(file)?;
    Ok(())
}

/// Fails if an archive cannot hold an image for so many platforms.
pub(crate) fn check_archive(platforms: usize) -> Result<()> {
    if platforms > 1 {
        return Err(anyhow!("an archive can hold one platform, but the image has {platforms}")).hint(
            "pass one --platform; a registry and `image build --output oci-layout` take several platforms",
        );
    }
    Ok(())
}

/// Writes an archive for `docker load`, `ctr images import`, `kind load image-archive` and others.
pub(crate) fn write_archive(image: &Image, reference: &Reference, file: &Path) -> Result<()> {
    check_archive(image.platforms.len())?;
    let platform = image.platforms.first().context("the image has no platform")?;
    let failed = || format!("cannot write the image to {}", file.display());
    let path = |blob: &Blob| format!("blobs/sha256/{}", blob.hex());
    let layers: Vec<String> = platform.layers.iter().map(|layer| path(&layer.blob)).collect();
    let manifest = json!([{
        "Config": path(&platform.config),
        "RepoTags": [familiar(reference)],
        "Layers": layers,
    }]);
    let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    // Tools that read archives ignore SBOMs, or report them as images without a name.
    for blob in image.blobs(false) {
        files.insert(path(blob), blob.data().to_vec());
    }
    files.insert("index.json".to_owned(), index(image, reference, false)?.data().to_vec());
    files.insert("manifest.json".to_owned(), manifest.to_string().into_bytes());
    files.insert("oci-layout".to_owned(), LAYOUT.as_bytes().to_vec());
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder).with_context(failed)?;
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let write = || -> Result<()> {
        let new = tempfile::Builder::new().prefix(".image-").tempfile_in(folder)?;
        write_tar(new.as_file(), &files)?;
        let new = new.into_temp_path();
        // Readable for the tool, which may run as another user.
        #[cfg(unix)]
        fs::set_permissions(&new, std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
        new.persist(file)?;
        Ok(())
    };
    write().with_context(failed).hint("check the directory and the free disk space")
}

fn write_tar(file: &File, files: &BTreeMap<String, Vec<u8>>) -> Result<()> {
    let mut builder = tar::Builder::new(BufWriter::new(file));
    for folder in ["blobs/", "blobs/sha256/"] {
        builder.append(&header(folder, EntryType::Directory, 0o755, 0)?, std::io::empty())?;
    }
    for (name, data) in files {
        let header = header(name, EntryType::Regular, 0o644, data.len() as u64)?;
        builder.append(&header, data.as_slice())?;
    }
    builder.into_inner()?.flush()?;
    Ok(())
}

fn header(name: &str, kind: EntryType, mode: u32, size: u64) -> Result<Header> {
    let mut header = Header::new_ustar();
    header.set_path(name)?;
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(size);
    header.set_cksum();
    Ok(header)
}

/// The index.json of a layout, with the reference that tools show and select by.
fn index(image: &Image, reference: &Reference, with_sboms: bool) -> Result<Blob> {
    let mut main = image.descriptor()?;
    let annotations = [
        ("io.containerd.image.name", reference.whole()),
        ("org.opencontainers.image.ref.name", reference.tag().unwrap_or("latest").to_owned()),
    ];
    let annotations = annotations.into_iter().map(|(name, value)| (name.to_owned(), value));
    main.set_annotations(Some(annotations.collect()));
    let mut manifests = vec![main];
    for sbom in image.platforms.iter().filter_map(|platform| platform.sbom.as_ref()).filter(|_| with_sboms) {
        manifests.push(sbom.descriptor()?);
    }
    let index = ImageIndexBuilder::default()
        .schema_version(2u32)
        .media_type(MediaType::ImageIndex)
        .manifests(manifests)
        .build()
        .context("cannot assemble the index of the layout")?;
    Blob::json(super::manifest::INDEX, &index)
}

/// A reference as Docker shows it: `docker.io/library/shop:v1` is `shop:v1`.
pub(crate) fn familiar(reference: &Reference) -> String {
    let whole = reference.whole();
    match whole.strip_prefix("docker.io/") {
        Some(rest) => rest.strip_prefix("library/").unwrap_or(rest).to_owned(),
        None => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_shown_as_docker_shows_them() {
        let shown = |text: &str| familiar(&text.parse().unwrap());
        assert_eq!(shown("controller"), "controller:latest");
        assert_eq!(shown("shop/operator:v1"), "shop/operator:v1");
        assert_eq!(shown("localhost:5000/shop:v1"), "localhost:5000/shop:v1");
    }

    #[test]
    fn a_directory_with_other_files_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        assert!(ensure_ours(&folder.path().join("new")).is_ok());
        assert!(ensure_ours(folder.path()).is_ok());
        fs::write(folder.path().join("main.rs"), "").unwrap();
        let error = ensure_ours(folder.path()).unwrap_err().to_string();
        assert!(error.ends_with("is not empty and not an OCI layout"), "{error}");
        fs::write(folder.path().join("oci-layout"), LAYOUT).unwrap();
        assert!(ensure_ours(folder.path()).is_ok());
    }
}
