// The head and the foot of pages, and the page of the course.
// SPDX-License-Identifier: Apache-2.0
"use strict";

function link(href, ...children) {
    const made = element("a", "", ...children);
    made.href = href;
    return made;
}

function themeButton() {
    const button = element("button", "theme", "◐");
    button.type = "button";
    button.title = say("明暗", "light or dark");
    button.setAttribute("aria-label", button.title);
    button.addEventListener("click", () => {
        const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
        root.dataset.theme = (root.dataset.theme ?? (dark ? "dark" : "light")) === "dark" ? "light" : "dark";
    });
    return button;
}

function navigation(className) {
    const nav = element("nav", className), { course, lesson } = data;
    nav.setAttribute("aria-label", say("课程", "course"));
    if (!course || !lesson) return nav;
    const at = course.lessons.findIndex(entry => entry.name === lesson.name), place = n => course.lessons[n];
    nav.append(place(at - 1) ? link(`${place(at - 1).name}.html`, "← ", ...typesetIndices(place(at - 1).title)) : element("span", ""),
        element("span", "", link("index.html", say(`全部课程 · 第 ${at + 1} / ${course.lessons.length} 课`, `All lessons · ${at + 1} of ${course.lessons.length}`)),
            link("index.html#symbols", say(" · 符号", " · Symbols"))),
        place(at + 1) ? link(`${place(at + 1).name}.html`, ...typesetIndices(place(at + 1).title), " →") : element("span", ""));
    return nav;
}

function header(title, ...facts) {
    return element("header", "", element("div", "bar", element("span", "brand", "clattn"), navigation("steps"), themeButton()),
        element("h1", "", ...typesetIndices(title)), element("p", "facts", facts.filter(Boolean).join(" · ")));
}

// ---- the course -----------------------------------------------------------------------------------------------------

// What each letter means, wherever it stands.
function symbolTable(symbols, lessons) {
    const titles = new Map(lessons.map(entry => [entry.name, entry.title])), heading = element("h2", "", say("符号", "Symbols"));
    heading.id = "symbols";
    return [heading, dataTable({
        head: [say("符号", "symbol"), say("含义", "what it means"), say("最早出现在", "appears first in")],
        rows: symbols.map(({ symbol, meaning, lesson }) => [symbol, meaning, `“${titles.get(lesson)}”`]),
    }, say("符号", "Symbols"))];
}

function coursePage({ title, lessons, device }, symbols) {
    const total = d3.sum(lessons, entry => entry.minutes), minutes = n => say(`${n} 分钟`, `${n} min`);
    const list = element("ol", "course", ...lessons.map(entry => element("li", "",
        element("div", "", link(`${entry.name}.html`, ...typesetIndices(entry.title)), element("span", "minutes", minutes(entry.minutes))),
        entry.question ? element("p", "predict", element("b", "", say("先猜：", "Predict: ")), ...typesetIndices(entry.question)) : null)));
    document.body.append(header(title, say(`${lessons.length} 课`, `${lessons.length} lessons`), minutes(total),
        say(`数字在这台机器上算出：${device}`, `computed here, on ${device}`)),
    element("main", "", element("p", "", say(
        "按顺序看，每课先猜再播放。每页里：空格播放和暂停，← → 一步一步走，Home 和 End 到头到尾，F 全屏；把鼠标放在任何一格上，就能看到它是怎么算出来的。",
        "In this order; predict first, then play. On each page SPACE plays and pauses, ← and → step, Home and End go to the ends, F fills the screen; point at any cell to see how it was computed.")), list, ...symbolTable(symbols, lessons)));
}
