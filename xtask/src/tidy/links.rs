//! Checks that links between Markdown files point to tracked files and existing headings.
//!
//! Links to websites are not followed, so the check works offline, except links to the branch `main` of this repository:
//! their files are here. Pages of the book use those for files outside of the book, which the rendered book does not have.

use std::collections::BTreeMap;

use pulldown_cmark::{BrokenLink, Event, LinkType, Options, Parser, Tag, TagEnd};

use super::{Files, Violation};

/// Files and directories of this repository on the web.
const REPOSITORY: [&str; 2] = [
    "https://github.com/kubewright/kubewright/blob/main/",
    "https://github.com/kubewright/kubewright/tree/main/",
];

pub(super) fn check(files: &Files, violations: &mut Vec<Violation>) {
    let pages: BTreeMap<_, _> = files.written("md").map(|(path, text)| (path, Page::read(text))).collect();
    for (path, page) in &pages {
        for link in &page.links {
            if let Err((what, fix)) = follow(path, &link.target, files, &pages) {
                violations.push(Violation {
                    path: (*path).to_owned(),
                    line: link.line,
                    what: format!("the link `{}` {what}", link.target),
                    fix: fix.into(),
                });
            }
        }
        for link in &page.undefined {
            violations.push(Violation {
                path: (*path).to_owned(),
                line: link.line,
                what: format!("the link `[{}]` is not defined", link.target),
                fix: "define it at the end of the file".into(),
            });
        }
    }
}

fn follow(
    from: &str,
    target: &str,
    files: &Files,
    pages: &BTreeMap<&str, Page>,
) -> Result<(), (&'static str, &'static str)> {
    if let Some(target) = REPOSITORY.iter().find_map(|start| target.strip_prefix(start)) {
        let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
        return exists(path, anchor, files, pages);
    }
    if target.contains("://") || target.starts_with("mailto:") {
        return Ok(());
    }
    if target.starts_with('/') {
        return Err(("starts at the root of a website", "make it relative to the file"));
    }
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = match path {
        "" => from.to_owned(),
        path => resolve(from, path).ok_or(("leaves the repository", "link to a file in the repository"))?,
    };
    if from.starts_with("docs/") && !path.starts_with("docs/") {
        return Err(("leaves the book", "link to the repository on the web"));
    }
    exists(&path, anchor, files, pages)
}

/// Checks that the repository has a file or directory, and a page its heading.
fn exists(
    path: &str,
    anchor: &str,
    files: &Files,
    pages: &BTreeMap<&str, Page>,
) -> Result<(), (&'static str, &'static str)> {
    if !files.has(path) {
        return Err(("points to a missing file", "fix it, or add the file"));
    }
    match pages.get(path) {
        Some(page) if !anchor.is_empty() && !page.anchors.iter().any(|found| found == anchor) => {
            Err(("points to a missing heading", "write the heading in lower case with hyphens"))
        }
        _ => Ok(()),
    }
}

/// Resolves `target` in the file `from` to a path relative to the root. Returns `None` if it leaves the
/// repository.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<_> = from.split('/').collect();
    parts.pop();
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => _ = parts.pop()?,
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[derive(Debug, Default)]
struct Page {
    anchors: Vec<String>,
    links: Vec<Link>,
    /// Reference links without a definition.
    undefined: Vec<Link>,
}

#[derive(Debug)]
struct Link {
    target: String,
    line: usize,
}

impl Page {
    fn read(text: &str) -> Self {
        let mut page = Self::default();
        let mut undefined = Vec::new();
        let line = |offset: usize| text[..offset].matches('\n').count() + 1;
        let callback = |link: BrokenLink<'_>| {
            // A single word in brackets is usually not a link.
            if matches!(link.link_type, LinkType::Reference | LinkType::Collapsed) {
                undefined.push(Link { target: link.reference.to_string(), line: line(link.span.start) });
            }
            None
        };
        let options = Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES;
        let parser = Parser::new_with_broken_link_callback(text, options, Some(callback));
        let mut heading: Option<String> = None;
        for (event, range) in parser.into_offset_iter() {
            let mut link =
                |target: &str| page.links.push(Link { target: target.to_owned(), line: line(range.start) });
            match event {
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => page.anchor(&heading.take().unwrap_or_default()),
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => link(&dest_url),
                Event::Text(words) | Event::Code(words) => {
                    if let Some(heading) = &mut heading {
                        heading.push_str(&words);
                    }
                }
                Event::Html(html) | Event::InlineHtml(html) => {
                    ["href", "src"].into_iter().flat_map(|name| attribute(&html, name)).for_each(&mut link);
                    page.anchors.extend(
                        ["id", "name"].into_iter().flat_map(|name| attribute(&html, name).map(str::to_owned)),
                    );
                }
                _ => {}
            }
        }
        page.undefined = undefined;
        page
    }

    /// Adds the anchor of a heading, named as GitHub and mdBook do.
    fn anchor(&mut self, heading: &str) {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let slug = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let mut name = slug.clone();
        for n in 1.. {
            if !self.anchors.contains(&name) {
                break;
            }
            name = format!("{slug}-{n}");
        }
        self.anchors.push(name);
    }
}

/// The values of an attribute in an HTML fragment.
fn attribute<'a>(html: &'a str, name: &str) -> impl Iterator<Item = &'a str> {
    let start = format!(" {name}=\"");
    let starts: Vec<_> = html.match_indices(&start).map(|(at, _)| at + start.len()).collect();
    starts.into_iter().filter_map(|at| html[at..].split_once('"')).map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(files: &[(&str, &str)]) -> String {
        let mut violations = Vec::new();
        check(&Files::planted(files), &mut violations);
        violations.sort();
        violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn valid_links_to_files_directories_and_headings_pass() {
        let readme = "# A `cargo` Command: what?\n\n[self](#a-cargo-command-what) [web](https://example.com/x)\n\
                      [adr](docs/adr/) ![logo](logo.svg) [page](docs/a.md#twice-1) [ref][r] [word]\n\n[r]: docs/a.md\n\
                      [file](https://github.com/kubewright/kubewright/blob/main/docs/a.md#twice-1)\n\
                      [tree](https://github.com/kubewright/kubewright/tree/main/docs/adr)\n\
                      <a href=\"docs/a.md\">x</a>\n";
        let page = "# Twice\n## Twice\n[up](adr/0001.md) <a id=\"here\"></a> [here](#here) `[x](nowhere)`\n\n\
                    ```\n[x](nowhere)\n```\n";
        let files = [("README.md", readme), ("docs/a.md", page), ("docs/adr/0001.md", ""), ("logo.svg", "")];
        assert_eq!(reported(&files), "");
    }

    #[test]
    fn dead_links_are_reported_with_file_and_line() {
        let readme =
            "[gone](docs/b.md)\n[no heading](docs/a.md#nothing)\n\n| a |\n|---|\n| [table](x.png) |\n";
        let page = "[out](../../secret.md)\n[root](/README.md)\n[own](#none)\n[undefined][x]\n\n[y]: gone.md\n[y]\n\n\
             [up](../README.md)\n\n\
             [moved](https://github.com/kubewright/kubewright/blob/main/gone.md)\n\
             [renamed](https://github.com/kubewright/kubewright/blob/main/README.md#gone)\n";
        insta::assert_snapshot!(reported(&[("README.md", readme), ("docs/a.md", page)]), @"
        README.md:1: the link `docs/b.md` points to a missing file; fix it, or add the file
        README.md:2: the link `docs/a.md#nothing` points to a missing heading; write the heading in lower case with hyphens
        README.md:6: the link `x.png` points to a missing file; fix it, or add the file
        docs/a.md:1: the link `../../secret.md` leaves the repository; link to a file in the repository
        docs/a.md:2: the link `/README.md` starts at the root of a website; make it relative to the file
        docs/a.md:3: the link `#none` points to a missing heading; write the heading in lower case with hyphens
        docs/a.md:4: the link `[x]` is not defined; define it at the end of the file
        docs/a.md:7: the link `gone.md` points to a missing file; fix it, or add the file
        docs/a.md:9: the link `../README.md` leaves the book; link to the repository on the web
        docs/a.md:11: the link `https://github.com/kubewright/kubewright/blob/main/gone.md` points to a missing file; fix it, or add the file
        docs/a.md:12: the link `https://github.com/kubewright/kubewright/blob/main/README.md#gone` points to a missing heading; write the heading in lower case with hyphens
        ");
    }
}
