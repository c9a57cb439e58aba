//! Browser tests of the layout: every text is readable at the usual widths, in both themes.

use serde_json::{Value, json};

use super::driver::{Browser, browse};
use super::story;
use super::world::World;

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

/// Names in the tree that are cut inside a word.
const CUT_INSIDE: &str = "[...document.querySelectorAll('#rows .row')]
    .map((row) => [row.querySelector('.named').textContent, row.querySelector('.name').title.split(/[ /]/).at(-1)])
    .filter(([shown, name]) => shown !== name && !shown.split('-').every((part) => part === '…' || name.split('-').includes(part)))";

/// Elements of a panel that extend beyond it.
const OUTSIDE: &str = "[...document.querySelectorAll('.line, .row, .top > *')]
    .filter((element) => element.checkVisibility() && element.scrollWidth > element.clientWidth + 1)
    .map((element) => element.textContent)";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn texts_are_readable_at_all_widths() {
    let world = World::with_cluster().await;
    world.define("MarkdownView").await;
    let mut journal = world.journal().await;
    browse(1280, 900, async |browser: &Browser| {
        browser.open(&world.page.url()).await;
        browser.until("document.querySelector('#cluster .say').textContent === 'Connected'").await;
        story::play(&world, &mut journal).await;
        browser.until("[...document.querySelectorAll('#rows .say')].filter((word) => word.textContent === 'Running').length === 2").await;
        browser.until("document.querySelectorAll('#reconcile-list > li').length === 7").await;
        for width in [1280, 1440, 1920] {
            browser.resize(width, 900).await;
            for theme in ["light", "dark"] {
                browser.prefer(theme).await;
                for selected in [false, true] {
                    if selected {
                        browser.click("#rows .row").await;
                        browser.until("document.querySelector('#overview-change').textContent !== ''").await;
                    }
                    settle(browser).await;
                    let at = format!("{width} px, {theme}, object selected: {selected}");
                    assert_eq!(browser.eval(CUT).await, json!([]), "{at}");
                    assert_eq!(browser.eval(CUT_INSIDE).await, json!([]), "{at}");
                    assert_eq!(browser.eval(OUTSIDE).await, json!([]), "{at}");
                    keep(browser, &format!("page-{width}-{theme}{}", if selected { "-object" } else { "" })).await;
                }
                browser.press(&["Escape"]).await;
                browser.until("document.querySelector('#object').hidden").await;
            }
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn causes_show_the_changed_field_at_1280_px() {
    let world = World::with_cluster().await;
    world.define("MarkdownView").await;
    let mut journal = world.journal().await;
    browse(1280, 800, async |browser: &Browser| {
        browser.open(&world.page.url()).await;
        story::play(&world, &mut journal).await;
        browser.until("document.querySelectorAll('#reconcile-list > li').length === 7").await;
        let causes = "[...document.querySelectorAll('#reconcile-list .cause')].map((cause) => {
            const field = [...cause.querySelectorAll('.full')].at(-1);
            const [text, box] = [field.getBoundingClientRect(), cause.closest('.list').getBoundingClientRect()];
            return text.right <= box.right && text.left >= box.left ? field.innerText : 'outside';
        })";
        let causes = browser.eval(causes).await;
        let causes: Vec<&str> = causes.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for field in ["spec.replicas", "status.conditions", "status.readyReplicas", "status.updatedReplicas"] {
            assert!(causes.iter().any(|cause| cause.ends_with(field)), "{field} is not in {causes:?}");
        }
        let names = browser.eval("[...document.querySelectorAll('#reconcile-list .what .named')].map((name) => name.innerText)").await;
        assert!(names.as_array().is_some_and(|names| names.iter().all(|name| name == "markdownview-sample")), "{names}");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reduced_motion_is_respected_and_nothing_is_loaded_from_other_hosts() {
    let world = World::start().await;
    world.config_map("pages", &json!({ "size": "small" })).await;
    browse(1280, 800, async |browser: &Browser| {
        let counted = "window.animated = 0;
            const animate = Element.prototype.animate;
            Element.prototype.animate = function (...rest) { window.animated += 1; return animate.apply(this, rest); };";
        browser.before_load(counted).await;
        for (motion, animated) in [("reduce", false), ("no-preference", true)] {
            browser.prefer_feature("prefers-reduced-motion", motion).await;
            browser.open(&world.page.url()).await;
            browser.until("document.querySelector('#rows .row')").await;
            browser.click("#rows .row").await;
            browser.until("document.querySelector('#object-yaml .code')").await;
            let change = json!({ "data": { "size": motion } });
            world.merge("/api/v1/namespaces/default/configmaps/pages", &change).await;
            browser.until(&format!("document.querySelector('#object-yaml').textContent.includes('{motion}')")).await;
            assert_eq!(browser.eval("window.animated > 0").await, animated, "{motion}");
        }
        let elsewhere = "performance.getEntriesByType('resource').filter((entry) => !entry.name.startsWith(location.origin)).length";
        assert_eq!(browser.eval(elsewhere).await, 0);
        // Every control has a name for screen readers.
        let unnamed = "[...document.querySelectorAll('button, input, select, [role=tree], [role=tabpanel], ul.list')]
            .filter((element) => !(element.textContent.trim() || element.ariaLabel || element.getAttribute('aria-labelledby') || element.closest('label')))
            .map((element) => element.outerHTML)";
        assert_eq!(browser.eval(unnamed).await, json!([]));
    })
    .await;
}

/// Rows are rendered for a new width with the next frames.
async fn settle(browser: &Browser) {
    for _ in 0..2 {
        browser.eval("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))").await;
    }
}

/// With `KUBEWRIGHT_PICTURES` set to a directory, writes a screenshot there.
async fn keep(browser: &Browser, name: &str) {
    let Some(folder) = std::env::var_os("KUBEWRIGHT_PICTURES") else { return };
    let path = std::path::Path::new(&folder).join(format!("{name}.png"));
    std::fs::write(&path, browser.picture().await)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
