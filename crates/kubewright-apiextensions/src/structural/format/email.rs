//! Email addresses, parsed like Go's `mail.ParseAddress` (RFC 5322), including display names, comments and
//! quotes.

/// Whether the text is one address, such as `a@b` or `Bob <bob@example.com>`.
pub(super) fn is_address(text: &str) -> bool {
    let mut parser = Parser { rest: text };
    parser.address().is_some() && parser.rest.is_empty()
}

struct Parser<'a> {
    rest: &'a str,
}

impl Parser<'_> {
    /// Parses an address with surrounding comments.
    fn address(&mut self) -> Option<()> {
        self.skip_comments()?;
        if self.rest.is_empty() {
            return None;
        }
        // Try the bare form first, then a display name and `<`.
        let start = self.rest;
        if self.spec().is_some() {
            return self.skip_comments();
        }
        self.rest = start;
        if !self.rest.starts_with('<') {
            self.phrase()?;
        }
        self.skip_comments()?;
        self.take('<')?;
        self.spec()?;
        self.take('>')?;
        self.skip_comments()
    }

    /// `local@domain`
    fn spec(&mut self) -> Option<()> {
        self.skip_space();
        if self.rest.starts_with('"') {
            let quoted = self.quoted()?;
            if quoted.is_empty() {
                return None;
            }
        } else {
            self.atom(true)?;
        }
        self.take('@')?;
        self.skip_space();
        if self.rest.is_empty() {
            return None;
        }
        if self.rest.starts_with('[') { self.literal() } else { self.atom(true) }
    }

    /// Parses the display name.
    fn phrase(&mut self) -> Option<()> {
        let mut words = 0;
        loop {
            self.skip_comments()?;
            let read = match self.rest.chars().next() {
                None => None,
                Some('"') => self.quoted().map(|_| ()),
                Some(_) => self.lax_atom(),
            };
            if read.is_none() {
                break;
            }
            words += 1;
        }
        (words > 0).then_some(())
    }

    fn quoted(&mut self) -> Option<String> {
        let mut chars = self.rest.strip_prefix('"')?.chars();
        let mut text = String::new();
        loop {
            match chars.next()? {
                '"' => break,
                '\\' => {
                    let c = chars.next()?;
                    if !(is_visible(c) || matches!(c, ' ' | '\t')) {
                        return None;
                    }
                    text.push(c);
                }
                c if is_visible(c) || matches!(c, ' ' | '\t') => text.push(c),
                _ => return None,
            }
        }
        self.rest = chars.as_str();
        Some(text)
    }

    /// Parses an atom; with `dots`, single dots may separate its parts.
    fn atom(&mut self, dots: bool) -> Option<()> {
        let end = self.rest.find(|c| !is_atom(c, dots)).unwrap_or(self.rest.len());
        let (atom, rest) = self.rest.split_at(end);
        if atom.is_empty() || atom.starts_with('.') || atom.ends_with('.') || atom.contains("..") {
            return None;
        }
        self.rest = rest;
        Some(())
    }

    /// Parses an atom of a display name, which may have dots anywhere.
    fn lax_atom(&mut self) -> Option<()> {
        let end = self.rest.find(|c| !is_atom(c, true)).unwrap_or(self.rest.len());
        self.rest = self.rest.split_at(end).1;
        (end > 0).then_some(())
    }

    /// `[192.0.2.1]`
    fn literal(&mut self) -> Option<()> {
        let (inside, rest) = self.rest.strip_prefix('[')?.split_once(']')?;
        self.rest = rest;
        let address = inside.strip_prefix("IPv6:").unwrap_or(inside);
        address.parse::<std::net::IpAddr>().ok().map(|_| ())
    }

    fn take(&mut self, c: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(c)?;
        Some(())
    }

    fn skip_space(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t']);
    }

    /// Skips nested comments in parentheses and the white space around them.
    fn skip_comments(&mut self) -> Option<()> {
        loop {
            self.skip_space();
            if !self.rest.starts_with('(') {
                return Some(());
            }
            let mut depth = 0_usize;
            let mut chars = self.rest.chars();
            loop {
                match chars.next()? {
                    '\\' => {
                        chars.next()?;
                    }
                    '(' => depth += 1,
                    ')' => depth -= 1,
                    _ => {}
                }
                if depth == 0 {
                    break;
                }
            }
            self.rest = chars.as_str();
        }
    }
}

fn is_atom(c: char, dots: bool) -> bool {
    match c {
        '.' => dots,
        '(' | ')' | '<' | '>' | '[' | ']' | ':' | ';' | '@' | '\\' | ',' | '"' => false,
        c => is_visible(c),
    }
}

/// Printable ASCII except the space, or any non-ASCII character.
fn is_visible(c: char) -> bool {
    c.is_ascii_graphic() || !c.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_with_and_without_a_display_name_are_accepted() {
        for good in [
            "a@b.c",
            "jdoe@machine.example",
            "Bob <bob@example.com>",
            "\"Joe & J. Harvey\" <ddd@example.org>",
            "J. Doe <j@x.y>",
            "\"a b\"@example.com",
            "jdoe@[192.168.0.1]",
            "<a@b>",
            "a@b (a comment)",
            "söme@exämple.com",
        ] {
            assert!(is_address(good), "{good}");
        }
        for bad in [
            "nope",
            "",
            "@b",
            "a@",
            "a@b@c",
            "a..b@c",
            "a@b, c@d",
            "a@b c",
            "Bob bob@example.com",
            "a@[x]",
            "a@.b",
        ] {
            assert!(!is_address(bad), "{bad}");
        }
    }
}
