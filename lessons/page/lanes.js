// A race that has been run, on one axis of time.
// SPDX-License-Identifier: Apache-2.0
"use strict";

class LanesFigure {
    constructor(block, page) {
        this.block = block;
        this.lanes = block.lanes.lanes;
        this.words = block.lanes.words;
        this.slower = d3.max(this.lanes, lane => lane.ms);
        this.page = page;
        this.own = this.steps;
        this.svg = d3.create("svg").attr("class", "lanes").attr("role", "img").attr("aria-label", `${block.title}. ${block.summary ?? ""}`);
        this.node = element("div", "wide", element("p", "counter", this.clock()), this.svg.node());
    }

    // Pictures after the start, evenly spaced over the time of the slower lane.
    get steps() { return 60; }

    get pause() { return this.slower * this.block.lanes.slowed / this.steps; }

    // The end is the end, however its parts are rounded.
    get time() { return this.own >= this.steps ? this.slower : this.slower * this.own / this.steps; }

    clock() {
        const { slowed } = this.block.lanes, times = precise(slowed >= 1 ? slowed : 1 / slowed);
        return slowed >= 1 ? say(`时间是这台机器实测的；重放时放慢 ${times} 倍。`, `The time is what this machine took; replayed, it is slowed ${times} times.`)
            : say(`时间是这台机器实测的；重放时加快 ${times} 倍。`, `The time is what this machine took; replayed, it runs ${times} times faster.`);
    }

    // What a lane has done by now: words one by one, or all of them at its end.
    state(lane) {
        const part = Math.min(1, this.time / lane.ms), done = part >= 1;
        return { done, part, words: lane.one_by_one ? Math.floor(part * this.words) : done ? this.words : 0, steps: Math.floor(part * lane.steps) };
    }

    draw(width) {
        const size = textSize(width), narrow = width < 640, head = size * (narrow ? 2.9 : 1.6), cell = narrow ? 20 : 30;
        const high = head + cell + 8 + 14 + size * 1.5, height = high * this.lanes.length + size * 2.8;
        this.geometry = { size, narrow, head, cell, bar: head + cell + 8 };
        this.width = width;
        this.x = d3.scaleLinear([0, this.slower], [0, width - 2]);
        this.svg.attr("viewBox", `0 0 ${width} ${height}`).attr("width", width).attr("height", height).style("font-size", `${size}px`);
        this.svg.selectAll("*").remove();
        this.drawn = this.svg.selectAll("g.lane").data(this.lanes).join("g").attr("class", "lane").attr("transform", (lane, n) => `translate(0,${n * high})`);
        this.drawn.append("text").attr("class", "name").attr("y", size).attr("fill", lane => `var(--${lane.role})`).style("fill", lane => `var(--${lane.role})`)
            .text(lane => lane.name);
        this.drawn.append("text").attr("class", "tally").attr("x", narrow ? 0 : width).attr("y", narrow ? size * 2.2 : size)
            .attr("text-anchor", narrow ? "start" : "end");
        this.drawCells();
        this.drawTimes();
        this.drawAxis(high * this.lanes.length);
        this.paint();
    }

    // One for a word, or where there are too many, for several.
    drawCells() {
        const { narrow, head, cell } = this.geometry, most = narrow ? 32 : 64;
        const each = Math.ceil(this.words / most), count = Math.ceil(this.words / each), step = this.width / count;
        this.cells = this.drawn.selectAll("rect.word-cell").data(lane => d3.range(count).map(n => ({ lane, last: Math.min(this.words, (n + 1) * each), n })))
            .join("rect").attr("class", "word-cell").attr("x", d => d.n * step).attr("y", head).attr("width", step).attr("height", cell);
    }

    drawTimes() {
        const { size, bar } = this.geometry;
        this.drawn.append("rect").attr("class", "track").attr("x", 1).attr("y", bar).attr("width", lane => this.x(lane.ms)).attr("height", 12);
        this.drawn.append("rect").attr("class", "passed").attr("x", 1).attr("y", bar).attr("height", 12).attr("fill", lane => `var(--${lane.role})`);
        this.drawn.append("line").attr("class", "now").attr("y1", bar - 4).attr("y2", bar + 16);
        this.drawn.append("text").attr("class", "end").attr("y", bar + 14 + size)
            .attr("x", lane => Math.min(this.x(lane.ms), this.width)).attr("text-anchor", lane => this.x(lane.ms) > this.width / 2 ? "end" : "start");
    }

    drawAxis(top) {
        const { size } = this.geometry, ticks = this.x.ticks(this.geometry.narrow ? 4 : 8);
        const axis = this.svg.append("g").attr("transform", `translate(0,${top})`);
        axis.append("line").attr("class", "base").attr("x2", this.width);
        axis.append("g").attr("class", "base").selectAll("line").data(ticks).join("line").attr("x1", this.x).attr("x2", this.x).attr("y2", 6);
        axis.append("g").attr("class", "labels").selectAll("text").data(ticks).join("text").attr("y", size + 8).attr("x", this.x)
            .attr("text-anchor", t => t === 0 ? "start" : this.x(t) > this.width - size * 2 ? "end" : "middle")
            .text((t, n) => n === ticks.length - 1 ? `${precise(t)} ms` : precise(t));
    }

    // Steps of its own: moments of the race.
    show(step, own) {
        this.own = own === undefined ? this.steps : own;
        if (this.drawn) this.paint();
    }

    paint() {
        const ms = value => `${+value.toPrecision(3)} ms`;
        this.drawn.select(".tally").text(lane => {
            const { words, steps } = this.state(lane);
            return say(`${words} / ${this.words} 个词 · ${steps} / ${lane.steps} 步，一步等一步`, `${words} / ${this.words} words · ${steps} / ${lane.steps} dependent steps`);
        });
        this.cells.style("fill", d => this.state(d.lane).words >= d.last ? `var(--${d.lane.role})` : null);
        this.drawn.select(".passed").attr("width", lane => this.x(lane.ms) * this.state(lane).part);
        this.drawn.select(".now").attr("x1", 1 + this.x(this.time)).attr("x2", 1 + this.x(this.time));
        this.drawn.select(".end").text(lane => this.state(lane).done ? [ms(lane.ms), lane.note].filter(Boolean).join(" · ") : "");
    }

    table() {
        return {
            head: [say("车道", "lane"), say("词", "words"), say("一步等一步的步数", "dependent steps"), say("毫秒", "ms"), say("注", "note")],
            rows: this.lanes.map(lane => [lane.name, String(this.words), String(lane.steps), precise(lane.ms), lane.note ?? ""]),
        };
    }
}
