//! `cargo xtask prose`: prints comments, log messages and error texts for a language review.
//!
//! Only [`run`] reads the disk. [`comments`], [`logs`] and [`errors`] are pure functions of one source file, and
//! [`draw`] returns the same sample for the same seed.

use std::fmt::Write as _;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use proc_macro2::{Delimiter, Literal, TokenStream, TokenTree};

use crate::tidy::{Files, Workspace};

/// Arguments of `cargo xtask prose`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask prose                                   40 random comment blocks of each crate
  cargo xtask prose --crate kubewright-runtime        of one crate
  cargo xtask prose --count 20 --seed 7               a smaller sample that can be drawn again
  cargo xtask prose --logs                            every log message
  cargo xtask prose --errors --crate kubewright-cli   every error text of one crate")]
pub struct ProseArgs {
    /// The package to read [default: every package]
    #[arg(long = "crate", value_name = "NAME")]
    pub package: Option<String>,
    /// Number of comment blocks to draw from each crate
    #[arg(long, value_name = "N", default_value_t = 40)]
    pub count: usize,
    /// Seed of the sample [default: the current time]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// List all messages of tracing macros instead
    #[arg(long, conflicts_with = "errors")]
    pub logs: bool,
    /// List all error texts instead: `#[error]`, `bail!`, `anyhow!`, `ensure!` and `context`
    #[arg(long)]
    pub errors: bool,
}

/// A comment block or a message.
#[derive(Debug, PartialEq, Eq)]
pub struct Text {
    /// The first line, from 1.
    pub line: usize,
    /// The lines of a comment without indentation, or a string literal as written in the source.
    pub text: String,
}

/// Prints the texts of every chosen crate with file and line.
pub fn run(args: &ProseArgs) -> Result<()> {
    let root = crate::repo_root()?;
    let files = Files::read(&root)?;
    let crates = crates(&root)?;
    if let Some(package) = &args.package {
        let names: Vec<_> = crates.iter().map(|(name, _)| name.as_str()).collect();
        ensure!(
            names.contains(&package.as_str()),
            "unknown crate {package}; choose one of {}",
            names.join(", ")
        );
    }
    let read = match args {
        ProseArgs { logs: true, .. } => logs,
        ProseArgs { errors: true, .. } => errors,
        _ => comments,
    };
    let mut output = String::new();
    let seed = args.seed.unwrap_or_else(crate::soak::seed_from_clock);
    for (name, folder) in crates.iter().filter(|(name, _)| args.package.as_ref().is_none_or(|it| it == name))
    {
        // The folder of a crate may contain another crate.
        let is_own = |path: &str| {
            let holders = crates.iter().filter(|(_, other)| path.starts_with(&format!("{other}/")));
            holders.map(|(_, other)| other.len()).max() == Some(folder.len())
        };
        let sources =
            files.written("rs").filter(|(path, _)| path.starts_with(folder.as_str()) && is_own(path));
        let all: Vec<_> =
            sources.flat_map(|(path, source)| read(source).into_iter().map(move |it| (path, it))).collect();
        let (count, texts) = if args.logs || args.errors {
            (format!("{} texts", all.len()), all)
        } else {
            let count = format!("{} of {} comments, seed {seed}", args.count.min(all.len()), all.len());
            (count, draw(all, args.count, seed))
        };
        writeln!(output, "== {name}: {count}")?;
        for (path, Text { line, text }) in texts {
            writeln!(output, "{path}:{line}\n    {}", text.replace('\n', "\n    "))?;
        }
    }
    match std::io::stdout().write_all(output.as_bytes()) {
        // The reader of a pipe, such as `head`, may stop early.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        done => done.context("write to standard output"),
    }
}

/// Names and folders of all packages. `fuzz` is not a member of the workspace.
fn crates(root: &Path) -> Result<Vec<(String, String)>> {
    let members = Workspace::load(root, &[])?.members.into_iter().map(|member| (member.name, member.folder));
    Ok(members.chain([("kubewright-fuzz".into(), "fuzz".into())]).collect())
}

/// Consecutive lines of `//`, `///` or `//!`. Comments after code on the same line are left out.
pub fn comments(source: &str) -> Vec<Text> {
    let mut strings = Vec::new();
    visit(source, &mut |_, trees| strings.extend(trees.iter().filter_map(literal)));
    let in_string =
        |line: usize| strings.iter().any(|it| it.span().start().line < line && line <= it.span().end().line);
    let mut blocks: Vec<Text> = Vec::new();
    let mut next = 0;
    for (line, text) in source.lines().enumerate().map(|(index, text)| (index + 1, text.trim())) {
        if !text.starts_with("//") || in_string(line) {
            continue;
        }
        match blocks.last_mut() {
            Some(block) if line == next => block.text = format!("{}\n{text}", block.text),
            _ => blocks.push(Text { line, text: text.to_owned() }),
        }
        next = line + 1;
    }
    blocks
}

/// Messages of the tracing macros.
pub fn logs(source: &str) -> Vec<Text> {
    const MACROS: [&str; 5] = ["trace", "debug", "info", "warn", "error"];
    let mut texts = Vec::new();
    visit(source, &mut |before, trees| {
        if matches!(before, [.., name, bang] if bang == "!" && MACROS.contains(&name.as_str())) {
            // The value of a field may be a string too: `kind = "Pod"`.
            let values = trees
                .windows(2)
                .filter(|pair| pair[0].to_string() != "=")
                .filter_map(|pair| literal(&pair[1]));
            texts.extend(trees.first().and_then(literal).into_iter().chain(values).map(|it| text(&it)));
        }
    });
    texts
}

/// Texts of thiserror variants, of anyhow's macros and of `context`.
pub fn errors(source: &str) -> Vec<Text> {
    let mut texts = Vec::new();
    let mut in_context = false;
    visit(source, &mut |before, trees| {
        let is =
            |words: &[&str]| before.ends_with(&words.iter().map(ToString::to_string).collect::<Vec<_>>());
        let message =
            is(&["#", "[", "error"]) || ["bail", "anyhow", "ensure"].iter().any(|name| is(&[name, "!"]));
        let formatted = is(&["|", "|", "format", "!"]) && in_context;
        in_context = is(&[".", "with_context"]);
        if message || formatted || is(&[".", "context"]) {
            texts.extend(trees.iter().filter_map(literal).map(|it| text(&it)));
        }
    });
    texts
}

/// Calls `found` for every group in the order of the source, with the words before it and its own tokens.
fn visit(source: &str, found: &mut dyn FnMut(&[String], &[TokenTree])) {
    fn walk(stream: TokenStream, before: &[String], found: &mut dyn FnMut(&[String], &[TokenTree])) {
        let trees: Vec<_> = stream.into_iter().collect();
        found(before, &trees);
        let mut words =
            if before.ends_with(&["#".into()]) { vec!["#".into(), "[".into()] } else { Vec::new() };
        for tree in &trees {
            match tree {
                TokenTree::Group(group) => {
                    walk(group.stream(), &words, found);
                    words.push(if group.delimiter() == Delimiter::Parenthesis { "()" } else { "{}" }.into());
                }
                other => words.push(other.to_string()),
            }
        }
    }
    if let Ok(stream) = source.parse() {
        walk(stream, &[], found);
    }
}

/// A string literal.
fn literal(tree: &TokenTree) -> Option<Literal> {
    match tree {
        TokenTree::Literal(it) if it.to_string().ends_with(['"', '#']) => Some(it.clone()),
        _ => None,
    }
}

fn text(literal: &Literal) -> Text {
    let mut lines = literal.to_string();
    while let Some((head, tail)) = lines.split_once("\\\n") {
        lines = format!("{head}{}", tail.trim_start());
    }
    Text { line: literal.span().start().line, text: lines }
}

/// `count` of the items in their old order, chosen by `seed`.
pub fn draw<T>(items: Vec<T>, count: usize, seed: u64) -> Vec<T> {
    let mut state = seed;
    let mut keyed: Vec<_> = items.into_iter().enumerate().map(|it| (splitmix64(&mut state), it)).collect();
    keyed.sort_by_key(|(key, _)| *key);
    keyed.truncate(count);
    keyed.sort_by_key(|(_, (index, _))| *index);
    keyed.into_iter().map(|(_, (_, item))| item).collect()
}

fn splitmix64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(texts: Vec<Text>) -> Vec<(usize, String)> {
        texts.into_iter().map(|it| (it.line, it.text)).collect()
    }

    #[test]
    fn consecutive_comment_lines_are_one_block() {
        let source = "//! A\n//! b.\n\n/// C.\nfn c() {\n    // D\n    // e.\n    let f = 1; // trailing\n}\n\
                      const G: &str = \"\n// not a comment\n\";\n";
        let blocks = pairs(comments(source));
        assert_eq!(blocks, [(1, "//! A\n//! b.".into()), (4, "/// C.".into()), (6, "// D\n// e.".into())]);
    }

    #[test]
    fn logs_lists_messages_without_field_values() {
        let source = "fn a() {\n    info!(kind = \"Pod\", \"Starting \\\n          workers\");\n    tracing::warn!(\"slow\");\n    \
                      println!(\"no log\");\n}\n";
        assert_eq!(pairs(logs(source)), [(2, "\"Starting workers\"".into()), (4, "\"slow\"".into())]);
    }

    #[test]
    fn errors_lists_thiserror_and_anyhow_texts() {
        let source = "enum E {\n    #[error(\"one {0}\")]\n    A,\n    #[error(transparent)]\n    B,\n}\nfn a() {\n    \
                      bail!(\"two\");\n    ensure!(x.contains(\"y\"), \"three\");\n    b.context(\"four\")?;\n    \
                      c.with_context(|| format!(\"five {d}\"))?;\n    e.map(|_| format!(\"no error\"));\n}\n";
        let texts: Vec<_> = errors(source).into_iter().map(|it| it.text).collect();
        assert_eq!(texts, ["\"one {0}\"", "\"two\"", "\"three\"", "\"four\"", "\"five {d}\""]);
    }

    #[test]
    fn the_same_seed_draws_the_same_sample() {
        let sample = |seed| draw((0..100).collect::<Vec<_>>(), 10, seed);
        assert_eq!(sample(1), sample(1));
        assert_ne!(sample(1), sample(2));
        assert_eq!(draw(vec![1, 2, 3], 10, 1), [1, 2, 3]);
    }
}
