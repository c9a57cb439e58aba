//! Parses Go struct declarations: field order, pointers and `json` tags.
//!
//! OpenAPI schemas do not contain pointers and `omitempty`, and both determine the server's output. Parses
//! `type X struct` blocks and their tags only.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};

/// A field of a Go struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GoField {
    pub(crate) json: String,
    /// The type without the pointer's `*`.
    pub(crate) ty: String,
    pub(crate) pointer: bool,
    pub(crate) omit_empty: bool,
    pub(crate) omit_zero: bool,
    /// The protobuf field number, if any.
    pub(crate) number: Option<u32>,
}

impl GoField {
    /// Whether the field is written when empty. `omitempty` has no effect on a struct that is not a pointer.
    pub(crate) fn always(&self, structure: bool) -> bool {
        !self.omit_zero && (!self.omit_empty || (structure && !self.pointer))
    }
}

enum Member {
    Field(GoField),
    /// An embedded struct. JSON flattens it; protobuf has a nested message if it has a number.
    Inline(String, Option<u32>),
}

/// All structs by short name, such as `core.v1.Container`.
pub(crate) struct Structs(BTreeMap<String, Vec<Member>>);

impl Structs {
    pub(crate) fn read(sources: &Path) -> Result<Self> {
        let mut structs = BTreeMap::new();
        let api = sources.join("k8s.io/api");
        for group in folders(&api)? {
            for version in folders(&api.join(&group))? {
                if version.starts_with('v') {
                    read_package(
                        &api.join(&group).join(&version),
                        &format!("{group}.{version}"),
                        &mut structs,
                    )?;
                }
            }
        }
        let machinery = sources.join("k8s.io/apimachinery/pkg");
        read_package(&machinery.join("apis/meta/v1"), "meta.v1", &mut structs)?;
        read_package(&machinery.join("version"), "version", &mut structs)?;
        let extensions = sources.join("k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1");
        read_package(&extensions, "apiextensions.v1", &mut structs)?;
        // kube-aggregator is not packaged in Debian, so its six types are listed here.
        for (name, text) in AGGREGATOR {
            structs.insert(format!("apiregistration.v1.{name}"), text.lines().filter_map(member).collect());
        }
        Ok(Self(structs))
    }

    /// The fields of `name` in Go's order, with embedded structs flattened as in JSON.
    pub(crate) fn fields(&self, name: &str) -> Vec<GoField> {
        let package = &name[..name.rfind('.').map_or(0, |dot| dot + 1)];
        let mut fields = Vec::new();
        for member in self.0.get(name).into_iter().flatten() {
            match member {
                Member::Field(field) => fields.push(field.clone()),
                Member::Inline(of, _) if of == "metav1.TypeMeta" || of == "TypeMeta" => {
                    for json in ["kind", "apiVersion"] {
                        fields.push(GoField {
                            json: json.to_owned(),
                            ty: "string".to_owned(),
                            pointer: false,
                            omit_empty: true,
                            omit_zero: false,
                            number: None,
                        });
                    }
                }
                Member::Inline(of, _) => fields.extend(self.fields(&qualify(package, of))),
            }
        }
        fields
    }

    /// Whether a field of the type `name` holds a struct.
    pub(crate) fn is_struct(&self, name: &str, field: &GoField) -> bool {
        let package = &name[..name.rfind('.').map_or(0, |dot| dot + 1)];
        self.0.contains_key(&qualify(package, &field.ty))
    }

    /// Lines of `protobuf.txt`: the message, then `field:number`, and `@Type:number` for embedded messages.
    /// Covers only packages in `types`.
    pub(crate) fn messages(&self, types: &str) -> String {
        let packages: BTreeSet<&str> = types
            .lines()
            .filter_map(|line| line.split(' ').next()?.rsplit_once('.'))
            .map(|(package, _)| package)
            .collect();
        let mut text = String::from(
            "# Protobuf numbers of Kubernetes v1.36, derived by `cargo xtask facts`.\n\
             # A message, its JSON field names with their numbers, and with `@` embedded messages that JSON flattens.\n",
        );
        for (name, members) in &self.0 {
            let package = &name[..name.rfind('.').map_or(0, |dot| dot + 1)];
            if !packages.contains(package.trim_end_matches('.')) {
                continue;
            }
            let words: Vec<String> = members
                .iter()
                .filter_map(|member| match member {
                    Member::Field(field) => Some(format!("{}:{}", field.json, field.number?)),
                    Member::Inline(of, number) => Some(format!("@{}:{}", qualify(package, of), (*number)?)),
                })
                .collect();
            if !words.is_empty() {
                text.push_str(name);
                text.push(' ');
                text.push_str(&words.join(" "));
                text.push('\n');
            }
        }
        text
    }
}

fn qualify(package: &str, of: &str) -> String {
    match of.split_once('.') {
        None => format!("{package}{of}"),
        Some(("metav1", name)) => format!("meta.v1.{name}"),
        Some(("v1" | "corev1", name)) => format!("core.v1.{name}"),
        Some((other, name)) => format!("{other}.{name}"),
    }
}

const AGGREGATOR: [(&str, &str); 6] = [
    (
        "APIService",
        "metav1.TypeMeta `json:\",inline\"`\nM metav1.ObjectMeta `json:\"metadata,omitempty\" protobuf:\"bytes,1,opt\"`\n\
         S Spec `json:\"spec,omitempty\" protobuf:\"bytes,2,opt\"`\nT Status `json:\"status,omitempty\" protobuf:\"bytes,3,opt\"`",
    ),
    (
        "APIServiceList",
        "metav1.TypeMeta `json:\",inline\"`\nM metav1.ListMeta `json:\"metadata,omitempty\" protobuf:\"bytes,1,opt\"`\nI []APIService `json:\"items\" protobuf:\"bytes,2,opt\"`",
    ),
    (
        "APIServiceSpec",
        "S *ServiceReference `json:\"service,omitempty\" protobuf:\"bytes,1,opt\"`\nG string `json:\"group,omitempty\" protobuf:\"bytes,2,opt\"`\n\
         V string `json:\"version,omitempty\" protobuf:\"bytes,3,opt\"`\nI bool `json:\"insecureSkipTLSVerify,omitempty\" protobuf:\"bytes,4,opt\"`\n\
         C []byte `json:\"caBundle,omitempty\" protobuf:\"bytes,5,opt\"`\nP int32 `json:\"groupPriorityMinimum\" protobuf:\"bytes,7,opt\"`\n\
         R int32 `json:\"versionPriority\" protobuf:\"bytes,8,opt\"`",
    ),
    (
        "APIServiceCondition",
        "T string `json:\"type\" protobuf:\"bytes,1,opt\"`\nS string `json:\"status\" protobuf:\"bytes,2,opt\"`\nL metav1.Time `json:\"lastTransitionTime,omitempty\" protobuf:\"bytes,3,opt\"`\n\
         R string `json:\"reason,omitempty\" protobuf:\"bytes,4,opt\"`\nM string `json:\"message,omitempty\" protobuf:\"bytes,5,opt\"`",
    ),
    ("APIServiceStatus", "C []APIServiceCondition `json:\"conditions,omitempty\" protobuf:\"bytes,1,rep\"`"),
    (
        "ServiceReference",
        "S string `json:\"namespace,omitempty\" protobuf:\"bytes,1,opt\"`\nN string `json:\"name,omitempty\" protobuf:\"bytes,2,opt\"`\nP *int32 `json:\"port,omitempty\" protobuf:\"bytes,3,opt\"`",
    ),
];

fn folders(path: &Path) -> Result<Vec<String>> {
    let mut names: Vec<String> = fs::read_dir(path)
        .with_context(|| format!("read {}", path.display()))?
        .filter_map(|entry| entry.ok().filter(|e| e.path().is_dir()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    Ok(names)
}

fn read_package(folder: &Path, package: &str, structs: &mut BTreeMap<String, Vec<Member>>) -> Result<()> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .with_context(|| format!("read {}", folder.display()))?
        .filter_map(|entry| entry.ok().map(|e| e.path()))
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.ends_with(".go")
                && !name.starts_with("zz_")
                && !name.starts_with("generated")
                && !name.ends_with("_test.go")
        })
        .collect();
    files.sort();
    for file in files {
        let text = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        let mut open: Option<(String, Vec<Member>)> = None;
        for line in text.lines() {
            let trimmed = line.trim();
            if let Some((name, members)) = &mut open {
                if line.starts_with('}') {
                    structs.insert(std::mem::take(name), std::mem::take(members));
                    open = None;
                } else if !trimmed.starts_with("//") {
                    members.extend(member(trimmed));
                }
            } else if let Some(name) =
                trimmed.strip_prefix("type ").and_then(|rest| rest.strip_suffix(" struct {"))
            {
                open = Some((format!("{package}.{name}"), Vec::new()));
            }
        }
    }
    Ok(())
}

/// Parses one line of a struct. Returns `None` if the line declares nothing that JSON contains.
fn member(line: &str) -> Option<Member> {
    let (declaration, tags) = line.trim().split_once('`')?;
    let tag = tags.split_once("json:\"")?.1.split_once('"')?.0;
    let mut options = tag.split(',');
    let json = options.next().unwrap_or_default();
    let options: Vec<&str> = options.collect();
    let words: Vec<&str> = declaration.split_whitespace().collect();
    let go_type = words.last()?;
    if json == "-" {
        return None;
    }
    let number = tags
        .split_once("protobuf:\"")
        .and_then(|(_, tag)| tag.split([',', '"']).nth(1))
        .and_then(|number| number.parse().ok());
    if json.is_empty() {
        return Some(Member::Inline(go_type.trim_start_matches('*').to_owned(), number));
    }
    Some(Member::Field(GoField {
        json: json.to_owned(),
        ty: go_type.trim_start_matches('*').to_owned(),
        pointer: go_type.starts_with('*'),
        omit_empty: options.contains(&"omitempty"),
        omit_zero: options.contains(&"omitzero"),
        number,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_and_tags_are_parsed() {
        let Some(Member::Field(field)) =
            member("Port *int32 `json:\"port,omitempty\" protobuf:\"varint,3\"`")
        else {
            panic!("not a field");
        };
        assert_eq!(
            field,
            GoField {
                json: "port".into(),
                ty: "int32".into(),
                pointer: true,
                omit_empty: true,
                omit_zero: false,
                number: Some(3)
            }
        );
    }

    #[test]
    fn embedded_structs_are_inline_and_hidden_fields_are_skipped() {
        assert!(
            matches!(member("VolumeSource `json:\",inline\" protobuf:\"bytes,2,opt,name=volumeSource\"`"), Some(Member::Inline(of, Some(2))) if of == "VolumeSource")
        );
        assert!(member("Secret string `json:\"-\"`").is_none());
    }
}
