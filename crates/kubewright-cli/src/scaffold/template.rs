//! Template rendering.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value};
use serde::Serialize;

/// Renders a template. A failure is a bug, since all templates are embedded.
pub(crate) fn fill(template: &str, with: &impl Serialize) -> String {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().keep_trailing_newline(true).build();
    environment.set_syntax(syntax.expect("the delimiters are valid"));
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment
        .render_str(template, Value::from(Serde(with)))
        .unwrap_or_else(|error| panic!("failed to render a template: {error:#}\n{template}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_last_line_break_is_kept_and_html_is_not_escaped() {
        assert_eq!(fill("<{{ name }}>\n", &json!({ "name": "a & b" })), "<a & b>\n");
    }
}
