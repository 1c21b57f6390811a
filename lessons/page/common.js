// What all parts of a page use: its data, its language, numbers, roles.
// SPDX-License-Identifier: Apache-2.0
"use strict";

const data = JSON.parse(document.getElementById("data").textContent);
const say = (zh, en) => data.language === "zh" ? zh : en;
const calm = matchMedia("(prefers-reduced-motion: reduce)");

// A number as it is shown; names of what is no finite number stay as they are.
function shown(value, decimals) {
    if (typeof value !== "number") return value === null ? "—" : value;
    if (Number.isInteger(value) && decimals === 0) return grouped(value).replace("-", "−");
    const text = Math.abs(value) >= 1e6 ? value.toExponential(1).replace("e+", "e") : value.toFixed(decimals);
    return (/^-0\.?0*$/.test(text) ? text.slice(1) : text).replace("-", "−");
}

// Commas between the thousands of what is counted.
const grouped = value => Number.isInteger(value) && Math.abs(value) >= 1000 && Math.abs(value) < 1e15 ? d3.format(",d")(value) : String(value);

// With the digits that single precision has, as tables show it.
const precise = value => typeof value === "number" ? grouped(+value.toPrecision(7)).replace("-", "−") : shown(value, 0);

// In a product, a negative number stands in brackets.
const factor = text => text.startsWith("−") ? `(${text})` : text;

// The width of a text in units of its size: East Asian characters are as wide as they are high.
const textWidth = text => d3.sum(Array.from(String(text)), c => c.codePointAt(0) >= 0x2e80 ? 1.02 : /[MWmw√Σ]/.test(c) ? .84 : .58);

// The text within so many units, cut with an ellipsis.
function cut(text, width) {
    if (textWidth(text) <= width) return text;
    const letters = Array.from(text);
    while (letters.length > 1 && textWidth(letters.join("")) + .8 > width) letters.pop();
    return `${letters.join("")}…`;
}

// The text on lines of at most so many units, broken at blanks, and between East Asian characters.
function linesOf(text, width) {
    const lines = [""];
    for (const part of String(text).match(/[\u2e80-\uffef]|[^\s\u2e80-\uffef]+|\s+/g) ?? []) {
        const line = lines[lines.length - 1];
        if (line && textWidth(line + part.trimEnd()) > width) lines.push(part.trimStart());
        else lines[lines.length - 1] = line + part;
    }
    return lines.map(line => line.trimEnd());
}

// The size of text in pictures, which are drawn to the width that there is.
const textSize = width => width < 480 ? 14 : width < 900 ? 16 : 18;

// Likewise, with the ellipsis inside: names often differ at their ends.
function cutInside(text, width) {
    const letters = Array.from(text);
    if (textWidth(text) <= width || letters.length < 6) return cut(text, width);
    const end = letters.slice(-3).join("");
    return cut(letters.slice(0, -3).join(""), width - textWidth(end)) + end;
}

// Names of Q, K and V stand beside their colour everywhere; series have a dash and a mark of their own besides.
const dashes = ["none", "7 4", "2 4", "11 4 2 4", "4 2", "14 5", "1 3", "9 3 1 3 1 3"];
const marks = [d3.symbolCircle, d3.symbolSquare, d3.symbolTriangle, d3.symbolDiamond, d3.symbolCross, d3.symbolStar,
    d3.symbolWye, d3.symbolAsterisk];

// The scale of all maps, as a picture of it and as the colour of text that can be read on a colour of it.
const heat = d3.interpolateViridis;
function luminance(colour) { // relative, of sRGB (WCAG 2.1)
    const { r, g, b } = d3.rgb(colour), linear = part => part <= .04045 ? part / 12.92 : ((part + .055) / 1.055) ** 2.4;
    return .2126 * linear(r / 255) + .7152 * linear(g / 255) + .0722 * linear(b / 255);
}
const inkOn = colour => luminance(colour) > .179 ? "#000" : "#fff"; // of black and white what stands out more: at least 4.58 to 1

// Texts, every second of which ends in an index that stands low: W_q, d_k; of dW_q, too.
const lowered = text => String(text).split(/(?<![A-Za-ce-z]|[A-Za-z]d)([A-Za-zα-ωΣ]_[A-Za-z0-9]{1,5})(?![A-Za-z0-9_])/);

function typesetSvg(selection, text) {
    lowered(text).forEach((part, n) => {
        selection.append("tspan").text(n % 2 ? part[0] : part);
        if (n % 2) selection.append("tspan").attr("dy", ".25em").attr("font-size", ".75em").text(part.slice(2));
        if (n % 2) selection.append("tspan").attr("dy", "-.19em").text("\u200b");
    });
}

function typesetIndices(text) {
    return lowered(text).map((part, n) => {
        if (n % 2 === 0) return part;
        const made = document.createElement("span");
        const low = document.createElement("sub");
        low.textContent = part.slice(2);
        made.append(part[0], low);
        return made;
    });
}

// A short quotation stays on its line.
const MOST_UNBROKEN = 12;

// What is quoted may be the title of another lesson, whose name follows, or a command.
function typeset(text) {
    return String(text).split(/(“[^“”]+”(?:（[a-z-]+）| \([a-z-]+\))?)/).flatMap((part, n) => {
        if (n % 2 === 0) return typesetIndices(part);
        const [, quoted, rest] = part.match(/“([^“”]+)”(.*)/), lesson = data.course?.lessons.find(entry => entry.title === quoted);
        if (lesson) return [element("a", "", "“", ...typesetIndices(quoted), "”")].map(made => Object.assign(made, { href: `${lesson.name}.html` }));
        if (quoted.startsWith("clattn ")) return [element("code", "", quoted), rest];
        return quoted.length > MOST_UNBROKEN ? typesetIndices(part) : [element("span", "quoted", ...typesetIndices(part))];
    });
}

// An element with a class and children, which are elements or texts.
function element(name, className, ...children) {
    const made = document.createElement(name);
    if (className) made.className = className;
    made.append(...children.filter(child => child !== null && child !== undefined));
    return made;
}

function dataTable({ head, rows }, caption) {
    const numeric = text => /^[−\d.,e∞ ]+$/.test(text);
    const table = element("table", "data", element("caption", "unseen", caption));
    table.append(element("thead", "", element("tr", "", ...head.map(text => {
        const cell = element("th", "", ...typeset(text));
        cell.scope = "col";
        return cell;
    }))));
    table.append(element("tbody", "", ...rows.map(row => element("tr", "", ...row.map((text, column) => {
        const cell = element(column === 0 ? "th" : "td", numeric(text) ? "number" : "", ...typeset(text));
        if (column === 0) cell.scope = "row";
        return cell;
    })))));
    const box = element("div", "scroll", table);
    Object.assign(box, { tabIndex: 0, role: "region", ariaLabel: caption });
    return box;
}
