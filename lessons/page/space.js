// Words in space, which can be turned.
// SPDX-License-Identifier: Apache-2.0
"use strict";

// More names than this hide each other.
const MOST_NAMES = 24;

// Beside a point: where a name may stand, the best first.
const NAME_PLACES = [
    { dx: 10, dy: -8, anchor: "start" }, { dx: -10, dy: -8, anchor: "end" }, { dx: 10, dy: 20, anchor: "start" },
    { dx: -10, dy: 20, anchor: "end" }, { dx: 0, dy: -14, anchor: "middle" }, { dx: 0, dy: 26, anchor: "middle" },
    { dx: 14, dy: 5, anchor: "start" }, { dx: -14, dy: 5, anchor: "end" }, { dx: 14, dy: -26, anchor: "start" },
    { dx: -14, dy: -26, anchor: "end" }, { dx: 14, dy: 40, anchor: "start" }, { dx: -14, dy: 40, anchor: "end" },
];

// The area that two boxes, [left, top, right, bottom], have in common.
const overlap = (a, b) => Math.max(0, Math.min(a[2], b[2]) - Math.max(a[0], b[0])) * Math.max(0, Math.min(a[3], b[3]) - Math.max(a[1], b[1]));

// What a line covers, as boxes one behind another.
function boxesOfLine([x0, y0], [x1, y1]) {
    const count = Math.ceil(Math.hypot(x1 - x0, y1 - y0) / 6);
    return d3.range(count).map(n => (n + .5) / count).map(t => [x0 + t * (x1 - x0), y0 + t * (y1 - y0)]).map(([x, y]) => [x - 4, y - 4, x + 4, y + 4]);
}

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
        this.ticks = []; // what their numbers cover
        const start = this.extent.map(([low]) => low);
        this.extent.forEach(([, high], d) => {
            const tip = start.slice();
            tip[d] = high + this.reach * .06;
            this.line("axis", start, tip);
            const [x, y] = this.project(tip.map((v, n) => n === d ? v + this.reach * .05 : v));
            this.svg.append("text").attr("class", "axis-name").attr("x", x).attr("y", y).attr("dy", ".35em").attr("text-anchor", "middle")
                .text(this.space.axes?.[d] ?? "xyz"[d]);
            for (const tick of d3.ticks(start[d], high, 4).filter(t => t !== start[d])) {
                const [a, b] = this.project(start.map((v, n) => n === d ? tick : v)), size = this.size * .72, wide = textWidth(precise(tick)) * size;
                const right = d === 2 ? a - 8 : a + wide / 2, low = d === 2 ? b : b + this.size, box = [right - wide, low - size * .55, right, low + size * .55];
                if (this.ticks.some(other => overlap(box, other))) continue;
                this.ticks.push(box);
                this.svg.append("text").attr("class", "tick").attr("x", right).attr("y", low).attr("dy", ".3em").attr("text-anchor", "end")
                    .style("font-size", `${size}px`).text(precise(tick));
            }
        });
    }

    paintPoint(point, place) {
        const { arrows } = this.space, floor = this.extent[2][0];
        const at = arrows ? point.from.map((v, d) => v + this.part * (point.to[d] - v)) : point.from;
        this.line("drop", at, [at[0], at[1], floor]);
        const [x, y] = this.project(at), [x0, y0] = this.project(point.from);
        if (arrows) {
            this.svg.append("circle").attr("class", "was").attr("cx", x0).attr("cy", y0).attr("r", 5);
            if (Math.hypot(x - x0, y - y0) > 3) this.paintArrow(x0, y0, x, y);
        }
        this.svg.append("circle").attr("class", "word").attr("cx", x).attr("cy", y).attr("r", arrows ? 4 : 6);
        if (!place) return;
        this.svg.append("text").attr("class", "word").attr("x", x + place.dx).attr("y", y + place.dy).attr("text-anchor", place.anchor)
            .text(point.label);
    }

    // Where each name stands beside its point: where it covers least of points and of names before it. Of the end of a move, so that
    // no name jumps on the way.
    placeNames(every) {
        const ends = this.space.points.map(p => this.project(this.space.arrows ? p.to : p.from)), covered = [];
        const starts = this.space.arrows ? this.space.points.map(p => this.project(p.from)) : [];
        for (const [x, y] of [...ends, ...starts]) covered.push([x - 7, y - 7, x + 7, y + 7]);
        starts.forEach((start, n) => covered.push(...boxesOfLine(start, ends[n])));
        covered.push(...this.ticks);
        return this.space.points.map((point, n) => {
            if (n % every) return null;
            const wide = textWidth(point.label) * this.size, high = this.size;
            const boxes = NAME_PLACES.map(place => {
                const left = ends[n][0] + place.dx - { start: 0, middle: wide / 2, end: wide }[place.anchor], base = ends[n][1] + place.dy;
                return { place, box: [left, base - high * .85, left + wide, base + high * .2] };
            });
            const outside = box => overlap(box, box) - overlap(box, [0, 0, this.width, this.height]);
            const best = d3.least(boxes, ({ box }) => d3.sum(covered, other => overlap(box, other)) + 4 * outside(box));
            covered.push(best.box);
            return best.place;
        });
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
        const places = this.placeNames(every);
        this.space.points.forEach((point, n) => this.paintPoint(point, places[n]));
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
