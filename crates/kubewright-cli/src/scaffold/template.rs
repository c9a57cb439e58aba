//! Templates: texts with places to fill in.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value};
use serde::Serialize;

/// Fills in a template. Templates are ours: one that cannot be filled in is a bug.
pub(crate) fn fill(template: &str, with: &impl Serialize) -> String {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().keep_trailing_newline(true).build();
    environment.set_syntax(syntax.expect("the delimiters are the usual ones"));
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment
        .render_str(template, Value::from(Serde(with)))
        .unwrap_or_else(|error| panic!("a template cannot be filled in: {error:#}\n{template}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_keeps_its_last_line_break_and_what_looks_like_html() {
        assert_eq!(fill("<{{ name }}>\n", &json!({ "name": "a & b" })), "<a & b>\n");
    }
}
