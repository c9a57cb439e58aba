//! Browser tests of the layout: every text is readable at the usual widths, in both themes.

use serde_json::{Value, json};

use super::driver::{Browser, browse};
use super::layout::is_readable;
use super::story;
use super::world::World;

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
        let sample = "[...document.querySelectorAll('#rows .name')].find((name) => name.title === 'MarkdownView default/markdownview-sample')";
        for width in [1280, 1440, 1920] {
            browser.resize(width, 900).await;
            for theme in ["light", "dark"] {
                browser.prefer(theme).await;
                // Each tab with a text that it must show.
                for (tab, text) in [
                    ("events", "#event-list .message"),
                    ("reviews", "#review-list .webhook"),
                    ("reviews", "#review-list .action"),
                    ("logs", "#log-list .message"),
                ] {
                    browser.click(&format!("#more-{tab}")).await;
                    is_shown(browser, text).await;
                    is_readable(browser, &format!("{width} px, {theme}, {tab}")).await;
                }
                browser.eval(&format!("{sample}.click()")).await;
                browser.until("document.querySelector('#overview-change').textContent !== ''").await;
                for (part, text) in [
                    ("overview", "#overview-reviews .webhook"),
                    ("yaml", "#object-yaml .code"),
                    ("reconciles", "#object-reconciles .cause"),
                    ("events", "#object-events .message"),
                    ("reviews", "#object-reviews .webhook"),
                    ("logs", "#object-logs .message"),
                    ("graph", "#object-graph .named"),
                ] {
                    browser.click(&format!("#part-{part}")).await;
                    is_shown(browser, text).await;
                    is_readable(browser, &format!("{width} px, {theme}, {part} of the object")).await;
                }
                browser.click("#part-overview").await;
                browser.press(&["Escape"]).await;
                browser.until("document.querySelector('#object').hidden").await;
            }
        }
    })
    .await;
}

/// Waits until a text is visible.
async fn is_shown(browser: &Browser, selector: &str) {
    let shown =
        format!("[...document.querySelectorAll('{selector}')].some((text) => text.checkVisibility())");
    browser.until(&shown).await;
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
async fn the_timeline_follows_the_width_of_the_window() {
    let world = World::with_cluster().await;
    world.define("MarkdownView").await;
    let mut journal = world.journal().await;
    browse(1440, 900, async |browser: &Browser| {
        // Without the redraw once per second.
        browser.before_load("window.setInterval = () => 0;").await;
        browser.open(&world.page.url()).await;
        story::play(&world, &mut journal).await;
        browser.until("document.querySelectorAll('#reconcile-list > li').length === 7").await;
        // 10 % of this range is longer than the test.
        let range = "(() => { const range = document.querySelector('#window'); range.value = '1800';
            return range.dispatchEvent(new Event('change')); })()";
        browser.eval(range).await;
        for width in [1920, 1280, 1440] {
            browser.resize(width, 900).await;
            let drawn = format!(
                "(() => {{
                    const svg = document.querySelector('.timeline').getBoundingClientRect();
                    const bars = [...document.querySelectorAll('.timeline rect')].map((bar) => bar.getBoundingClientRect());
                    const inside = bars.every((bar) => bar.left >= svg.left && bar.right <= svg.right + 0.1);
                    const newest = Math.max(...bars.map((bar) => bar.right));
                    return innerWidth === {width} && bars.length === 7 && inside && newest > svg.left + 0.9 * svg.width;
                }})()"
            );
            browser.until(&drawn).await;
        }
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
