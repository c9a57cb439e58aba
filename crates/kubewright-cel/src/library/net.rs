//! IP address and CIDR functions.
//!
//! Zones and IPv4-mapped IPv6 addresses are rejected, as in Kubernetes.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Function;
use crate::error::EvalError;
use crate::value::{Evaluated, Extension, Value};
use kubewright_apimachinery::field::quote;

pub(super) fn lookup(name: &str) -> Option<Function> {
    Some(match name {
        "ip" => |args| match args {
            [Value::String(text)] => Some(parse_ip(text).map(ip).map_err(EvalError::new)),
            [Value::Extension(Extension::Cidr(address, _))] => Some(Ok(ip(*address))),
            _ => None,
        },
        "isIP" => |args| test_text(args, |text| parse_ip(text).is_ok()),
        "ip.isCanonical" => |args| match args {
            [Value::String(text)] => Some(match parse_ip(text) {
                Ok(address) => Ok(Value::Bool(address.to_string() == **text)),
                Err(error) => Err(EvalError::new(error)),
            }),
            _ => None,
        },
        "family" => |args| match args {
            [Value::Extension(Extension::Ip(address))] => {
                Some(Ok(Value::Int(if address.is_ipv4() { 4 } else { 6 })))
            }
            _ => None,
        },
        "isUnspecified" => |args| test(args, |address| address.is_unspecified()),
        "isLoopback" => |args| test(args, |address| address.is_loopback()),
        "isLinkLocalMulticast" => |args| test(args, is_link_local_multicast),
        "isLinkLocalUnicast" => |args| test(args, is_link_local_unicast),
        "isGlobalUnicast" => |args| test(args, is_global_unicast),
        "cidr" => |args| match args {
            [Value::String(text)] => Some(parse_cidr_value(text)),
            _ => None,
        },
        "isCIDR" => |args| test_text(args, |text| parse_cidr(text).is_ok()),
        "containsIP" => contains_ip,
        "containsCIDR" => contains_cidr,
        "prefixLength" => |args| match args {
            [Value::Extension(Extension::Cidr(_, bits))] => Some(Ok(Value::Int(i64::from(*bits)))),
            _ => None,
        },
        "masked" => |args| match args {
            [Value::Extension(Extension::Cidr(address, bits))] => {
                Some(Ok(Value::Extension(Extension::Cidr(masked(*address, *bits), *bits))))
            }
            _ => None,
        },
        _ => return None,
    })
}

fn ip<'a>(address: IpAddr) -> Value<'a> {
    Value::Extension(Extension::Ip(address))
}

fn test<'a>(args: &[Value<'a>], fits: fn(IpAddr) -> bool) -> Option<Evaluated<'a>> {
    match args {
        [Value::Extension(Extension::Ip(address))] => Some(Ok(Value::Bool(fits(*address)))),
        _ => None,
    }
}

fn test_text<'a>(args: &[Value<'a>], fits: fn(&str) -> bool) -> Option<Evaluated<'a>> {
    match args {
        [Value::String(text)] => Some(Ok(Value::Bool(fits(text)))),
        _ => None,
    }
}

fn parse_ip(text: &str) -> Result<IpAddr, String> {
    let failed = |problem: String| {
        format!("IP Address {} parse error during conversion from string: {problem}", quote(text))
    };
    if let Some((address, zone)) = text.split_once('%')
        && address.contains(':')
        && !zone.is_empty()
        && address.parse::<Ipv6Addr>().is_ok()
    {
        return Err(format!("IP address {} with zone value is not allowed", quote(text)));
    }
    let address: IpAddr = text.parse().map_err(|_| failed(problem(text)))?;
    match address {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text)))
        }
        address => Ok(address),
    }
}

/// Go's parse error for an invalid address.
fn problem(text: &str) -> String {
    let shown = quote(text);
    let parse = |what: &str| format!("ParseAddr({shown}): {what}");
    let with_rest = |what: &str, rest: &str| format!("ParseAddr({shown}): {what} (at {})", quote(rest));
    match text.find(['.', ':', '%']).map(|at| &text[at..=at]) {
        Some(".") => {
            let fields: Vec<&str> = text.split('.').collect();
            let mut at = 0;
            for (i, field) in fields.iter().enumerate() {
                let rest = &text[at..];
                if let Some(bad) = field.find(|c: char| !c.is_ascii_digit()) {
                    return with_rest("unexpected character", &rest[bad..]);
                }
                if field.is_empty() {
                    return match i {
                        0 => with_rest("IPv4 field must have at least one digit", text),
                        _ if i + 1 == fields.len() => {
                            with_rest("IPv4 field must have at least one digit", &text[at - 1..])
                        }
                        _ => with_rest("IPv4 field must have at least one digit", &text[at..]),
                    };
                }
                if field.len() > 1 && field.starts_with('0') {
                    return parse("IPv4 field has octet with leading zero");
                }
                if field.parse::<u32>().is_ok_and(|value| value > 255) || field.len() > 3 {
                    return parse("IPv4 field has value >255");
                }
                if i == 4 {
                    return parse("IPv4 address too long");
                }
                at += field.len() + 1;
            }
            parse("IPv4 address too short")
        }
        Some("%") => parse("missing IPv6 address"),
        _ => parse("unable to parse IP"),
    }
}

fn parse_cidr(text: &str) -> Result<(IpAddr, u8), String> {
    let failed = |problem: String| {
        let shown = quote(text);
        format!(
            "network address parse error during conversion from string: netip.ParsePrefix({shown}): {problem}"
        )
    };
    let (address, bits) = text.rsplit_once('/').ok_or_else(|| failed("no '/'".to_owned()))?;
    let parsed: IpAddr = address.parse().map_err(|_| failed(problem(address)))?;
    let is_number = !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number || bits.len() > 1 && bits.starts_with('0') {
        return Err(failed(format!("bad bits after slash: {}", quote(bits))));
    }
    let max = if parsed.is_ipv4() { 32 } else { 128 };
    let Some(length) = bits.parse::<u8>().ok().filter(|length| *length <= max) else {
        return Err(failed("prefix length out of range".to_owned()));
    };
    match parsed {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {} is not allowed", quote(text)))
        }
        parsed => Ok((parsed, length)),
    }
}

fn parse_cidr_value<'a>(text: &str) -> Evaluated<'a> {
    match parse_cidr(text) {
        Ok((address, bits)) => Ok(Value::Extension(Extension::Cidr(address, bits))),
        Err(error) => {
            Err(EvalError::new(format!("network address parse error during conversion from string: {error}")))
        }
    }
}

fn contains_ip<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let [Value::Extension(Extension::Cidr(network, bits)), other] = args else { return None };
    let address = match other {
        Value::Extension(Extension::Ip(address)) => *address,
        Value::String(text) => match parse_ip(text) {
            Ok(address) => address,
            // Upstream does not report the parse error here.
            Err(_) => return Some(Err(EvalError::no_overload())),
        },
        _ => return None,
    };
    let is_inside =
        network.is_ipv4() == address.is_ipv4() && masked(*network, *bits) == masked(address, *bits);
    Some(Ok(Value::Bool(is_inside)))
}

fn contains_cidr<'a>(args: &[Value<'a>]) -> Option<Evaluated<'a>> {
    let [Value::Extension(Extension::Cidr(network, bits)), other] = args else { return None };
    let (address, length) = match other {
        Value::Extension(Extension::Cidr(address, length)) => (*address, *length),
        Value::String(text) => match parse_cidr_value(text) {
            Ok(Value::Extension(Extension::Cidr(address, length))) => (address, length),
            Ok(_) => return None,
            Err(error) => return Some(Err(error)),
        },
        _ => return None,
    };
    let is_inside = network.is_ipv4() == address.is_ipv4()
        && *bits <= length
        && masked(*network, *bits) == masked(address, *bits);
    Some(Ok(Value::Bool(is_inside)))
}

fn masked(address: IpAddr, bits: u8) -> IpAddr {
    match address {
        IpAddr::V4(v4) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits)).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from(u32::from(v4) & mask))
        }
        IpAddr::V6(v6) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits)).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from(u128::from(v6) & mask))
        }
    }
}

fn is_link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.octets()[..3] == [224, 0, 0],
        IpAddr::V6(v6) => v6.octets()[0] == 0xff && v6.octets()[1] & 0x0f == 0x02,
    }
}

fn is_link_local_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.octets()[..2] == [169, 254],
        IpAddr::V6(v6) => v6.octets()[0] == 0xfe && v6.octets()[1] & 0xc0 == 0x80,
    }
}

fn is_global_unicast(address: IpAddr) -> bool {
    let is_broadcast = address == IpAddr::V4(Ipv4Addr::BROADCAST);
    !(is_broadcast
        || address.is_unspecified()
        || address.is_loopback()
        || address.is_multicast()
        || is_link_local_unicast(address))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cidrs_contain_addresses_with_their_prefix() {
        let inside = |network: &str, other: &str| {
            let args = [parse_cidr_value(network).unwrap(), Value::string(other.to_owned())];
            let found = if other.contains('/') { contains_cidr(&args) } else { contains_ip(&args) };
            matches!(found, Some(Ok(Value::Bool(true))))
        };
        assert!(inside("10.0.0.0/8", "10.1.2.3") && !inside("10.0.0.0/8", "11.0.0.0"));
        assert!(inside("10.0.0.0/8", "10.1.0.0/16") && !inside("10.0.0.0/16", "10.0.0.0/8"));
        assert!(inside("0.0.0.0/0", "1.2.3.4") && !inside("0.0.0.0/0", "::1"));
        assert!(inside("2001:db8::/32", "2001:db8::1"));
    }

    #[test]
    fn only_strict_addresses_are_accepted() {
        assert!(
            parse_ip("::ffff:1.2.3.4").is_err()
                && parse_ip("fe80::1%eth0").is_err()
                && parse_ip("01.2.3.4").is_err()
        );
        assert!(
            parse_cidr("1.2.3.4").is_err()
                && parse_cidr("1.2.3.4/33").is_err()
                && parse_cidr("1.2.3.4/024").is_err()
        );
        assert!(parse_ip("::1").is_ok() && parse_cidr("1.2.3.4/24").is_ok());
    }
}
