// Names and other long texts in narrow columns: cut between words, never inside a generated suffix.

const canvas = document.createElement("canvas").getContext("2d");
const widths = new Map();
const ELLIPSIS = "…";
/** Characters that are always shown. */
const LEAST = 12;

/** Width of a text in pixels, in the font of the page. */
export function widthOf(text, weight = 500) {
  const key = `${weight} ${text}`;
  let width = widths.get(key);
  if (width === undefined) {
    // Bounded, since names of deleted objects stay in it.
    if (widths.size > 50_000) widths.clear();
    canvas.font = `${weight} 13px ${getComputedStyle(document.documentElement).fontFamily}`;
    width = canvas.measureText(text).width;
    widths.set(key, width);
  }
  return width;
}

/**
 * The name, or a shorter form that fits: words between dashes are dropped from the middle, since generated names differ
 * at the end. At least 12 characters are kept.
 */
export function shorten(name, width) {
  if (name.length <= LEAST || widthOf(name) <= width) return name;
  const parts = name.split("-");
  const last = parts.at(-1);
  for (let kept = parts.length - 2; kept >= 1; kept -= 1) {
    const text = `${parts.slice(0, kept).join("-")}-${ELLIPSIS}-${last}`;
    if (text.length >= LEAST && text.length < name.length && widthOf(text) <= width) return text;
  }
  const words = name.split(".");
  for (let kept = words.length - 1; kept >= 1; kept -= 1) {
    const text = `${words.slice(0, kept).join(".")}.${ELLIPSIS}`;
    if (text.length >= LEAST && widthOf(text) <= width) return text;
  }
  for (let kept = name.length - 1; kept > LEAST; kept -= 1) {
    const text = name.slice(0, kept) + ELLIPSIS;
    if (widthOf(text) <= width) return text;
  }
  return name.slice(0, LEAST) + ELLIPSIS;
}
