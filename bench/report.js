// The plots and the table of the report, from the CSV that the page carries.
// SPDX-License-Identifier: Apache-2.0
"use strict";
(() => {
    // csvParse would make its converter from text, which the page's policy forbids.
    const [columns, ...lines] = d3.csvParseRows(document.getElementById("records").textContent.trim());
    const rows = lines.map(line => d3.autoType(Object.fromEntries(columns.map((c, i) => [c, line[i]]))));
    const warm = rows.filter(r => r.cache_state === "warm" && r.ms_median !== null);
    const name = r => `${r.op} ${r.path.replace(/^clattn /, "")}${r.causal && r.causal !== "none" ? ", causal" : ""}`;
    const titles = { core: "Core against core", layer: "Layer against layer", lstm: "LSTM beside attention's layer",
        peers: "Attention and its peers", project: "Projections", recurrence: "Recurrences" };
    const width = 520, height = 320, margin = { top: 12, right: 16, bottom: 42, left: 58 };

    // Series of one contrast, each a list of records by rising length.
    function seriesOf(contrast) {
        let chosen = warm.filter(r => r.contrast === contrast);
        if (contrast === "lstm" && chosen.length) chosen = chosen.concat(warm.filter(r => r.contrast === "layer" && r.op === "mha"));
        return Array.from(d3.group(chosen, r => `${name(r)}${contrast === "peers" || contrast === "project" ? `, ${r.threads} units` : ""}`),
            ([key, values]) => ({ key, values: d3.sort(values, r => r.len_q) }));
    }

    // What stands in several plots keeps its colour: attention, the recurrence, staged, persistent, LSTM.
    const colours = [["staged", 2], ["persistent", 3], ["lstm", 4], ["rnn", 1], ["attention", 0], ["mha", 0]];
    function style(series, i) {
        const fixed = colours.find(([word]) => series[i].key.includes(word));
        const used = fixed && series.every((s, j) => j === i || colours.find(([word]) => s.key.includes(word))?.[1] !== fixed[1]);
        return used ? `s${fixed[1]} f${fixed[1]}` : `s${i % 6} f${i % 6} d${Math.floor(i / 6) % 4}`;
    }

    function figure(parent, title) {
        const box = d3.select(parent).append("figure");
        box.append("figcaption").text(title);
        return box;
    }

    function frame(box, label, x, y, xTitle, yTitle, xTicks, yFormat) {
        const svg = box.append("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("role", "img").attr("aria-label", label);
        const bottom = height - margin.bottom;
        const axisX = d3.axisBottom(x).tickValues(xTicks).tickFormat(d3.format("d"));
        const axisY = d3.axisLeft(y).ticks(6, yFormat);
        svg.append("g").attr("class", "grid").attr("transform", `translate(${margin.left},0)`)
            .call(d3.axisLeft(y).ticks(6).tickSize(-(width - margin.left - margin.right)).tickFormat(""));
        svg.append("g").attr("class", "axis").attr("transform", `translate(0,${bottom})`).call(axisX);
        svg.append("g").attr("class", "axis").attr("transform", `translate(${margin.left},0)`).call(axisY);
        svg.append("text").attr("class", "label").attr("x", (margin.left + width - margin.right) / 2).attr("y", height - 6)
            .attr("text-anchor", "middle").text(xTitle);
        svg.append("text").attr("class", "label").attr("transform", "rotate(-90)").attr("x", -(margin.top + bottom) / 2).attr("y", 14)
            .attr("text-anchor", "middle").text(yTitle);
        return svg;
    }

    function legend(box, series) {
        const item = box.append("ul").attr("class", "legend").selectAll("li").data(series).join("li");
        item.append("svg").attr("viewBox", "0 0 28 10").attr("aria-hidden", "true").append("line")
            .attr("x1", 0).attr("x2", 28).attr("y1", 5).attr("y2", 5).attr("class", (_, i) => `series ${style(series, i)}`);
        item.append("span").text(s => s.key);
    }

    function draw(svg, series, x, y, at, value) {
        const line = d3.line().defined(r => value(r) > 0).x(r => x(at(r))).y(r => y(value(r)));
        series.forEach((s, i) => {
            svg.append("path").attr("class", `series ${style(series, i)}`).attr("d", line(s.values));
            svg.append("g").selectAll("circle").data(s.values.filter(r => value(r) > 0)).join("circle")
                .attr("class", `dot ${style(series, i)}`).attr("r", 3.2).attr("cx", r => x(at(r))).attr("cy", r => y(value(r)))
                .append("title").text(r => `${s.key}, length ${r.len_q}, ${r.threads} units: ${r.ms_median} ms, ` +
                    `noise ${(100 * r.noise).toFixed(1)} %, ${r.gflops === null ? "-" : r.gflops.toFixed(1)} GFLOP/s`);
        });
    }

    function spread(svg, series, x, y) {
        series.forEach((s, i) => svg.append("g").selectAll("line").data(s.values).join("line").attr("class", `spread ${style(series, i)}`)
            .attr("x1", r => x(r.len_q)).attr("x2", r => x(r.len_q))
            .attr("y1", r => y(Math.max(r.ms_min, r.ms_median - r.iqr / 2))).attr("y2", r => y(r.ms_median + r.iqr / 2)));
    }

    function lengthScale(series) {
        const lengths = Array.from(new Set(series.flatMap(s => s.values.map(r => r.len_q)))).sort(d3.ascending);
        const domain = lengths.length > 1 ? d3.extent(lengths) : [lengths[0] / 2, lengths[0] * 2];
        return [d3.scaleLog(domain, [margin.left, width - margin.right]), lengths];
    }

    function plotTime(contrast, title) {
        const series = seriesOf(contrast);
        if (!series.length) return;
        const [x, lengths] = lengthScale(series);
        const y = d3.scaleLog(d3.extent(series.flatMap(s => s.values), r => r.ms_median), [height - margin.bottom, margin.top]).nice();
        const box = figure("#plot-time", title);
        const svg = frame(box, `${title}: milliseconds against length`, x, y, "length", "ms", lengths, "~g");
        spread(svg, series, x, y);
        draw(svg, series, x, y, r => r.len_q, r => r.ms_median);
        legend(box, series);
    }

    function plotPeak(contrast, title) {
        const series = seriesOf(contrast);
        if (!series.length) return;
        const [x, lengths] = lengthScale(series);
        const top = Math.max(100, d3.max(series.flatMap(s => s.values), r => r.percent_of_peak || 0));
        const y = d3.scaleLinear([0, top], [height - margin.bottom, margin.top]);
        const box = figure("#plot-peak", title);
        draw(frame(box, `${title}: percent of peak against length`, x, y, "length", "% of peak", lengths, "d"), series, x, y,
            r => r.len_q, r => r.percent_of_peak);
        legend(box, series);
    }

    function plotUnits() {
        const scaling = warm.filter(r => r.contrast === "scaling");
        const series = Array.from(d3.group(scaling, r => `${name(r)}, length ${r.len_q}`), ([key, values]) => {
            const one = values.find(r => r.threads === 1);
            return { key, values: d3.sort(values, r => r.threads).map(r => ({ ...r, speedup: one ? one.ms_median / r.ms_median : null })) };
        });
        const units = Array.from(new Set(scaling.map(r => r.threads))).sort(d3.ascending);
        if (!units.length) return;
        const most = units[units.length - 1];
        const x = d3.scaleLinear([Math.min(1, units[0]), Math.max(2, most)], [margin.left, width - margin.right]);
        const top = Math.max(most, d3.max(series.flatMap(s => s.values), r => r.speedup || 1));
        const y = d3.scaleLinear([0, top * 1.05], [height - margin.bottom, margin.top]);
        const box = figure("#plot-units", "Speed-up against one unit");
        const svg = frame(box, "speed-up against units", x, y, "units", "times as fast", units, "~g");
        svg.append("path").attr("class", "ideal").attr("d", d3.line()(units.map(u => [x(u), y(u)])));
        draw(svg, series, x, y, r => r.threads, r => r.speedup);
        legend(box, series);
    }

    function table() {
        const shown = columns.filter(c => rows.some(r => r[c] !== null));
        const isText = c => rows.some(r => typeof r[c] === "string");
        const element = d3.select("#table").append("table");
        element.append("thead").append("tr").selectAll("th").data(shown).join("th").attr("scope", "col")
            .attr("class", c => isText(c) ? "text" : null).text(c => c);
        element.append("tbody").selectAll("tr").data(rows).join("tr").selectAll("td").data(r => shown.map(c => [c, r[c]])).join("td")
            .attr("class", ([c]) => isText(c) ? "text" : null).text(([, value]) => value === null ? "" : String(value));
    }

    for (const [contrast, title] of Object.entries(titles)) {
        plotTime(contrast, title);
        plotPeak(contrast, title);
    }
    plotUnits();
    table();
})();
