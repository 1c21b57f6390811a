// How a cell of a matrix follows from others: its value, its formula with numbers in it, and which cells it needs.
// SPDX-License-Identifier: Apache-2.0
"use strict";

// A matrix of the page by the id of its block.
const matrices = new Map((data.lesson?.blocks ?? []).filter(block => block.matrix).map(block => [block.id, block.matrix]));

// Those of large maps come as whole multiples of a unit.
for (const matrix of matrices.values())
    if (matrix.unit) matrix.values = matrix.values.map(row => row.map(value => typeof value === "number" ? +(value * matrix.unit).toPrecision(7) : value));

// Terms that are written out before "…" stands for the rest.
const TERMS = 10;

const isMasked = (matrix, i, j) => Boolean(matrix.masked?.[i][j]);

// The number of a cell as it is shown.
const shownCell = (matrix, i, j) => shown(matrix.values[i][j], matrix.decimals);
const label = (labels, index) => labels ? labels[index] : String(index);

// Pieces of a formula: [text, role of its colour].
function number(matrix, i, j, inProduct) {
    const text = shownCell(matrix, i, j);
    return [inProduct ? factor(text) : text, matrix.role];
}

function sum(count, term, sign = " + ") {
    const pieces = [];
    for (let n = 0; n < Math.min(count, TERMS); n++) {
        if (n > 0) pieces.push([sign]);
        pieces.push(...term(n));
    }
    if (count > TERMS) pieces.push([`${sign}… ${say(`（共 ${count} 项）`, `(${count} terms)`)}`]);
    return pieces;
}

function scaled(matrix, pieces) {
    if (Math.abs(matrix.factor - 1) < 1e-9) return pieces;
    const root = 1 / matrix.factor ** 2;
    const whole = matrix.factor > 0 && matrix.factor < 1 && Math.abs(root - Math.round(root)) < 1e-4;
    return whole ? [["("], ...pieces, [`) / √${Math.round(root)}`]] : [[`${shown(matrix.factor, Number.isInteger(matrix.factor) ? 0 : 3)} · (`], ...pieces, [")"]];
}

const liveColumns = (matrix, i) => d3.range(matrix.cols).filter(j => !isMasked(matrix, i, j));

// value: undefined where a cell does not follow from numbers of the page. sources: [matrix's side, row, column], null: all of them.
const rules = {
    product: {
        value: (m, i, j, l, r) => m.factor * d3.sum(d3.range(l.cols), n => l.values[i][n] * r.values[n][j]),
        formula: (m, i, j, l, r) => scaled(m, sum(l.cols, n => [number(l, i, n, true), ["·"], number(r, n, j, true)])),
        sources: (i, j) => [["left", i, null], ["right", null, j]],
    },
    product_rows: {
        value: (m, i, j, l, r) => m.factor * d3.sum(d3.range(l.cols), n => l.values[i][n] * r.values[j][n]),
        formula: (m, i, j, l, r) => scaled(m, sum(l.cols, n => [number(l, i, n, true), ["·"], number(r, j, n, true)])),
        sources: (i, j) => [["left", i, null], ["right", j, null]],
    },
    softmax: {
        value: (m, i, j, l) => {
            const live = liveColumns(m, i), top = d3.max(live, n => l.values[i][n]);
            return Math.exp(l.values[i][j] - top) / d3.sum(live, n => Math.exp(l.values[i][n] - top));
        },
        formula: (m, i, j, l) => {
            const live = liveColumns(m, i), power = n => [["exp("], number(l, i, n), [")"]];
            return [...power(j), [" / ("], ...sum(live.length, n => power(live[n])), [")"]];
        },
        sources: i => [["left", i, null]],
    },
    sum: {
        value: (m, i, j, l, r) => l.values[i][j] + r.values[i][j],
        formula: (m, i, j, l, r) => [number(l, i, j), [" + "], number(r, i, j, true)],
        sources: (i, j) => [["left", i, j], ["right", i, j]],
    },
    difference: {
        value: (m, i, j, l, r) => l.values[i][j] - r.values[i][j],
        formula: (m, i, j, l, r) => [number(l, i, j), [" − "], number(r, i, j, true)],
        sources: (i, j) => [["left", i, j], ["right", i, j]],
    },
    log: {
        value: (m, i, j, l) => Math.log(l.values[i][j]),
        formula: (m, i, j, l) => [["log "], number(l, i, j)],
        sources: (i, j) => [["left", i, j]],
    },
    tanh: {
        value: (m, i, j, l) => Math.tanh(l.values[i][j]),
        formula: (m, i, j, l) => [["tanh("], number(l, i, j), [")"]],
        sources: (i, j) => [["left", i, j]],
    },
    recurrence: {
        formula: (m, i) => [[i === 0 ? say("由第一个输入算出", "from the first input")
            : say(`由上一行（${label(m.row_labels, i - 1)}）和这一步的输入算出`,
                `from the row before (${label(m.row_labels, i - 1)}) and this step's input`)]],
        sources: i => [["self", i - 1, null], ["left", i, null]],
    },
};

// The rule of a matrix when what it names is on the page, cell by cell.
function ruleOf(matrix) {
    const rule = rules[matrix.rule], there = id => !id || (matrices.has(id) && !matrices.get(id).averaged);
    return rule && there(matrix.left) && there(matrix.right) ? rule : null;
}

const sideOf = (matrix, side) => side === "self" ? matrix : matrices.get(matrix[side]);

// "S[a, b]"; of a single number, the symbol.
const cellName = (matrix, i, j) => matrix.rows * matrix.cols === 1 ? matrix.symbol ?? ""
    : `${matrix.symbol ?? ""}[${label(matrix.row_labels, i)}, ${label(matrix.col_labels, j)}]`;

// "S[a, b] = ..." with the cell's numbers, as pieces.
function formulaOf(matrix, i, j) {
    const name = [cellName(matrix, i, j), matrix.role];
    if (isMasked(matrix, i, j))
        return [name, [matrix.ledger ? say(" 还没有", " is not there yet") : say(" 被遮住：不参加计算", " is masked: it takes no part")]];
    const value = matrix.values[i][j], rule = ruleOf(matrix);
    if (matrix.averaged) {
        const [rows, cols] = matrix.averaged;
        return [name, [say(` = ${rows}×${cols} 格的平均 ≈ `, ` = the mean of ${rows} × ${cols} cells ≈ `)], [shown(value, matrix.decimals + 1)]];
    }
    if (!rule) return [name, [" = "], [shownCell(matrix, i, j)]];
    const right = matrices.get(matrix.right), left = matrices.get(matrix.left);
    const exact = !["softmax", "tanh", "log"].includes(matrix.rule) && [left, right].every(m => !m || m.decimals === 0) && matrix.decimals === 0;
    const digits = matrix.decimals + (exact ? 0 : 1);
    return [name, [" = "], ...rule.formula(matrix, i, j, left, right), [exact ? " = " : " ≈ "], [shown(value, digits), matrix.role]];
}

// The matrices that share the scale of one; it is among them.
const onScaleOf = matrix => matrix.scale_group ? Array.from(matrices.values()).filter(other => other.scale_group === matrix.scale_group) : [matrix];

// Whether anything follows from a matrix, and all of it can be computed here.
function followers(id) {
    const direct = Array.from(matrices).filter(([, m]) => m.rule !== "given" && (m.left === id || m.right === id)).map(([other]) => other);
    return direct.flatMap(other => [other, ...followers(other)]);
}

function computable(id) {
    const all = followers(id);
    return all.length > 0 && all.every(other => ruleOf(matrices.get(other))?.value);
}

// All that follows from a matrix, anew.
function recompute(id) {
    for (const [other, matrix] of matrices) {
        const rule = ruleOf(matrix);
        if (!rule?.value || !(matrix.left === id || matrix.right === id)) continue;
        delete matrix.top; // of the numbers that were
        for (let i = 0; i < matrix.rows; i++)
            for (let j = 0; j < matrix.cols; j++)
                if (!isMasked(matrix, i, j))
                    matrix.values[i][j] = rule.value(matrix, i, j, matrices.get(matrix.left), matrices.get(matrix.right));
        recompute(other);
    }
}
