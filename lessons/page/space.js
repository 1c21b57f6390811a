// Words in space, which can be turned.
// SPDX-License-Identifier: Apache-2.0
"use strict";

// More names than this hide each other.
const MOST_NAMES = 24;

class SpaceFigure {
    constructor(block, page) {
        this.block = block;
        this.space = block.space;
        this.page = page;
        this.yaw = -1;
        this.pitch = .38;
        this.part = 1; // of the way from `from` to `to`
        const all = this.space.points.flatMap(p => this.space.arrows ? [p.from, p.to] : [p.from]);
        this.extent = d3.range(3).map(d => d3.extent([0, ...all.map(p => p[d])]));
        this.reach = d3.max(this.extent, ([low, high]) => high - low) || 1;
        this.svg = d3.create("svg").attr("class", "space").attr("role", "img").attr("tabindex", 0)
            .attr("aria-label", `${block.title}. ${block.summary ?? ""}`)
            .on("keydown", event => this.key(event))
            .call(d3.drag().on("drag", event => this.turn(event.dx * .01, event.dy * .01)));
        this.node = element("div", "", this.svg.node(),
            this.space.arrows ? element("p", "note", say("○ 之前　● 之后", "○ before   ● after")) : null,
            element("p", "note unprinted", say("拖动来转动；用 Tab 选中后也可以用方向键。", "Drag to turn it, or select it with Tab and use the arrow keys.")));
    }

    get steps() { return this.space.arrows ? 1 : 0; }

    turn(yaw, pitch) {
        this.yaw += yaw;
        this.pitch = Math.min(1.5, Math.max(-1.5, this.pitch + pitch));
        this.paint();
    }

    key(event) {
        const turns = { ArrowLeft: [-.12, 0], ArrowRight: [.12, 0], ArrowUp: [0, -.12], ArrowDown: [0, .12] };
        if (event.key === "Escape") this.svg.node().blur();
        if (!turns[event.key] || event.ctrlKey || event.altKey || event.metaKey) return;
        event.preventDefault();
        event.stopPropagation();
        this.turn(...turns[event.key]);
    }

    draw(width) {
        this.width = Math.min(width, 520);
        this.height = Math.min(this.width * .85, 440);
        this.size = textSize(width);
        this.scale = Math.min(this.width, this.height) * .52 / (Math.hypot(...this.extent.map(([low, high]) => high - low)) / 2 / this.reach);
        this.svg.attr("viewBox", `0 0 ${this.width} ${this.height}`).attr("width", this.width).attr("height", this.height)
            .style("font-size", `${this.size}px`);
        this.paint();
    }

    // Where a point is drawn: turned about the vertical axis, then tilted towards the reader.
    project(point) {
        const [x, y, z] = point.map((v, d) => (v - d3.mean(this.extent[d])) / this.reach);
        const a = x * Math.cos(this.yaw) - y * Math.sin(this.yaw), b = x * Math.sin(this.yaw) + y * Math.cos(this.yaw);
        const up = z * Math.cos(this.pitch) + b * Math.sin(this.pitch), scale = this.scale;
        return [this.width / 2 + a * scale, this.height / 2 - up * scale];
    }

    line(className, from, to) {
        const [x1, y1] = this.project(from), [x2, y2] = this.project(to);
        return this.svg.append("line").attr("class", className).attr("x1", x1).attr("y1", y1).attr("x2", x2).attr("y2", y2);
    }

    paintFloor() {
        const [[x0, x1], [y0, y1], [z]] = this.extent, ticks = (low, high) => d3.ticks(low, high, 5);
        for (const x of ticks(x0, x1)) this.line("floor", [x, y0, z], [x, y1, z]);
        for (const y of ticks(y0, y1)) this.line("floor", [x0, y, z], [x1, y, z]);
    }

    paintAxes() {
        const start = this.extent.map(([low]) => low);
        this.extent.forEach(([, high], d) => {
            const tip = start.slice();
            tip[d] = high + this.reach * .06;
            this.line("axis", start, tip);
            const [x, y] = this.project(tip.map((v, n) => n === d ? v + this.reach * .05 : v));
            this.svg.append("text").attr("class", "axis-name").attr("x", x).attr("y", y).attr("dy", ".35em").attr("text-anchor", "middle")
                .text(this.space.axes?.[d] ?? "xyz"[d]);
            for (const tick of d3.ticks(start[d], high, 4).filter(t => t !== start[d])) {
                const [a, b] = this.project(start.map((v, n) => n === d ? tick : v));
                this.svg.append("text").attr("class", "tick").attr("x", d === 2 ? a - 8 : a).attr("y", d === 2 ? b : b + this.size)
                    .attr("dy", ".3em").attr("text-anchor", d === 2 ? "end" : "middle")
                    .style("font-size", `${this.size * .72}px`).text(precise(tick));
            }
        });
    }

    paintPoint(point, named) {
        const { arrows } = this.space, floor = this.extent[2][0];
        const at = arrows ? point.from.map((v, d) => v + this.part * (point.to[d] - v)) : point.from;
        this.line("drop", at, [at[0], at[1], floor]);
        const [x, y] = this.project(at), [x0, y0] = this.project(point.from);
        if (arrows) {
            this.svg.append("circle").attr("class", "was").attr("cx", x0).attr("cy", y0).attr("r", 5);
            if (Math.hypot(x - x0, y - y0) > 3) this.paintArrow(x0, y0, x, y);
        }
        this.svg.append("circle").attr("class", "word").attr("cx", x).attr("cy", y).attr("r", arrows ? 4 : 6);
        if (named) this.svg.append("text").attr("class", "word").attr("x", x + 10).attr("y", y - 8).text(point.label);
    }

    paintArrow(x0, y0, x, y) {
        const angle = Math.atan2(y - y0, x - x0) * 180 / Math.PI;
        this.svg.append("line").attr("class", "arrow").attr("x1", x0).attr("y1", y0).attr("x2", x).attr("y2", y);
        this.svg.append("path").attr("class", "head").attr("transform", `translate(${x},${y})rotate(${angle})`).attr("d", "M3,0L-9,-5L-9,5Z");
    }

    paint() {
        this.svg.selectAll("*").remove();
        this.paintFloor();
        this.paintAxes();
        const every = Math.ceil(this.space.points.length / MOST_NAMES);
        this.space.points.forEach((point, n) => this.paintPoint(point, n % every === 0));
    }

    // Steps of its own: 0, where the words were; 1, where they are.
    show(step, own, moving) {
        const goal = this.space.arrows && own !== undefined ? own : 1;
        this.timer?.stop();
        if (!moving || goal === this.part) {
            this.part = goal;
            if (this.width) this.paint();
            return;
        }
        const start = this.part;
        this.timer = d3.timer(elapsed => {
            const t = Math.min(1, elapsed / 1200);
            this.part = start + (goal - start) * d3.easeCubicInOut(t);
            this.paint();
            if (t === 1) this.timer.stop();
        });
    }

    table() {
        const { arrows, points, axes } = this.space, names = axes ?? ["x", "y", "z"];
        return {
            head: [say("词", "word"), ...names, ...(arrows ? names.map(n => `${n} ${say("之后", "after")}`) : [])],
            rows: points.map(p => [p.label, ...p.from.map(precise), ...(arrows ? p.to.map(precise) : [])]),
        };
    }
}
