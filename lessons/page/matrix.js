// Heat maps: a cell for each number.
// SPDX-License-Identifier: Apache-2.0
"use strict";

class MatrixFigure {
    constructor(block, page) {
        this.block = block;
        this.matrix = block.matrix;
        this.page = page;
        this.step = -1;
        this.active = null;
        this.sources = [];
        this.svg = d3.create("svg").attr("class", this.matrix.ledger ? "map ledger" : "map").attr("role", "img").attr("tabindex", 0)
            .attr("aria-label", `${block.title}. ${block.summary ?? ""} ${this.shape()}`)
            .on("keydown", event => this.key(event))
            .on("mousedown", event => event.preventDefault())
            .on("focus", () => { if (this.svg.node().matches(":focus-visible")) this.point(0, 0); })
            .on("blur mouseleave", () => this.leave());
        this.node = element("div", "", this.svg.node(), ...this.notes());
    }

    shape() {
        const { rows, cols } = this.matrix;
        return say(`${rows} 行 ${cols} 列。`, `${rows} rows, ${cols} columns.`);
    }

    notes() {
        const { averaged } = this.matrix;
        if (!averaged) return this.tops().some(row => row.length) ? [element("p", "note", say("虚线框：这一行里最大的。", "Dashed: the largest of its row."))] : [];
        const cells = `${averaged[0]} × ${averaged[1]}`;
        return [element("p", "note", say(`太大，画不下：每一格是 ${cells} 个数的平均。`,
            `Too large to draw whole: each cell is the mean of ${cells} numbers.`))];
    }

    // ---- geometry ----

    // Rows of weights add up to 1; columns, where both are the same words, need not.
    get rowsAdd() { return this.matrix.role === "weights" && !this.matrix.averaged; }
    get colsAdd() { return this.rowsAdd && this.matrix.rows === this.matrix.cols && this.matrix.rows > 1 && this.matrix.values.flat().every(v => typeof v === "number"); }

    // Two that would nearly stand side by side are drawn so that they do.
    draw(width) {
        this.geometry = this.measure(width);
        const half = width / 2 - 24, natural = this.geometry.left + (this.matrix.cols + this.rowsAdd) * this.geometry.cell + 2;
        if (this.node.closest("figure")?.parentNode.childElementCount > 1 && width > 700 && natural > half && natural < 1.35 * half) {
            const tight = this.measure(half);
            if (tight.numbers && tight.whole >= this.geometry.whole) this.geometry = tight;
        }
        this.render(width);
    }

    measure(width) {
        const { rows, cols, row_labels, col_labels, row_axis } = this.matrix;
        const names = (labels, count) => d3.range(count).map(n => label(labels, n));
        const size = textSize(width), widest = list => d3.max(list, textWidth) * size;
        const left = Math.min(widest(names(row_labels, rows)) + 12, width * .38) + (row_axis ? size + 8 : 0);
        const numbers = d3.range(rows * cols).map(n => shownCell(this.matrix, Math.floor(n / cols), n % cols));
        const wanted = Math.max(widest(numbers) * .94 + 16, size * 3.2, Math.min(widest(names(col_labels, cols)) + 12, 130));
        const fit = room => Math.min(wanted, Math.max(4, room / (cols + this.rowsAdd)));
        const longest = Math.min(widest(names(col_labels, cols)), 128), turned = longest + 4 > fit(width - left - 4);
        const lean = turned && !this.rowsAdd ? Math.min(longest, textWidth(label(col_labels, cols - 1)) * size) * .5 : 0;
        const cell = fit(width - left - 4 - lean); // over which the last name leans
        const high = rows > 32 ? Math.min(cell, 9) : Math.min(Math.max(cell * .72, 22), rows > 12 ? 26 : 50);
        const head = turned ? longest * .82 + 16 : size + 10;
        const whole = widest(names(row_labels, rows)) + 12 <= width * .38; // whether no name of a row is cut
        return { size, left, cell, high, turned, whole, top: head + (this.matrix.col_axis ? size + 6 : 0),
            numbers: widest(numbers) * .86 + 3 <= cell && high >= 16 };
    }

    // ---- drawing ----

    render(width) {
        const { rows, cols } = this.matrix, g = this.geometry, right = cols + this.rowsAdd, low = rows + this.colsAdd;
        this.width = Math.max(g.left + right * g.cell + 2, Math.min(width, 210));
        this.height = g.top + low * g.high + (this.matrix.ledger ? 4 : 46);
        this.svg.attr("viewBox", `0 0 ${this.width} ${this.height}`).attr("width", this.width).attr("height", this.height)
            .style("font-size", `${g.size}px`);
        this.svg.selectAll("*").remove();
        this.drawLabels();
        this.drawCells();
        this.rowSums = this.colSums = [];
        if (this.rowsAdd && g.numbers) this.drawSums();
        if (!this.matrix.ledger) this.drawScale(g.top + low * g.high + 12);
        this.paint();
    }

    drawLabels() {
        const { matrix, svg, geometry: g } = this, { rows, cols } = matrix;
        const rowEvery = Math.ceil(g.size * 1.05 / g.high), colEvery = Math.ceil((g.turned ? g.size * 1.05 : 1) / g.cell);
        svg.append("g").attr("class", "labels").selectAll("text").data(d3.range(0, rows, rowEvery)).join("text")
            .attr("x", g.left - 7).attr("y", i => g.top + (i + .5) * g.high).attr("dy", ".35em").attr("text-anchor", "end")
            .text(i => rows === 1 && !matrix.row_labels ? "" : cutInside(label(matrix.row_labels, i), (g.left - 10 - (matrix.row_axis ? g.size + 8 : 0)) / g.size));
        svg.append("g").attr("class", "labels").selectAll("text").data(d3.range(0, cols, colEvery)).join("text")
            .attr("transform", j => `translate(${g.left + (j + .5) * g.cell},${g.top - 6})${g.turned ? "rotate(-55)" : ""}`)
            .attr("text-anchor", g.turned ? "start" : "middle")
            .text(j => cols === 1 && !matrix.col_labels ? "" : cut(label(matrix.col_labels, j), g.turned ? 128 / g.size : g.cell / g.size));
        if (matrix.col_axis)
            svg.append("text").attr("class", "axis-name").attr("x", g.left + cols * g.cell / 2).attr("y", g.size * .9)
                .attr("text-anchor", "middle").call(typesetSvg, `${matrix.col_axis} →`);
        if (matrix.row_axis) this.drawRowAxis(`← ${matrix.row_axis}`, g.top + rows * g.high);
    }

    // Beside the rows, or where they are too few for it, up from their end; never past the head of the map.
    drawRowAxis(text, bottom) {
        const { svg, geometry: g } = this, long = textWidth(text) * g.size, shrunk = Math.min(1, bottom / long);
        const middle = Math.min((g.top + bottom) / 2, bottom - long * shrunk / 2);
        svg.append("text").attr("class", "axis-name").attr("text-anchor", "middle").style("font-size", `${g.size * shrunk}px`)
            .attr("transform", `translate(${g.size * .9},${middle})rotate(-90)`).call(typesetSvg, text);
    }

    drawCells() {
        const { matrix, svg, geometry: g } = this;
        const list = d3.range(matrix.rows * matrix.cols).map(n => ({ i: Math.floor(n / matrix.cols), j: n % matrix.cols }));
        this.cells = svg.append("g").selectAll("g").data(list).join("g").attr("class", "cell")
            .attr("transform", d => `translate(${g.left + d.j * g.cell},${g.top + d.i * g.high})`)
            .on("mouseenter", (event, d) => this.point(d.i, d.j))
            .on("click", (event, d) => this.point(d.i, d.j));
        this.cells.append("rect").attr("width", g.cell).attr("height", g.high).attr("class", g.high < 14 ? "small" : null);
        if (g.numbers)
            this.cells.append("text").attr("x", g.cell / 2).attr("y", g.high / 2).attr("dy", ".35em").attr("text-anchor", "middle")
                .style("font-size", `${g.size * .92}px`);
    }

    drawSums() {
        const { matrix, svg, geometry: g } = this, { rows, cols } = matrix;
        const place = (x, y) => text => text.attr("x", g.left + x * g.cell).attr("y", g.top + y * g.high).attr("dy", ".35em")
            .attr("text-anchor", "middle").style("font-size", `${g.size * .86}px`);
        const group = svg.append("g").attr("class", "sums");
        this.rowSums = d3.range(rows).map(i => group.append("text").call(place(cols + .5, i + .5)));
        group.append("text").call(place(cols + .5, -.28)).text("Σ");
        if (!this.colsAdd) return;
        this.colSums = d3.range(cols).map(j => group.append("text").call(place(j + .5, rows + .5)));
        group.append("text").attr("x", g.left - 7).attr("text-anchor", "end").attr("y", g.top + (rows + .5) * g.high)
            .attr("dy", ".35em").text("Σ");
    }

    // The scale in print: colours from low to high with numbers under them.
    drawScale(y) {
        const { svg, matrix, geometry: g } = this, width = Math.min(this.width - 16, 220), parts = 48;
        const left = 8, scale = svg.append("g").attr("class", "scale").attr("transform", `translate(${left},${y})`);
        const { low, high, decimals } = matrix, digits = Math.max(decimals, high - low < 3 ? 2 : 0), one = !(high > low);
        scale.selectAll("rect").data(d3.range(parts)).join("rect").attr("x", n => n * width / parts).attr("width", width / parts + .6)
            .attr("height", 9).attr("fill", n => heat(one ? .5 : n / (parts - 1)));
        const place = one ? () => .5 : value => (value - low) / (high - low), anchor = part => part < .01 ? "start" : part > .99 ? "end" : "middle";
        scale.selectAll("text").data(this.scaleTicks(low, high, digits)).join("text").attr("x", value => place(value) * width).attr("y", 26)
            .attr("text-anchor", value => anchor(place(value))).style("font-size", `${g.size * .8}px`).text(value => shown(value, digits));
    }

    // Both ends, and between them a round number that is what it is shown as.
    scaleTicks(low, high, digits) {
        if (!(high > low)) return [low];
        const half = (low + high) / 2, exact = value => Math.abs(+value.toFixed(digits) - value) < 1e-9 * (high - low);
        const middle = exact(half) ? half : d3.least(d3.ticks(low, high, 4), value => Math.abs(value - half)), part = (middle - low) / (high - low);
        return part > .25 && part < .75 && exact(middle) ? [low, middle, high] : [low, high];
    }

    // ---- state ----

    revealedAt(i, j) {
        const { block: { step }, matrix: { growth, cols, averaged } } = this;
        if (growth === "whole") return step;
        const row = i * (averaged?.[0] ?? 1), col = j * (averaged?.[1] ?? 1);
        return step + 1 + (growth === "row" ? row : row * cols * (averaged?.[1] ?? 1) + col);
    }

    wholeAt() { return this.revealedAt(this.matrix.rows - 1, this.matrix.cols - 1); }

    show(step) {
        this.step = step;
        if (this.cells) this.paint();
    }

    // Room on the scale for numbers that a slider has changed; never less than it was.
    widenScale() {
        const { matrix } = this, values = onScaleOf(matrix).flatMap(other => other.values.flat());
        this.scale ??= [matrix.low, matrix.high];
        [matrix.low, matrix.high] = d3.extent([...this.scale, ...values.filter(Number.isFinite)]);
    }

    colour(value) {
        const { low, high, ledger } = this.matrix;
        if (ledger) return null;
        if (typeof value !== "number") return value === "∞" ? heat(1) : value === "−∞" ? heat(0) : null;
        return heat(high > low ? Math.min(1, Math.max(0, (value - low) / (high - low))) : .5);
    }

    paint() {
        const { matrix, step, active, sources } = this, known = (i, j) => this.revealedAt(i, j) <= step;
        const isSource = (i, j) => sources.some(([row, col]) => (row === null || row === i) && (col === null || col === j));
        const tops = this.tops();
        this.cells.attr("class", ({ i, j }) => ["cell", known(i, j) ? "" : "unknown", isMasked(matrix, i, j) ? "masked" : "",
            matrix.growth !== "whole" && this.revealedAt(i, j) === step ? "fresh" : "", isSource(i, j) ? "source" : "",
            active?.[0] === i && active?.[1] === j ? "active" : "", tops[i]?.includes(j) && known(i, j) ? "top" : ""].join(" "));
        this.cells.select("rect").attr("fill", ({ i, j }) =>
            known(i, j) && !isMasked(matrix, i, j) ? this.colour(matrix.values[i][j]) ?? (matrix.ledger ? "var(--paper)" : "url(#hatch)") : "url(#hatch)");
        this.cells.select("text").text(({ i, j }) => !known(i, j) ? "" : isMasked(matrix, i, j) ? matrix.ledger ? "–" : "•"
            : shownCell(matrix, i, j))
            .style("fill", ({ i, j }) => {
                const colour = isMasked(matrix, i, j) ? null : this.colour(matrix.values[i][j]);
                return colour ? inkOn(colour) : "currentColor";
            });
        this.svg.select(".scale").attr("visibility", known(0, 0) ? null : "hidden"); // its ends are numbers of cells
        this.paintSums(known);
        this.svg.selectAll(".active, .source, .fresh").raise();
    }

    // The largest of each row, where looking at whom is the question, as the numbers are, not as they are shown; none where all are.
    tops() {
        const { matrix } = this;
        if (matrix.averaged || matrix.ledger || matrix.cols < 2 || !["scores", "weights"].includes(matrix.role)) return [];
        return matrix.top ?? matrix.values.map((row, i) => {
            const live = liveColumns(matrix, i).filter(j => typeof row[j] === "number"), most = d3.max(live, j => row[j]);
            const largest = live.filter(j => row[j] === most);
            return largest.length < live.length ? largest : [];
        });
    }

    paintSums(known) {
        const { matrix } = this, { rows, cols } = matrix;
        const value = (i, j) => isMasked(matrix, i, j) ? 0 : matrix.values[i][j];
        const total = list => shown(list.every(v => typeof v === "number") ? d3.sum(list) : "NaN", Math.max(2, matrix.decimals));
        this.rowSums.forEach((text, i) => text.text(known(i, cols - 1) ? total(d3.range(cols).map(j => value(i, j))) : ""));
        this.colSums.forEach((text, j) => text.text(known(rows - 1, j) ? total(d3.range(rows).map(i => value(i, j))) : ""));
    }

    // ---- pointing ----

    point(i, j) {
        if (this.revealedAt(i, j) > this.step) return;
        this.active = [i, j];
        this.page.explain(formulaOf(this.matrix, i, j), this.sourcesOf(i, j));
        this.paint();
    }

    // [id, row, column] of the cells that a cell needs.
    sourcesOf(i, j) {
        const rule = ruleOf(this.matrix), ids = { self: this.block.id, left: this.matrix.left, right: this.matrix.right };
        return rule ? rule.sources(i, j).map(([side, row, col]) => [ids[side], row, col]) : [];
    }

    leave() {
        if (!this.active) return;
        this.active = null;
        this.page.explain(null, []);
        this.paint();
    }

    light(sources) {
        this.sources = sources;
        if (this.cells) this.paint();
    }

    key(event) {
        const moves = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
        if (event.key === "Escape") this.svg.node().blur();
        if (!moves[event.key] || event.ctrlKey || event.altKey || event.metaKey) return;
        event.preventDefault();
        event.stopPropagation();
        const [i, j] = this.active ?? [0, 0], [down, right] = this.active ? moves[event.key] : [0, 0];
        this.point(Math.min(Math.max(i + down, 0), this.matrix.rows - 1), Math.min(Math.max(j + right, 0), this.matrix.cols - 1));
    }

    // ---- the same in words and numbers ----

    // The formula of the cell that a step of growth has just shown; of the last one, when it shows many.
    freshFormula(step) {
        const { matrix, block } = this;
        if (matrix.growth !== "cell" || matrix.averaged || step <= block.step) return null;
        const n = step - block.step - 1;
        if (n >= matrix.rows * matrix.cols) return null;
        const i = Math.floor(n / matrix.cols), j = n % matrix.cols;
        return { pieces: formulaOf(matrix, i, j), sources: this.sourcesOf(i, j) };
    }

    caption(step) {
        return this.matrix.captions?.[step - this.block.step - 1] ?? null;
    }

    table() {
        const { matrix } = this;
        return {
            head: [matrix.symbol ?? "", ...d3.range(matrix.cols).map(j => label(matrix.col_labels, j))],
            rows: matrix.values.map((row, i) => [label(matrix.row_labels, i),
                ...row.map((value, j) => isMasked(matrix, i, j) ? "·" : precise(value))]),
        };
    }
}
