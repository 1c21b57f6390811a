// Lines and bars.
// SPDX-License-Identifier: Apache-2.0
"use strict";

class PlotFigure {
    constructor(block, page) {
        this.block = block;
        this.plot = block.plot;
        this.page = page;
        this.xs = Array.from(new Set(this.plot.series.flatMap(s => s.x))).sort(d3.ascending);
        this.svg = d3.create("svg").attr("class", "plot").attr("role", "img").attr("tabindex", 0)
            .attr("aria-label", `${block.title}. ${block.summary ?? ""}`)
            .on("keydown", event => this.key(event))
            .on("mousedown", event => event.preventDefault())
            .on("mousemove click", event => this.point(this.nearest(d3.pointer(event)[0])))
            .on("focus", () => { if (this.svg.node().matches(":focus-visible")) this.point(0); })
            .on("blur mouseleave", () => this.leave());
        this.node = element("div", "wide", this.legend(), this.svg.node(), this.note());
    }

    // What has to be known to read the picture.
    note() {
        const { x, y, series } = this.plot, notes = [];
        if (x.logarithmic && y.logarithmic) notes.push(say("两条轴都是对数轴", "both axes are logarithmic"));
        else if (x.logarithmic) notes.push(say("横轴是对数轴", "the horizontal axis is logarithmic"));
        else if (y.logarithmic) notes.push(say("纵轴是对数轴", "the vertical axis is logarithmic"));
        if (this.zero) notes.push(say("对数轴到不了 0，所以 0 画在断口下面", "a logarithmic axis never reaches 0, which stands below a gap"));
        if (series.some(s => s.low)) notes.push(say("I 形：量到的值中间一半落在这里", "I: where the middle half of what was measured lies"));
        if (!notes.length) return null;
        const text = notes.join(say("；", ", "));
        return element("p", "note", say(`${text}。`, `${text[0].toUpperCase()}${text.slice(1)}.`));
    }

    // Whether there is a 0 that a logarithmic axis has no place for.
    get zero() { return this.plot.y.logarithmic && this.plot.series.some(s => [...s.y, ...s.low ?? [], ...s.high ?? []].some(v => v === 0)); }

    // ---- series ----

    colour(n) {
        const { series } = this.plot, own = series[n].role;
        const alone = series.length > 1 ? series.every((s, m) => m === n || s.role !== own) : own !== "plain";
        return alone ? `var(--${own})` : `var(--c${n % 8})`;
    }

    legend() {
        const list = element("ul", "legend");
        this.plot.series.forEach((series, n) => {
            const svg = d3.create("svg").attr("viewBox", "0 0 34 14").attr("width", 34).attr("height", 14).attr("aria-hidden", "true");
            if (this.plot.mark === "bars")
                svg.append("rect").attr("x", 8).attr("y", 1).attr("width", 18).attr("height", 12).call(this.fill(n));
            else {
                svg.append("line").attr("x2", 34).attr("y1", 7).attr("y2", 7).attr("class", "line").call(this.stroke(n));
                svg.append("path").attr("transform", "translate(17,7)").attr("d", d3.symbol(marks[n % 8], 60)()).attr("fill", this.colour(n));
            }
            list.append(element("li", "", svg.node(), ...typeset(series.name ?? "")));
        });
        return list;
    }

    stroke(n) { return line => line.attr("stroke", this.colour(n)).attr("stroke-dasharray", dashes[n % 8]); }

    fill(n) {
        return bar => bar.attr("fill", this.colour(n)).attr("fill-opacity", [.85, .35, .6, .15][n % 4]).attr("stroke", this.colour(n))
            .attr("stroke-width", 1.5).attr("stroke-dasharray", dashes[n % 8]);
    }

    // ---- axes ----

    values(axis, list) {
        const finite = list.filter(v => typeof v === "number" && (!axis.logarithmic || v > 0));
        let [low, high] = axis.low !== undefined ? [axis.low, axis.high] : d3.extent(finite);
        if (low === undefined) [low, high] = axis.logarithmic ? [1, 10] : [0, 1];
        if (low === high) [low, high] = axis.logarithmic ? [low / 2, high * 2] : [low - .5, high + .5];
        return [low, high];
    }

    scales(width) {
        const { plot } = this, g = this.geometry;
        let [low, high] = this.values(plot.y, plot.series.flatMap(s => [...s.y, ...s.low ?? [], ...s.high ?? []]));
        if (!plot.y.logarithmic) [low, high] = [Math.min(0, low), Math.max(0, high)]; // heights can be compared
        const make = axis => axis.logarithmic ? d3.scaleLog() : d3.scaleLinear();
        this.y = make(plot.y).domain([low, high]).range([g.height - g.bottom - (this.zero ? g.size * 2.2 : 0), g.top]);
        if (plot.y.low === undefined) this.y.nice();
        if (plot.mark === "bars")
            this.x = d3.scaleBand(this.xs, [g.left, width - g.right]).padding(.25);
        else
            this.x = make(plot.x).domain(this.values(plot.x, this.xs)).range([g.left, width - g.right]);
    }

    // Where a value stands; 0 of a logarithmic axis at the foot.
    level(y) { return this.zero && y === 0 ? this.geometry.height - this.geometry.bottom : this.y(y); }

    place(x) { return this.plot.mark === "bars" ? this.x(x) + this.x.bandwidth() / 2 : this.x(x); }

    tickText(value) {
        const size = Math.abs(value);
        return d3.format(size >= 1e4 || (size > 0 && size < 1e-3) ? "~s" : size >= 1000 ? ",~r" : "~g")(value);
    }

    draw(width) {
        const { plot } = this, size = textSize(width);
        const height = Math.min(420, Math.max(240, width * .5));
        const names = this.categoryLines(width, size), lines = d3.max(names, name => name.length) ?? 1;
        this.geometry = { size, height: height + (lines - 1) * size, top: size + 16, right: 18, bottom: size * (1 + lines) + 26, left: size * 4, names };
        this.width = width;
        this.svg.attr("viewBox", `0 0 ${width} ${this.geometry.height}`).attr("width", width).attr("height", this.geometry.height).style("font-size", `${size}px`);
        this.svg.selectAll("*").remove();
        this.scales(width);
        this.drawAxes();
        if (plot.mark === "bars") this.drawBars();
        else this.drawLines();
        this.cursor = this.svg.append("line").attr("class", "cursor").attr("y1", this.geometry.top)
            .attr("y2", this.geometry.height - this.geometry.bottom).attr("visibility", "hidden");
    }

    // The names of bars, each on as many lines as it has to take.
    categoryLines(width, size) {
        const { categories, series } = this.plot, room = (width - size * 4 - 18) / Math.max(1, this.xs.length) / size;
        return (series.length && categories ? categories : []).map(name => textWidth(name) <= room ? [name] : name.split(" "));
    }

    xTicks() {
        const { plot, xs, width, geometry: g } = this;
        if (plot.mark === "bars") return xs;
        const room = (width - g.left - g.right) / (g.size * 2.6);
        if (xs.length <= 12 || plot.x.logarithmic) {
            const kept = [];
            const half = x => textWidth(this.tickText(x)) * g.size / 2 + g.size * .3;
            for (const x of xs)
                if (kept.length === 0 || this.x(x) - this.x(kept[kept.length - 1]) >= half(x) + half(kept[kept.length - 1])) kept.push(x);
            return kept;
        }
        return this.x.ticks(Math.min(10, room));
    }

    drawAxes() {
        const { plot, svg, width, geometry: g } = this, low = g.height - g.bottom;
        const every = plot.y.logarithmic ? this.y.ticks(5).filter((t, n, all) => all.length < 9 || /^1/.test(t.toExponential())) : this.y.ticks(5);
        svg.append("g").attr("class", "grid").selectAll("line").data(every).join("line").attr("x1", g.left).attr("x2", width - g.right)
            .attr("y1", this.y).attr("y2", this.y);
        svg.append("g").attr("class", "labels").selectAll("text").data(every).join("text").attr("x", g.left - 8).attr("y", this.y)
            .attr("dy", ".35em").attr("text-anchor", "end").text(t => this.tickText(t));
        svg.append("line").attr("class", "base").attr("x1", g.left).attr("x2", width - g.right).attr("y1", low).attr("y2", low);
        if (this.zero) this.drawGap(low);
        const ticks = this.xTicks(), step = (width - g.left - g.right) / Math.max(ticks.length, 1);
        svg.append("g").attr("class", "labels").selectAll("text").data(ticks).join("text")
            .attr("x", x => this.place(x)).attr("y", low + g.size + 6).attr("text-anchor", "middle")
            .each((x, n, all) => {
                const at = d3.select(all[n]);
                if (!plot.categories) return at.text(this.tickText(x));
                return (g.names[x] ?? []).forEach((line, m) => at.append("tspan").attr("x", this.place(x)).attr("dy", m ? "1.05em" : null).text(cut(line, step / g.size)));
            });
        svg.append("text").attr("class", "axis-name").attr("x", (g.left + width - g.right) / 2).attr("y", g.height - 8)
            .attr("text-anchor", "middle").call(typesetSvg, plot.x.label ?? "");
        svg.append("text").attr("class", "axis-name").attr("x", 4).attr("y", g.size).call(typesetSvg, plot.y.label ?? "");
    }

    // Between 0 and the rest of a logarithmic axis.
    drawGap(low) {
        const { svg, width, geometry: g } = this, at = (low + this.y.range()[0]) / 2, teeth = d3.range(Math.floor((width - g.left - g.right) / 8));
        svg.append("path").attr("class", "gap").attr("d", `M${teeth.map(n => `${g.left + n * 8},${at + (n % 2 ? 3 : -3)}`).join("L")}`);
        svg.append("g").attr("class", "labels").append("text").attr("x", g.left - 8).attr("y", low).attr("dy", ".2em").attr("text-anchor", "end").text("0");
    }

    drawLines() {
        const { plot, svg } = this, drawn = y => typeof y === "number" && (!plot.y.logarithmic || y >= 0);
        plot.series.forEach((series, n) => {
            const points = series.x.map((x, k) => ({ x, y: series.y[k] })).filter(p => drawn(p.y) && (!plot.x.logarithmic || p.x > 0));
            svg.append("path").attr("class", "line").attr("d", d3.line(p => this.x(p.x), p => this.level(p.y))(points)).call(this.stroke(n));
            if (points.length > 40) return;
            if (series.low) series.x.forEach((x, k) => this.drawSpread(this.x(x), this.level(series.low[k]), this.level(series.high[k])));
            svg.append("g").selectAll("path").data(points).join("path").attr("class", "mark").attr("fill", this.colour(n))
                .attr("transform", p => `translate(${this.x(p.x)},${this.level(p.y)})`).attr("d", d3.symbol(marks[n % 8], 70)());
        });
    }

    drawBars() {
        const { plot, svg, geometry: g } = this, inner = d3.scaleBand(d3.range(plot.series.length), [0, this.x.bandwidth()]).padding(.12);
        const floor = this.y(plot.y.logarithmic ? this.y.domain()[0] : 0), size = g.size * .85;
        plot.series.forEach((series, n) => series.x.forEach((x, k) => {
            const value = series.y[k];
            if (typeof value !== "number") return;
            const at = this.y(value), left = this.x(x) + inner(n), text = shown(value, plot.decimals);
            svg.append("rect").attr("class", "bar").attr("x", left).attr("width", inner.bandwidth()).attr("y", Math.min(at, floor))
                .attr("height", Math.abs(at - floor)).call(this.fill(n));
            const top = series.high ? Math.min(at, this.y(series.high[k])) : at;
            if (series.low) this.drawSpread(left + inner.bandwidth() / 2, this.y(series.low[k]), this.y(series.high[k]));
            if (textWidth(text) * size <= inner.bandwidth() + 10)
                svg.append("text").attr("class", "value").attr("x", left + inner.bandwidth() / 2).attr("y", value < 0 ? at + size + 2 : top - 5)
                    .attr("text-anchor", "middle").style("font-size", `${size}px`).text(text);
        }));
    }

    drawSpread(x, low, high) {
        this.svg.append("path").attr("class", "spread").attr("d", `M${x - 7},${high}h14m-7,0V${low}m-7,0h14`);
    }

    // ---- pointing ----

    nearest(x) { return d3.leastIndex(this.xs, (a, b) => Math.abs(this.place(a) - x) - Math.abs(this.place(b) - x)); }

    point(n) {
        const x = this.xs[n], { plot } = this;
        if (x === undefined) return;
        this.active = n;
        this.cursor.attr("x1", this.place(x)).attr("x2", this.place(x)).attr("visibility", "visible");
        const name = plot.categories ? plot.categories[x] : `${plot.x.label ?? "x"} = ${precise(x)}`;
        const values = plot.series.flatMap((series, s) => {
            const k = series.x.indexOf(x);
            const text = value => shown(value, Math.max(plot.decimals, 0));
            const spread = k >= 0 && series.low ? [[say(`（中间一半 ${text(series.low[k])} – ${text(series.high[k])}）`, ` (middle half ${text(series.low[k])} – ${text(series.high[k])})`)]] : [];
            return k < 0 ? [] : [[`   ${series.name ?? ""} `], [text(series.y[k]), series.role], ...spread];
        });
        this.page.explain([[`${name}:`], ...values], []);
    }

    leave() {
        if (this.active === undefined) return;
        this.active = undefined;
        this.cursor.attr("visibility", "hidden");
        this.page.explain(null, []);
    }

    key(event) {
        const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (event.key === "Escape") this.svg.node().blur();
        if (!move || event.ctrlKey || event.altKey || event.metaKey) return;
        event.preventDefault();
        event.stopPropagation();
        this.point(Math.min(Math.max((this.active ?? -move) + move, 0), this.xs.length - 1));
    }

    show() {}

    table() {
        const { plot } = this;
        return {
            head: [plot.x.label ?? "", ...plot.series.flatMap(s => [s.name ?? plot.y.label ?? "",
                ...s.low ? [say("第一四分位", "first quartile"), say("第三四分位", "third quartile")] : []])],
            rows: this.xs.map(x => [plot.categories ? plot.categories[x] ?? "" : precise(x), ...plot.series.flatMap(s => {
                const k = s.x.indexOf(x), text = list => k < 0 ? "" : precise(list[k]);
                return [text(s.y), ...s.low ? [text(s.low), text(s.high)] : []];
            })]),
        };
    }
}
