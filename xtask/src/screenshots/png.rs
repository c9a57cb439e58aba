//! Makes screenshots smaller: 256 colors and the best compression.
//!
//! Smoothed text has thousands of shades, most of them on a few pixels. Frequent colors are kept, and of the others those
//! that differ visibly. The rest become the nearest of them, which is not visible.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};

use anyhow::{Context as _, Result, ensure};
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use flate2::{Compression, Crc};

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
const COLORS: usize = 256;
/// Colors that are kept even if others are similar, such as the backgrounds of two panels.
const FREQUENT: usize = 64;
/// Squared distance of the other colors.
const VISIBLE: u32 = 100;

type Color = [u8; 3];

/// Writes a screenshot of Chromium with a palette.
pub fn shrink(png: &[u8]) -> Result<Vec<u8>> {
    let picture = Picture::decode(png)?;
    let palette = picture.palette();
    let mut known: HashMap<Color, u8> = HashMap::new();
    let mut rows = Vec::with_capacity(picture.pixels.len() + picture.height);
    for row in picture.pixels.chunks(picture.width) {
        // No filter: the values are numbers of colors.
        rows.push(0);
        rows.extend(
            row.iter().map(|color| *known.entry(*color).or_insert_with(|| nearest(&palette, *color))),
        );
    }
    let mut data = ZlibEncoder::new(Vec::new(), Compression::best());
    data.write_all(&rows).context("compress")?;
    let mut header = Vec::new();
    for side in [picture.width, picture.height] {
        header.extend(u32::try_from(side).context("a picture is too large")?.to_be_bytes());
    }
    // 8 bits, a palette, and the only methods that there are.
    header.extend([8, 3, 0, 0, 0]);
    let mut written = SIGNATURE.to_vec();
    chunk(&mut written, "IHDR", &header)?;
    chunk(&mut written, "PLTE", &palette.concat())?;
    chunk(&mut written, "IDAT", &data.finish().context("compress")?)?;
    chunk(&mut written, "IEND", &[])?;
    Ok(written)
}

fn chunk(written: &mut Vec<u8>, name: &str, data: &[u8]) -> Result<()> {
    written.extend(u32::try_from(data.len()).context("a picture is too large")?.to_be_bytes());
    let mut sum = Crc::new();
    sum.update(name.as_bytes());
    sum.update(data);
    written.extend(name.as_bytes());
    written.extend(data);
    written.extend(sum.sum().to_be_bytes());
    Ok(())
}

#[expect(clippy::cast_possible_truncation, reason = "a palette has at most 256 colors")]
fn nearest(palette: &[Color], color: Color) -> u8 {
    let found = palette.iter().enumerate().min_by_key(|(_, other)| distance(**other, color));
    found.map_or(0, |(at, _)| at as u8)
}

/// The squared distance of two colors.
fn distance(one: Color, other: Color) -> u32 {
    one.iter().zip(other).map(|(a, b)| u32::from(a.abs_diff(b)).pow(2)).sum()
}

struct Picture {
    width: usize,
    height: usize,
    pixels: Vec<Color>,
}

impl Picture {
    /// Reads an image with 8 bits per channel, with or without alpha, as Chromium writes them.
    fn decode(png: &[u8]) -> Result<Self> {
        let mut rest = png.strip_prefix(SIGNATURE).context("not a PNG")?;
        let (mut header, mut data) = (&[][..], Vec::new());
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let length = u32::from_be_bytes(*length) as usize;
            let body = after.get(4..4 + length).context("a chunk is cut")?;
            match &after[..4] {
                b"IHDR" => header = body,
                b"IDAT" => data.extend_from_slice(body),
                _ => {}
            }
            rest = after.get(8 + length..).unwrap_or_default();
        }
        let [w0, w1, w2, w3, h0, h1, h2, h3, 8, kind @ (2 | 6), 0, 0, 0] = header else {
            anyhow::bail!("only PNGs with 8 bits per channel are supported, not {header:?}");
        };
        let (width, height) = (
            u32::from_be_bytes([*w0, *w1, *w2, *w3]) as usize,
            u32::from_be_bytes([*h0, *h1, *h2, *h3]) as usize,
        );
        let channels = if *kind == 6 { 4 } else { 3 };
        let mut rows = Vec::new();
        ZlibDecoder::new(&*data).read_to_end(&mut rows).context("decompress")?;
        let stride = width * channels;
        ensure!(width > 0 && rows.len() == (stride + 1) * height, "the picture has missing rows");
        let mut pixels = Vec::with_capacity(width * height);
        let mut above = vec![0; stride];
        for row in rows.chunks_mut(stride + 1) {
            let (filter, row) = row.split_first_mut().context("a row is empty")?;
            unfilter(*filter, row, &above, channels)?;
            pixels.extend(row.chunks(channels).map(|pixel| [pixel[0], pixel[1], pixel[2]]));
            above.copy_from_slice(row);
        }
        Ok(Self { width, height, pixels })
    }

    /// The colors to keep, most frequent first.
    fn palette(&self) -> Vec<Color> {
        let mut counts: HashMap<Color, usize> = HashMap::new();
        for color in &self.pixels {
            *counts.entry(*color).or_default() += 1;
        }
        let mut colors: Vec<(usize, Color)> =
            counts.into_iter().map(|(color, count)| (count, color)).collect();
        colors.sort_unstable_by(|a, b| b.cmp(a));
        let mut palette: Vec<Color> = Vec::with_capacity(COLORS);
        for (_, color) in colors {
            let is_new =
                palette.len() < FREQUENT || palette.iter().all(|kept| distance(*kept, color) >= VISIBLE);
            if is_new && palette.len() < COLORS {
                palette.push(color);
            }
        }
        palette
    }
}

/// Undoes the filter of a row.
fn unfilter(filter: u8, row: &mut [u8], above: &[u8], channels: usize) -> Result<()> {
    ensure!(filter <= 4, "unknown filter {filter}");
    for at in 0..row.len() {
        let left = at.checked_sub(channels).map_or(0, |before| row[before]);
        let diagonal = at.checked_sub(channels).map_or(0, |before| above[before]);
        let predicted = match filter {
            1 => left,
            2 => above[at],
            3 => left.midpoint(above[at]),
            4 => paeth(left, above[at], diagonal),
            _ => 0,
        };
        row[at] = row[at].wrapping_add(predicted);
    }
    Ok(())
}

/// The neighbor that is nearest to `left + above - diagonal`.
fn paeth(left: u8, above: u8, diagonal: u8) -> u8 {
    let guess = i16::from(left) + i16::from(above) - i16::from(diagonal);
    let away = |value: u8| (guess - i16::from(value)).abs();
    if away(left) <= away(above) && away(left) <= away(diagonal) {
        left
    } else if away(above) <= away(diagonal) {
        above
    } else {
        diagonal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A picture of 3 × 5 pixels whose rows use all filters.
    fn written(rows: &[[u8; 10]]) -> Vec<u8> {
        let mut data = ZlibEncoder::new(Vec::new(), Compression::fast());
        data.write_all(&rows.concat()).unwrap();
        let mut png = SIGNATURE.to_vec();
        chunk(&mut png, "IHDR", &[0, 0, 0, 3, 0, 0, 0, 5, 8, 2, 0, 0, 0]).unwrap();
        chunk(&mut png, "IDAT", &data.finish().unwrap()).unwrap();
        chunk(&mut png, "IEND", &[]).unwrap();
        png
    }

    #[test]
    fn the_colors_of_a_small_picture_are_kept() {
        let png = written(&[
            [0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
            [1, 1, 2, 3, 1, 1, 1, 1, 1, 1],
            [2, 1, 1, 1, 1, 1, 1, 1, 1, 1],
            [3, 1, 1, 1, 1, 1, 1, 1, 1, 1],
            [4, 1, 1, 1, 1, 1, 1, 1, 1, 1],
        ]);
        let picture = Picture::decode(&png).unwrap();
        assert_eq!(picture.pixels[..6], [[1, 2, 3], [4, 5, 6], [7, 8, 9], [1, 2, 3], [2, 3, 4], [3, 4, 5]]);
        assert_eq!(picture.pixels[6..9], [[2, 3, 4], [3, 4, 5], [4, 5, 6]]);
        // (0 + 2) / 2 + 1, then (2 + 3) / 2 + 1.
        assert_eq!(picture.pixels[9..11], [[2, 2, 3], [3, 4, 5]]);
        assert_eq!(picture.pixels[12], [3, 3, 4]);

        let small = shrink(&png).unwrap();
        assert_eq!(small[16..29], [0, 0, 0, 3, 0, 0, 0, 5, 8, 3, 0, 0, 0]);
        let palette = picture.palette();
        let start = small.windows(4).position(|bytes| bytes == *b"PLTE").unwrap() + 4;
        assert_eq!(small[start..start + palette.len() * 3], palette.concat());
        assert!(palette.len() < 16 && picture.pixels.iter().all(|color| palette.contains(color)));
    }

    #[test]
    fn rare_colors_become_the_nearest_frequent_one() {
        let palette = [[255, 255, 255], [0, 0, 0], [200, 30, 30]];
        assert_eq!(nearest(&palette, [250, 250, 255]), 0);
        assert_eq!(nearest(&palette, [10, 10, 10]), 1);
        assert_eq!(nearest(&palette, [180, 40, 20]), 2);
    }

    #[test]
    fn other_files_are_rejected() {
        assert_eq!(shrink(b"GIF89a").unwrap_err().to_string(), "not a PNG");
        let mut cut = written(&[[0; 10]; 5]);
        cut.truncate(40);
        assert!(shrink(&cut).is_err());
    }
}
