//! The entry for [`ROLE_NAMESPACES`](super::ROLE_NAMESPACES) in the project's kustomization.
//!
//! The rest of the file belongs to the user and to the scaffold, so only lines are added and removed.

const FIELD: &str = "transformers:";
const ENTRY: &str = "- role_namespaces.yaml";

/// Adds the entry, or removes it if it is not wanted.
pub(super) fn with_transformer(text: &str, is_wanted: bool) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    match lines.iter().position(|line| line.trim() == ENTRY) {
        Some(_) if is_wanted => return text.to_owned(),
        None if !is_wanted => return text.to_owned(),
        Some(at) => {
            lines.remove(at);
            let is_empty = lines.get(at).is_none_or(|next| !next.trim_start().starts_with(['-', '#']));
            if is_empty && at > 0 && lines[at - 1] == FIELD {
                lines.remove(at - 1);
            }
        }
        None => {
            if let Some(at) = lines.iter().position(|line| *line == FIELD) {
                let indent = lines.get(at + 1).is_some_and(|next| next.starts_with("  -"));
                lines.insert(at + 1, if indent { "  - role_namespaces.yaml" } else { ENTRY });
            } else {
                // At the end, the scaffold adds other fields.
                let prefix = lines.iter().position(|line| line.starts_with("namePrefix:"));
                let at = prefix.map_or(lines.len(), |at| at + 1);
                lines.splice(at..at, [FIELD, ENTRY]);
            }
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCAFFOLD: &str = "namespace: shop-system\nnamePrefix: shop-\nresources:\n- ../rbac\n";

    #[test]
    fn the_entry_is_added_once_and_removed() {
        let with = with_transformer(SCAFFOLD, true);
        let expected = "namespace: shop-system\nnamePrefix: shop-\ntransformers:\n- role_namespaces.yaml\nresources:\n- ../rbac\n";
        assert_eq!(with, expected);
        assert_eq!(with_transformer(&with, true), with);
        assert_eq!(with_transformer(&with, false), SCAFFOLD);
        assert_eq!(with_transformer(SCAFFOLD, false), SCAFFOLD);
    }

    #[test]
    fn other_transformers_stay() {
        for own in ["transformers:\n- mine.yaml\n", "transformers:\n  - mine.yaml\nresources: []\n"] {
            let with = with_transformer(own, true);
            assert_eq!(with.lines().filter(|line| line.trim().starts_with("- ")).count(), 2, "{with}");
            assert_eq!(with_transformer(&with, false), own);
        }
    }
}
