// What if a number were another? Sliders for small matrices from which others follow.
// SPDX-License-Identifier: Apache-2.0
"use strict";

const MOST_SLIDERS = 4;

function isAdjustable({ id, matrix }) {
    return Boolean(matrix) && matrix.rule === "given" && !matrix.averaged && matrix.growth === "whole" &&
        matrix.rows * matrix.cols <= MOST_SLIDERS && computable(id);
}

function slider(matrix, i, j, reach, changed) {
    const input = element("input", ""), name = cellName(matrix, i, j);
    const least = matrix.ledger ? matrix.low : -reach; // a ledger holds sizes
    Object.assign(input, { type: "range", min: least, max: reach, step: matrix.decimals === 0 ? 1 : reach / 40, value: matrix.values[i][j], ariaLabel: name });
    input.addEventListener("input", () => {
        matrix.values[i][j] = +input.value;
        changed();
    });
    return element("label", "", element("span", "", ...typeset(name)), input);
}

function sliders({ matrix }, changed) {
    const reach = Math.max(1, matrix.ledger ? matrix.high : 0, ...matrix.values.flat().map(Math.abs)), original = matrix.values.map(row => row.slice());
    const labels = original.flatMap((row, i) => row.map((_, j) => slider(matrix, i, j, reach, changed)));
    const reset = element("button", "", say("复原", "Reset"));
    reset.type = "button";
    reset.addEventListener("click", () => {
        original.forEach((row, i) => { matrix.values[i] = row.slice(); });
        original.flat().forEach((value, n) => { labels[n].querySelector("input").value = value; });
        changed();
    });
    const note = element("p", "note", say("拖动滑块：后面的数由本页重新算出；文字说的仍是原来的数。",
        "Move a slider: this page computes what follows; the text still speaks of the original numbers."));
    return element("details", "knobs unprinted", element("summary", "", say("如果换个数？", "What if?")),
        element("div", "sliders", ...labels, reset, note));
}
