//! Reads ELF binaries: their platform, their interpreter and the shared libraries that they need.
//!
//! The libraries are found without running `ldd`, which executes the binary's interpreter and does not work
//! for other platforms.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow, bail};
use elf::ElfBytes;
use elf::abi;
use elf::endian::AnyEndian;

use super::platform::Platform;
use crate::error::Hint as _;

/// The ELF headers of a binary.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Elf {
    pub(crate) machine: u16,
    /// The dynamic loader; `None` for static binaries and libraries.
    pub(crate) interpreter: Option<String>,
    /// The names of the shared libraries.
    pub(crate) needed: Vec<String>,
}

impl Elf {
    /// Parses the headers.
    pub(crate) fn parse(data: &[u8]) -> Result<Self> {
        if !data.starts_with(&abi::ELFMAGIC) {
            bail!("not an ELF binary");
        }
        let broken = |error: elf::ParseError| anyhow!("{error}").context("the binary is damaged");
        let file = ElfBytes::<AnyEndian>::minimal_parse(data).map_err(broken)?;
        let segments = file.segments().context("the binary has no program headers")?;
        let interpreter = match segments.iter().find(|segment| segment.p_type == abi::PT_INTERP) {
            None => None,
            Some(segment) => {
                let path = file.segment_data(&segment).map_err(broken)?;
                Some(String::from_utf8_lossy(path).trim_end_matches('\0').to_owned())
            }
        };
        let mut needed = Vec::new();
        if let Some(dynamic) = file.dynamic().map_err(broken)? {
            let table = dynamic.iter().find(|entry| entry.d_tag == abi::DT_STRTAB);
            let names = dynamic.iter().filter(|entry| entry.d_tag == abi::DT_NEEDED);
            let offsets: Vec<u64> = names.map(|entry| entry.d_val()).collect();
            if let Some(table) = table
                && !offsets.is_empty()
            {
                // The table has an address in memory; a loaded segment maps it to the file.
                let address = table.d_ptr();
                let segment = segments
                    .iter()
                    .find(|it| {
                        it.p_type == abi::PT_LOAD && (it.p_vaddr..it.p_vaddr + it.p_filesz).contains(&address)
                    })
                    .context("the binary is damaged: its string table is in no loaded segment")?;
                let start = address - segment.p_vaddr + segment.p_offset;
                for offset in offsets {
                    needed.push(name_at(data, start + offset)?);
                }
            }
        }
        Ok(Self { machine: file.ehdr.e_machine, interpreter, needed })
    }

    pub(crate) fn is_dynamic(&self) -> bool {
        self.interpreter.is_some() || !self.needed.is_empty()
    }

    /// The platform of the binary.
    pub(crate) fn platform(&self) -> Result<Platform> {
        Platform::of_machine(self.machine)
            .with_context(|| format!("the binary is for the unsupported ELF machine {}", self.machine))
    }
}

/// A NUL-terminated string.
fn name_at(data: &[u8], offset: u64) -> Result<String> {
    let rest = usize::try_from(offset).ok().and_then(|offset| data.get(offset..));
    let rest = rest.context("the binary is damaged: a library name is out of range")?;
    let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
    Ok(String::from_utf8_lossy(&rest[..end]).into_owned())
}

/// The dynamic loader and all shared libraries of a binary, by their path on this machine, which is also
/// their path in the image: the loader searches the same directories there.
pub(crate) fn of(binary: &Elf, platform: Platform) -> Result<BTreeMap<String, Vec<u8>>> {
    find(binary, platform, Path::new("/"))
}

fn find(binary: &Elf, platform: Platform, root: &Path) -> Result<BTreeMap<String, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut left: Vec<String> = binary.needed.clone();
    if let Some(interpreter) = &binary.interpreter {
        let data = fs::read(at(root, interpreter))
            .with_context(|| format!("cannot read {interpreter}, the dynamic loader of the binary"))
            .hint("build a static binary instead: `--libc musl`")?;
        found.insert(interpreter.clone(), data);
    }
    while let Some(name) = left.pop() {
        if !seen.insert(name.clone()) || found.keys().any(|path| path.ends_with(&format!("/{name}"))) {
            continue;
        }
        let (path, data, library) = library(&name, platform, root)?;
        left.extend(library.needed);
        found.insert(path, data);
    }
    Ok(found)
}

/// Finds a library in the default directories of dynamic loaders.
fn library(name: &str, platform: Platform, root: &Path) -> Result<(String, Vec<u8>, Elf)> {
    if name.contains('/') {
        bail!("the binary needs the library {name} by path; link it statically");
    }
    let multiarch = platform.multiarch();
    let folders = [
        format!("/lib/{multiarch}"),
        format!("/usr/lib/{multiarch}"),
        "/lib64".to_owned(),
        "/usr/lib64".to_owned(),
        "/lib".to_owned(),
        "/usr/lib".to_owned(),
    ];
    for folder in &folders {
        let path = format!("{folder}/{name}");
        let Ok(data) = fs::read(at(root, &path)) else { continue };
        // A directory can contain the library of another platform, or a linker script.
        match Elf::parse(&data) {
            Ok(library) if library.machine == platform.machine() => return Ok((path, data, library)),
            _ => {}
        }
    }
    Err(anyhow!("cannot find the library {name} for {platform} in {}", folders.join(", ")))
        .hint("install it, or build a static binary: `--libc musl`")
}

fn at(root: &Path, path: &str) -> PathBuf {
    root.join(path.trim_start_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_test_needs_the_c_library() {
        let binary = fs::read(std::env::current_exe().unwrap()).unwrap();
        let elf = Elf::parse(&binary).unwrap();
        let platform = elf.platform().unwrap();
        assert_eq!(Platform::host(), Some(platform));
        assert!(elf.needed.iter().any(|name| name == "libc.so.6"), "{elf:?}");
        let libraries = of(&elf, platform).unwrap();
        assert!(libraries.contains_key(&elf.interpreter.unwrap()));
        assert!(libraries.keys().any(|path| path.ends_with("/libc.so.6")), "{:?}", libraries.keys());
    }

    #[test]
    fn a_missing_library_is_named() {
        let empty = tempfile::tempdir().unwrap();
        let elf =
            Elf { machine: abi::EM_AARCH64, interpreter: None, needed: vec!["libshop.so.1".to_owned()] };
        let error = find(&elf, elf.platform().unwrap(), empty.path()).unwrap_err().to_string();
        assert!(
            error.starts_with(
                "cannot find the library libshop.so.1 for linux/arm64 in /lib/aarch64-linux-gnu"
            )
        );
    }

    #[test]
    fn other_files_are_rejected() {
        let error = Elf::parse(b"#!/bin/sh\n").unwrap_err();
        assert_eq!(error.to_string(), "not an ELF binary");
    }
}
