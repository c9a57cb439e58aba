// The language of the translated pages: it selects the glyphs that Japanese and Chinese share, and the voice of a screen
// reader. mdBook has one language for the whole book.
for (const [folder, language] of [["/ja/", "ja"], ["/zh/", "zh-Hans"]]) {
  if (location.pathname.includes(folder)) document.documentElement.lang = language;
}
