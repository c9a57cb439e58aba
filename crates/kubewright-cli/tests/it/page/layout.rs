//! Checks that texts are readable. Integration tests include this file as well.

use serde_json::json;

use super::driver::Browser;

/// Texts of which less than 12 characters are visible.
const CUT: &str = "(() => {
    const cut = [];
    const texts = '#rows .named, #rows .kind, #rows .say, #rows .condition, .line .named, .line .full, .line .badge, .line .message, .line .say, .line .webhook, .line .action, .controller';
    for (const element of document.querySelectorAll(texts)) {
        const text = element.textContent.trim();
        if (!text || !element.checkVisibility()) continue;
        const range = document.createRange();
        range.selectNodeContents(element);
        const whole = range.getBoundingClientRect();
        let [left, right] = [whole.left, whole.right];
        for (let up = element; up && !up.matches('.panel'); up = up.parentElement) {
            if (getComputedStyle(up).overflowX === 'visible') continue;
            const box = up.getBoundingClientRect();
            left = Math.max(left, box.left);
            right = Math.min(right, box.right);
        }
        const visible = Math.round(text.length * Math.min(1, (right - left + 1) / whole.width));
        if (visible < Math.min(12, text.length)) cut.push(`${element.className}: ${visible} characters of ${text}`);
    }
    return cut;
})()";

/// Names in the tree that are cut inside a word. The tooltip has the whole name.
const CUT_INSIDE: &str = "[...document.querySelectorAll('#rows .row')]
    .map((row) => [row.querySelector('.named').textContent, row.querySelector('.name').title.split(/[ /]/).at(-1)])
    .filter(([shown, name]) => shown !== name && !shown.split(/[-.]/).every((part) => part === '…' || name.split(/[-.]/).includes(part)))";

/// Cut texts without a tooltip that has the whole text. Text in an area that scrolls sideways is not cut.
const UNTITLED: &str = "(() => {
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const [text, element] = [node.data.trim(), node.parentElement];
        if (!text || !element.closest('.top, .panel') || element.closest('.sr, option')) continue;
        if (!element.checkVisibility({ contentVisibilityAuto: true })) continue;
        const range = document.createRange();
        range.selectNodeContents(node);
        const whole = range.getBoundingClientRect();
        let [left, right] = [0, innerWidth];
        for (let up = element; up; up = up.parentElement) {
            const overflow = getComputedStyle(up).overflowX;
            if (overflow === 'auto' || overflow === 'scroll') break;
            if (overflow === 'visible') continue;
            const box = up.getBoundingClientRect();
            left = Math.max(left, box.left);
            right = Math.min(right, box.right);
        }
        if (whole.left >= left - 1 && whole.right <= right + 1) continue;
        // A condition has its status as a sign.
        const title = element.closest('[title]')?.title ?? '';
        if (!title.includes(text.replace(/^[✓–?] /, ''))) found.push(`${element.className}: ${text} (${title})`);
    }
    return found;
})()";

/// Elements of a panel that extend beyond it.
const OUTSIDE: &str = "[...document.querySelectorAll('.line, .row, .top > *')]
    .filter((element) => element.checkVisibility() && element.scrollWidth > element.clientWidth + 1)
    .map((element) => element.textContent)";

/// Checks the texts that the page shows now.
pub(crate) async fn is_readable(browser: &Browser, at: &str) {
    settle(browser).await;
    for (what, script) in [
        ("texts are cut", CUT),
        ("names are cut inside a word", CUT_INSIDE),
        ("cut texts have no tooltip", UNTITLED),
        ("elements extend beyond their panel", OUTSIDE),
    ] {
        assert_eq!(browser.eval(script).await, json!([]), "{at}: {what}");
    }
}

/// Rows are rendered for a new width with the next frames.
pub(crate) async fn settle(browser: &Browser) {
    for _ in 0..2 {
        browser.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))").await;
    }
}
