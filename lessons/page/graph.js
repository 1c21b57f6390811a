// What waits for what: nodes in lanes, each with the earliest step in which it can be computed.
// SPDX-License-Identifier: Apache-2.0
"use strict";

class GraphFigure {
    constructor(block, page) {
        this.block = block;
        this.graph = block.graph;
        this.page = page;
        this.last = d3.max(this.graph.nodes, n => n.step) ?? 0;
        this.first = d3.min(this.graph.nodes, n => n.step) ?? 0;
        this.own = this.last;
        this.svg = d3.create("svg").attr("class", "graph").attr("role", "img").attr("aria-label", `${block.title}. ${block.summary ?? ""}`);
        this.counter = element("p", "counter");
        this.node = element("div", "wide", this.svg.node(), this.counter);
    }

    // One for each step of the graph, after a first picture of nothing computed.
    get steps() { return this.last - this.first + 1; }

    draw(width) {
        const { nodes, lanes } = this.graph, places = (d3.max(nodes, n => n.place) ?? 0) + 1, count = Math.max(1, (d3.max(nodes, n => n.lane) ?? 0) + 1);
        const size = textSize(width), head = lanes ? size * 1.7 : 0, step = Math.min(150, width / places), radius = Math.max(5, Math.min(26, step * .36));
        const high = head + Math.max(radius * 2 + size + 22, 80);
        this.geometry = { size, head, step, radius, high };
        this.width = Math.max(step * places, Math.min(width, 320));
        this.svg.attr("viewBox", `0 0 ${this.width} ${high * count + 10}`).attr("width", this.width).attr("height", high * count + 10)
            .style("font-size", `${size}px`);
        this.svg.selectAll("*").remove();
        this.svg.append("defs").append("marker").attr("id", `tip-${this.block.id}`).attr("viewBox", "0 0 10 10").attr("refX", 9).attr("refY", 5)
            .attr("markerWidth", 6).attr("markerHeight", 6).attr("orient", "auto-start-reverse")
            .append("path").attr("d", "M0,0L10,5L0,10Z").attr("class", "tip");
        this.svg.append("g").attr("class", "labels").selectAll("text").data(lanes ?? []).join("text").attr("x", 2)
            .attr("y", (lane, n) => n * high + size).text(lane => cut(lane, width / size));
        this.drawEdges();
        this.drawNodes();
        this.paint();
    }

    place(node) {
        const { head, step, high, radius } = this.geometry;
        return [(node.place + .5) * step, node.lane * high + head + radius + 6];
    }

    drawEdges() {
        const { nodes, edges } = this.graph, { radius } = this.geometry;
        this.edges = this.svg.append("g").selectAll("path").data(edges).join("path").attr("class", "edge")
            .attr("marker-end", edges.length > 60 ? null : `url(#tip-${this.block.id})`).attr("d", ([from, to]) => {
                const [x0, y0] = this.place(nodes[from]), [x1, y1] = this.place(nodes[to]);
                const length = Math.hypot(x1 - x0, y1 - y0) || 1, dx = (x1 - x0) / length * radius, dy = (y1 - y0) / length * radius;
                const far = y0 === y1 && Math.abs(nodes[to].place - nodes[from].place) > 1;
                return far ? `M${x0},${y0 - radius}Q${(x0 + x1) / 2},${y0 - radius - 44} ${x1},${y1 - radius}`
                    : `M${x0 + dx},${y0 + dy}L${x1 - dx},${y1 - dy}`;
            });
    }

    drawNodes() {
        const { size, radius, step } = this.geometry;
        this.nodes = this.svg.append("g").selectAll("g").data(this.graph.nodes).join("g")
            .attr("transform", node => `translate(${this.place(node)})`);
        this.nodes.append("circle").attr("r", radius);
        this.nodes.append("text").attr("class", "step").attr("dy", ".35em").attr("text-anchor", "middle").text(node => node.step);
        this.nodes.append("text").attr("class", "name").attr("y", radius + size).attr("text-anchor", "middle")
            .style("font-size", `${size * .86}px`).text(node => cut(node.label ?? "", step / size / .86));
    }

    // Steps of its own: 0, nothing computed; n, all that can be computed in n steps.
    show(step, own) {
        this.own = own === undefined ? this.last : this.first + own - 1;
        if (this.nodes) this.paint();
    }

    paint() {
        const { nodes } = this.graph, done = node => node.step <= this.own;
        this.nodes.attr("class", node => ["node", done(node) ? "done" : "", node.step === this.own ? "fresh" : ""].join(" "));
        this.edges.attr("class", ([from, to]) => ["edge", done(nodes[to]) ? "done" : "", nodes[to].step === this.own ? "fresh" : ""].join(" "));
        const count = Math.max(0, this.own - this.first + 1), ready = nodes.filter(done).length;
        this.counter.textContent = say(`第 ${count} / ${this.steps} 步：算完 ${ready} / ${nodes.length} 个。圆里的数字是最早能算它的那一步。`,
            `Step ${count} of ${this.steps}: ${ready} of ${nodes.length} are computed. The number in a circle is the earliest step in which it can be.`);
    }

    table() {
        const { nodes, edges, lanes } = this.graph;
        return {
            head: [say("节点", "node"), say("行", "lane"), say("最早的步", "earliest step"), say("要等", "waits for")],
            rows: nodes.map((node, n) => [node.label ?? "", lanes?.[node.lane] ?? String(node.lane), String(node.step),
                edges.filter(([, to]) => to === n).map(([from]) => nodes[from].label).join(", ")]),
        };
    }
}
