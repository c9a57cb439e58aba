//! Validation of IP addresses and CIDRs.
//!
//! Fields that predate strict validation accept leading zeros, because such values may be stored. The
//! standard library parses strictly, so the lenient parser removes the zeros first.

use std::net::{IpAddr, Ipv6Addr};

use crate::json::quote;

const IP_MESSAGE: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const CIDR_MESSAGE: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// An IP address in canonical form.
pub fn ip(value: &str) -> Vec<String> {
    let errors = legacy_ip(value, true);
    match parse_ip_sloppy(value) {
        Some(ip) if errors.is_empty() => not_canonical(value, &go_string(ip)),
        _ => errors,
    }
}

/// An IP address in a field that predates [`ip`]: accepts any IPv6 spelling and, unless `strict`, leading
/// zeros and IPv4-mapped IPv6 addresses.
pub fn legacy_ip(value: &str, strict: bool) -> Vec<String> {
    if parse_ip_sloppy(value).is_none() {
        return vec![IP_MESSAGE.to_owned()];
    }
    match value.parse::<IpAddr>() {
        Err(_) if strict => vec!["must not have leading 0s".to_owned()],
        Ok(ip) if strict && is_mapped(ip) => vec!["must not be an IPv4-mapped IPv6 address".to_owned()],
        _ => Vec::new(),
    }
}

/// The warnings for an address that passes [`legacy_ip`].
pub fn ip_warnings(field: &str, value: &str) -> Vec<String> {
    let Some(sloppy) = parse_ip_sloppy(value) else { return Vec::new() };
    let quoted = quote(value);
    match value.parse::<IpAddr>() {
        Ok(ip) if !is_mapped(ip) => {
            if ip.is_ipv6() && ip.to_string() != value {
                let canonical = quote(&ip.to_string());
                return vec![format!(
                    "{field}: IPv6 address {quoted} should be in RFC 5952 canonical format ({canonical})"
                )];
            }
            Vec::new()
        }
        _ => {
            let standard = quote(&go_string(sloppy));
            vec![format!("{field}: non-standard IP address {quoted} is invalid: use {standard}")]
        }
    }
}

/// A CIDR in canonical form, such as `10.0.0.0/24`.
pub fn cidr(value: &str) -> Vec<String> {
    let errors = legacy_cidr(value, true);
    match parse_cidr_sloppy(value) {
        Some((ip, length)) if errors.is_empty() => {
            not_canonical(value, &format!("{}/{length}", masked(ip, length)))
        }
        _ => errors,
    }
}

/// A CIDR in a field that predates [`cidr`]; see [`legacy_ip`].
pub fn legacy_cidr(value: &str, strict: bool) -> Vec<String> {
    if parse_cidr_sloppy(value).is_none() {
        return vec![CIDR_MESSAGE.to_owned()];
    }
    let message = match parse_cidr_strict(value) {
        _ if !strict => return Vec::new(),
        None => "must not have leading 0s in IP or prefix length",
        Some((ip, _)) if is_mapped(ip) => "must not have an IPv4-mapped IPv6 address",
        Some((ip, length)) if masked(ip, length) != ip => "must not have bits set beyond the prefix length",
        Some(_) => return Vec::new(),
    };
    vec![message.to_owned()]
}

/// The warnings for a CIDR that passes [`legacy_cidr`].
pub fn cidr_warnings(field: &str, value: &str) -> Vec<String> {
    let Some((ip, length)) = parse_cidr_sloppy(value) else { return Vec::new() };
    let quoted = quote(value);
    let network = go_network(ip, length);
    let mut warnings = Vec::new();
    if masked(ip, length) != ip {
        let single = format!("{}/{}", go_string(ip), if ip.is_ipv4() { 32 } else { 128 });
        warnings.push(format!(
            "{field}: CIDR value {quoted} is ambiguous in this context (should be {} or {}?)",
            quote(&network),
            quote(&single)
        ));
    }
    match parse_cidr_strict(value) {
        Some((ip, length)) if !is_mapped(ip) => {
            let canonical = format!("{ip}/{length}");
            if warnings.is_empty() && ip.is_ipv6() && canonical != value {
                let canonical = quote(&canonical);
                warnings.push(format!(
                    "{field}: IPv6 CIDR value {quoted} should be in RFC 5952 canonical format ({canonical})"
                ));
            }
        }
        _ => warnings
            .push(format!("{field}: non-standard CIDR value {quoted} is invalid: use {}", quote(&network))),
    }
    warnings
}

/// An address with a prefix length, such as `10.9.8.7/24`.
pub fn interface_address(value: &str) -> Vec<String> {
    let Some((ip, length)) = parse_cidr_sloppy(value) else {
        return vec!["must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)".to_owned()];
    };
    let length = if is_mapped(ip) && length > 32 { length - 96 } else { length };
    not_canonical(value, &format!("{}/{length}", go_string(ip)))
}

/// Parses an address. Accepts leading zeros.
pub fn parse_ip_sloppy(value: &str) -> Option<IpAddr> {
    strip_leading_zeros(value).parse().ok()
}

/// Parses a CIDR. Accepts leading zeros. The address keeps the bits beyond the prefix.
pub fn parse_cidr_sloppy(value: &str) -> Option<(IpAddr, u8)> {
    let (ip, length) = value.split_once('/')?;
    prefix(parse_ip_sloppy(ip)?, &strip_leading_zeros(length))
}

fn parse_cidr_strict(value: &str) -> Option<(IpAddr, u8)> {
    let (ip, length) = value.split_once('/')?;
    if length.len() > 1 && length.starts_with('0') {
        return None;
    }
    prefix(ip.parse().ok()?, length)
}

fn prefix(ip: IpAddr, length: &str) -> Option<(IpAddr, u8)> {
    // `u8::from_str` would accept a plus sign.
    let length: u8 = length.bytes().all(|b| b.is_ascii_digit()).then(|| length.parse().ok())??;
    (length <= if ip.is_ipv4() { 32 } else { 128 }).then_some((ip, length))
}

/// Removes leading zeros of decimal and hexadecimal numbers, except for the last digit.
fn strip_leading_zeros(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for part in value.split_inclusive(['.', ':']) {
        let digits = part.trim_end_matches(['.', ':']);
        let significant = digits.trim_start_matches('0');
        let kept = if significant.is_empty() && !digits.is_empty() { "0" } else { significant };
        out.push_str(kept);
        out.push_str(&part[digits.len()..]);
    }
    out
}

fn is_mapped(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some())
}

/// Go formats an IPv4-mapped IPv6 address as IPv4.
fn go_string(ip: IpAddr) -> String {
    ip.to_canonical().to_string()
}

/// Go formats an IPv4-mapped CIDR as IPv4, unless its prefix is shorter than the mapping.
fn go_network(ip: IpAddr, length: u8) -> String {
    let network = masked(ip, length);
    match network {
        IpAddr::V6(_) if is_mapped(network) && length >= 96 => {
            format!("{}/{}", go_string(network), length - 96)
        }
        _ => format!("{network}/{length}"),
    }
}

fn masked(ip: IpAddr, length: u8) -> IpAddr {
    match ip {
        IpAddr::V4(ip) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
            IpAddr::V4((ip.to_bits() & mask).into())
        }
        IpAddr::V6(ip) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & mask))
        }
    }
}

fn not_canonical(value: &str, canonical: &str) -> Vec<String> {
    if value == canonical {
        return Vec::new();
    }
    vec![format!("must be in canonical form ({})", quote(canonical))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_strictly_or_leniently() {
        assert!(ip("10.9.8.7").is_empty() && ip("2001:db8::ffff").is_empty() && ip("::").is_empty());
        for wrong in
            ["", "a", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1::2::3", "fe80::1%eth0", "[::1]", "1.2.3.4/8"]
        {
            assert_eq!(ip(wrong), [IP_MESSAGE], "{wrong}");
            assert_eq!(legacy_ip(wrong, false), [IP_MESSAGE], "{wrong}");
        }
        assert_eq!(ip("010.1.1.1"), ["must not have leading 0s"]);
        assert!(legacy_ip("010.1.1.001", false).is_empty());
        assert_eq!(legacy_ip("::ffff:1.2.3.4", true), ["must not be an IPv4-mapped IPv6 address"]);
        assert!(legacy_ip("::ffff:1.2.3.4", false).is_empty());
        assert!(legacy_ip("FE80:0:0:0:0:0:0:0abc", true).is_empty());
        assert_eq!(ip("FE80:0:0:0:0:0:0:0abc"), ["must be in canonical form (\"fe80::abc\")"]);
    }

    #[test]
    fn cidrs_are_parsed_strictly_or_leniently() {
        assert!(cidr("10.0.0.0/24").is_empty() && cidr("::/0").is_empty() && cidr("0.0.0.0/0").is_empty());
        for wrong in
            ["", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "::/129", "10.0.0.0/+8", "10.0.0.0/8/8", "x/8"]
        {
            assert_eq!(cidr(wrong), [CIDR_MESSAGE], "{wrong}");
        }
        assert_eq!(cidr("10.0.0.0/024"), ["must not have leading 0s in IP or prefix length"]);
        assert_eq!(cidr("010.0.0.0/24"), ["must not have leading 0s in IP or prefix length"]);
        assert_eq!(cidr("10.0.0.1/24"), ["must not have bits set beyond the prefix length"]);
        assert_eq!(cidr("::ffff:10.0.0.0/120"), ["must not have an IPv4-mapped IPv6 address"]);
        assert_eq!(cidr("2001:DB8::/64"), ["must be in canonical form (\"2001:db8::/64\")"]);
        assert!(legacy_cidr("010.0.0.1/024", false).is_empty());
    }

    #[test]
    fn an_interface_address_keeps_all_bits() {
        assert!(interface_address("10.9.8.7/24").is_empty());
        assert_eq!(interface_address("10.9.8.7/024"), ["must be in canonical form (\"10.9.8.7/24\")"]);
        assert_eq!(
            interface_address("::ffff:192.168.0.1/120"),
            ["must be in canonical form (\"192.168.0.1/24\")"]
        );
        assert!(!interface_address("10.9.8.7").is_empty());
    }

    #[test]
    fn non_canonical_values_in_legacy_fields_cause_warnings() {
        assert!(ip_warnings("f", "10.0.0.1").is_empty());
        assert_eq!(
            ip_warnings("f", "010.0.0.1"),
            ["f: non-standard IP address \"010.0.0.1\" is invalid: use \"10.0.0.1\""]
        );
        assert_eq!(
            ip_warnings("f", "::ffff:1.2.3.4"),
            ["f: non-standard IP address \"::ffff:1.2.3.4\" is invalid: use \"1.2.3.4\""]
        );
        assert_eq!(
            ip_warnings("f", "2001:DB8::1"),
            ["f: IPv6 address \"2001:DB8::1\" should be in RFC 5952 canonical format (\"2001:db8::1\")"]
        );
        assert_eq!(
            cidr_warnings("f", "10.0.0.5/24"),
            [concat!(
                "f: CIDR value \"10.0.0.5/24\" is ambiguous in this context ",
                "(should be \"10.0.0.0/24\" or \"10.0.0.5/32\"?)"
            )]
        );
        assert_eq!(
            cidr_warnings("f", "10.0.0.0/024"),
            ["f: non-standard CIDR value \"10.0.0.0/024\" is invalid: use \"10.0.0.0/24\""]
        );
        assert_eq!(
            cidr_warnings("f", "2001:DB8::/64"),
            [
                "f: IPv6 CIDR value \"2001:DB8::/64\" should be in RFC 5952 canonical format (\"2001:db8::/64\")"
            ]
        );
    }
}
