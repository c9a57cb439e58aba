//! Archives for `docker load`, `ctr images import` and `kind load image-archive`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{Package, digest, json, skopeo};

/// The files of an archive.
fn files(package: &Package, path: &str) -> BTreeMap<String, Vec<u8>> {
    let mut archive = tar::Archive::new(File::open(package.path(path)).expect("the archive"));
    let mut files = BTreeMap::new();
    for entry in archive.entries().expect("entries") {
        let mut entry = entry.expect("an entry");
        let name = entry.path().expect("a name").display().to_string();
        let mut data = Vec::new();
        entry.read_to_end(&mut data).expect("data");
        files.insert(name, data);
    }
    files
}

#[test]
fn the_archive_has_the_form_of_docker_save_and_of_an_oci_layout() {
    let package = Package::new();
    let built = package.image("--tag shop/operator:v1 --output docker-archive");
    let files = files(&package, "dist/image.tar");
    let read = |name: &str| json(std::str::from_utf8(&files[name]).expect("text"));

    let manifest = read("manifest.json");
    assert_eq!(manifest[0]["RepoTags"], serde_json::json!(["shop/operator:v1"]));
    let config = read(manifest[0]["Config"].as_str().expect("a path"));
    let layers = manifest[0]["Layers"].as_array().expect("layers");
    let diff_ids = config["rootfs"]["diff_ids"].as_array().expect("layers");
    assert_eq!(layers.len(), diff_ids.len());
    for (layer, diff_id) in layers.iter().zip(diff_ids) {
        let mut tar = Vec::new();
        let data = files[layer.as_str().expect("a path")].as_slice();
        flate2::read::GzDecoder::new(data).read_to_end(&mut tar).expect("gzip");
        assert_eq!(*diff_id, Value::from(format!("sha256:{}", hex(&tar))));
    }

    // containerd reads the index, and names the image by its annotation.
    let index = read("index.json");
    let main = &index["manifests"][0];
    assert_eq!(index["manifests"].as_array().map(Vec::len), Some(1));
    assert_eq!(main["digest"], digest(&built).as_str());
    assert_eq!(main["annotations"]["io.containerd.image.name"], "docker.io/shop/operator:v1");
    assert_eq!(read("oci-layout")["imageLayoutVersion"], "1.0.0");
    for (name, data) in files.iter().filter(|(name, _)| name.starts_with("blobs/sha256/") && name.len() > 20)
    {
        assert_eq!(*name, format!("blobs/sha256/{}", hex(data)));
    }
}

#[test]
fn skopeo_reads_the_archive_in_both_forms() {
    let package = Package::new();
    package.image("--tag shop:v1 --output docker-archive --dest shop.tar");
    let file = package.path("shop.tar");
    for form in ["docker-archive", "oci-archive"] {
        let inspected = json(&skopeo(&["inspect", &format!("{form}:{}", file.display())]));
        assert_eq!(inspected["Labels"]["org.opencontainers.image.title"], "shop", "{form}");
        assert_eq!(inspected["Layers"].as_array().map(Vec::len), Some(2), "{form}");
    }
    let repository = json(&skopeo(&["inspect", &format!("docker-archive:{}:shop:v1", file.display())]));
    assert_eq!(repository["Os"], "linux");
}

fn hex(data: &[u8]) -> String {
    Sha256::digest(data).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes all text");
        text
    })
}
