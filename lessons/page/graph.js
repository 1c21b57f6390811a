// What waits for what, over time: a lane of rows, in which each node stands in the column of the earliest step in which it can be
// computed; in the first column, what is there from the start.
// SPDX-License-Identifier: Apache-2.0
"use strict";

class GraphFigure {
    constructor(block, page) {
        this.block = block;
        this.graph = block.graph;
        this.page = page;
        this.last = d3.max(this.graph.nodes, n => n.step) ?? 0;
        this.own = this.last;
        this.results = this.graph.nodes.filter(n => n.step > 0);
        this.lanes = d3.range((d3.max(this.graph.nodes, n => n.lane) ?? 0) + 1);
        this.svg = d3.create("svg").attr("class", "graph").attr("role", "img").attr("aria-label", `${block.title}. ${block.summary ?? ""}`);
        this.counter = element("p", "counter");
        this.node = element("div", "wide", this.svg.node(), this.counter);
    }

    // One for each step of the graph, after a first picture of nothing computed.
    get steps() { return this.last; }

    draw(width) {
        const { nodes, lanes } = this.graph, rows = (d3.max(nodes, n => n.place) ?? 0) + 1, size = textSize(width);
        const left = Math.min(d3.max(nodes, n => textWidth(n.label ?? "")) * size, width * .3) + 6;
        const column = (width - left - 2) / (this.last + 2), row = Math.min(52, Math.max(26, size * 2));
        const names = this.lanes.map(lane => linesOf(lanes?.[lane] ?? "", (width - 4) / size));
        const radius = Math.min(row * .42, column * .3), head = size * (.7 + 1.2 * d3.max(names, lines => lines.length)), foot = size * 1.8;
        const high = head + row * rows + foot + 10;
        this.geometry = { size, left, column, row, radius, head, high, width };
        this.svg.attr("viewBox", `0 0 ${width} ${high * this.lanes.length}`).attr("width", width).attr("height", high * this.lanes.length)
            .style("font-size", `${size}px`);
        this.svg.selectAll("*").remove();
        this.svg.append("defs").append("marker").attr("id", `tip-${this.block.id}`).attr("viewBox", "0 0 10 10").attr("refX", 9).attr("refY", 5)
            .attr("markerUnits", "userSpaceOnUse").attr("markerWidth", 10).attr("markerHeight", 10).attr("orient", "auto-start-reverse")
            .append("path").attr("d", "M0,0L10,5L0,10Z").attr("class", "tip");
        this.drawAxes(names, rows);
        this.drawEdges();
        this.drawNodes();
        this.paint();
    }

    // Arrows fan out before the first step: it stands a column further.
    x(step) { return this.geometry.left + this.geometry.column * (step + (step > 0 ? 1.5 : .5)); }

    place(node) {
        const { head, row, high } = this.geometry;
        return [this.x(node.step), node.lane * high + head + row * (node.place + .5)];
    }

    // The name of each lane, of its rows and of its columns.
    drawAxes(names, rows) {
        const { size, left, head, row, high, column, width } = this.geometry;
        const wide = say("一开始就有", "from the start"), start = textWidth(wide) * size <= column * 1.6 ? wide : say("词", "words");
        for (const lane of this.lanes) {
            const labels = this.svg.append("g").attr("class", "labels").attr("transform", `translate(0,${lane * high})`);
            labels.append("text").attr("class", "lane-name").selectAll("tspan").data(names[lane]).join("tspan")
                .attr("x", 2).attr("y", (line, n) => size * (1.1 + 1.2 * n)).text(line => line);
            labels.append("g").selectAll("text").data(this.graph.nodes.filter(n => n.lane === lane && n.step === 0)).join("text")
                .attr("x", left - 6).attr("y", n => head + row * (n.place + .5)).attr("dy", ".35em").attr("text-anchor", "end")
                .text(n => cut(n.label ?? "", (left - 6) / size));
            labels.append("g").selectAll("text").data(d3.range(this.last + 1)).join("text").attr("x", step => this.x(step))
                .attr("y", head + row * rows + size * 1.3).attr("text-anchor", "middle")
                .text(step => step === 0 ? start : step === 1 && column > size * 4 ? say("第 1 步", "step 1") : step);
            labels.append("line").attr("class", "base").attr("x1", left).attr("x2", width - 2)
                .attr("y1", head + row * rows + 2).attr("y2", head + row * rows + 2);
        }
    }

    drawEdges() {
        const { nodes, edges } = this.graph, { radius, column } = this.geometry;
        const tip = edges.length > 120 || column < 26 ? null : `url(#tip-${this.block.id})`; // no room
        this.edges = this.svg.append("g").selectAll("path").data(edges).join("path").attr("class", "edge").style("stroke-width", edges.length > 60 ? 1 : null)
            .attr("marker-end", tip).attr("d", ([from, to]) => {
                const [x0, y0] = this.place(nodes[from]), [x1, y1] = this.place(nodes[to]);
                const length = Math.hypot(x1 - x0, y1 - y0) || 1, dx = (x1 - x0) / length * radius, dy = (y1 - y0) / length * radius;
                return `M${x0 + dx},${y0 + dy}L${x1 - dx},${y1 - dy}`;
            });
    }

    drawNodes() {
        const { radius, size } = this.geometry, text = Math.min(size, radius * 1.3);
        this.nodes = this.svg.append("g").selectAll("g").data(this.graph.nodes).join("g")
            .attr("transform", node => `translate(${this.place(node)})`);
        this.nodes.filter(node => node.step === 0).append("rect").attr("x", -radius * .8).attr("y", -radius * .8)
            .attr("width", radius * 1.6).attr("height", radius * 1.6);
        const results = this.nodes.filter(node => node.step > 0);
        results.append("circle").attr("r", radius);
        if (text >= 9)
            results.append("text").attr("class", "step").attr("dy", ".35em").attr("text-anchor", "middle").style("font-size", `${text}px`)
                .text(node => node.step);
    }

    // Steps of its own: 0, nothing computed; n, all that can be computed in n steps.
    show(step, own) {
        this.own = own === undefined ? this.last : own;
        if (this.nodes) this.paint();
    }

    paint() {
        const { nodes } = this.graph, done = node => node.step <= this.own;
        this.nodes.attr("class", node => ["node", node.step === 0 ? "input" : done(node) ? "done" : "",
            node.step > 0 && node.step === this.own ? "fresh" : ""].join(" "));
        this.edges.attr("class", ([, to]) => ["edge", done(nodes[to]) ? "done" : "", nodes[to].step === this.own ? "fresh" : ""].join(" "));
        const ready = lane => this.results.filter(node => node.lane === lane && done(node)).length, all = lane => this.results.filter(node => node.lane === lane).length;
        const tally = this.lanes.map(lane => `${ready(lane)} / ${all(lane)}`).join(say("，下 ", ", below "));
        this.counter.textContent = say(`第 ${this.own} / ${this.last} 步：算完的结果，上 ${tally}。方块是词，圆是结果，圆里的数字是最早能算它的那一步；箭头从它要等的来。`,
            `Step ${this.own} of ${this.last}: results computed, above ${tally}. Squares are words, circles results; the number in a circle is the earliest step in which it can be computed, and arrows come from what it waits for.`);
    }

    table() {
        const { nodes, edges, lanes } = this.graph;
        return {
            head: [say("结果", "result"), say("行", "lane"), say("最早的步", "earliest step"), say("要等", "waits for")],
            rows: nodes.flatMap((node, n) => node.step === 0 ? [] : [[node.label ?? "", lanes?.[node.lane] ?? String(node.lane), String(node.step),
                edges.filter(([, to]) => to === n).map(([from]) => nodes[from]).map(from => from.step > 0 ? say(`${from.label} 的结果`, `result of ${from.label}`) : from.label).join(", ")]]),
        };
    }
}
