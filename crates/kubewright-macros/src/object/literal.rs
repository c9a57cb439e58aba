//! Validates literals with a format: quantities and base64.
//!
//! Accepts everything that the API server accepts.

/// Whether `text` is a resource quantity, such as `100m`, `1.5Gi` or `1e3`.
pub(super) fn is_quantity(text: &str) -> bool {
    let number = text.strip_prefix(['+', '-']).unwrap_or(text);
    let suffix = number.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    let digits = &number[..number.len() - suffix.len()];
    let is_number = digits.bytes().any(|byte| byte.is_ascii_digit()) && digits.matches('.').count() <= 1;
    let is_exponent = |text: &str| {
        let power = text.strip_prefix(['+', '-']).unwrap_or(text);
        !power.is_empty() && power.bytes().all(|byte| byte.is_ascii_digit())
    };
    is_number
        && match suffix {
            "" | "n" | "u" | "m" | "k" | "M" | "G" | "T" | "P" | "E" | "Ki" | "Mi" | "Gi" | "Ti" | "Pi"
            | "Ei" => true,
            other => other.strip_prefix(['e', 'E']).is_some_and(is_exponent),
        }
}

/// Whether `text` is base64 with the standard alphabet and padding.
pub(super) fn is_base64(text: &str) -> bool {
    let body = text.trim_end_matches('=');
    let in_alphabet = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    text.len().is_multiple_of(4) && text.len() - body.len() <= 2 && body.bytes().all(in_alphabet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_quantity_accepts_only_quantities() {
        for good in ["0", "1", "100m", "1.5", "0.5Gi", ".5", "1e3", "2E", "12E-2", "-3k", "128Mi"] {
            assert!(is_quantity(good), "{good}");
        }
        for bad in ["", "m", "1GB", "1 Gi", "1gi", "1.2.3", "1e", "Gi", "100MB", "1K"] {
            assert!(!is_quantity(bad), "{bad}");
        }
    }

    #[test]
    fn is_base64_accepts_only_base64() {
        for good in ["", "YQ==", "YWI=", "YWJj"] {
            assert!(is_base64(good), "{good}");
        }
        for bad in ["secret", "a", "YQ=", "Y===", "YW J"] {
            assert!(!is_base64(bad), "{bad}");
        }
    }
}
