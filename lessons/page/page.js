// Build the page from its data.
// SPDX-License-Identifier: Apache-2.0
"use strict";

const kinds = { matrix: MatrixFigure, plot: PlotFigure, space: SpaceFigure, graph: GraphFigure, lanes: LanesFigure };

// ---- blocks ---------------------------------------------------------------------------------------------------------

function question(block) {
    const answer = element("p", "answer", ...typeset(block.answer ?? "")), ask = element("button", "reveal", say("看答案", "Show the answer"));
    answer.hidden = true;
    ask.type = "button";
    ask.addEventListener("click", () => {
        answer.hidden = !answer.hidden;
        ask.textContent = answer.hidden ? say("看答案", "Show the answer") : say("收起答案", "Hide the answer");
    });
    return element("aside", "card predict", element("h2", "", say("先猜一猜，再播放", "Predict, then play")),
        element("p", "", ...typeset(block.text)), ask, answer);
}

// For those who do not step: all of the page at once, where motion is to be reduced, when they have made their guess.
function shortcut(page) {
    const made = element("button", "finish unprinted", say("猜好了：显示全部结果", "I have guessed: show all results"));
    made.type = "button";
    made.addEventListener("click", () => page.player.finish());
    return made;
}

// On paper answers stand at the end, where they are not read with the questions.
function answers(lesson) {
    return element("section", "answers printed", element("h2", "", say("答案", "The answer")),
        ...lesson.blocks.filter(block => block.kind === "question").map(block => element("p", "", ...typeset(block.answer ?? ""))));
}

function misconception(block) {
    return element("aside", "card misconception", element("h2", "", say("常见的误解", "A common misconception")),
        element("p", "belief", element("b", "", say("✗ 有人说：", "✗ Some say: ")), ...typeset(block.text)),
        element("p", "fact", element("b", "", say("✓ 其实：", "✓ In fact: ")), ...typeset(block.answer ?? "")));
}

const words = {
    heading: block => element("h2", "", ...typeset(block.text)),
    paragraph: block => element("p", "", ...typeset(block.text)),
    formula: block => element("p", "formula", ...block.text.split(/ {3,}/).map(part => element("span", "part", ...typeset(part)))),
    caption: block => element("h3", "caption", ...typeset(block.text)),
    question,
    misconception,
};

class Page {
    constructor(lesson) {
        this.lesson = lesson;
        this.figures = new Map();
        this.tables = new Map();
        this.blocks = [];
        this.main = element("main", "");
        this.captions = lesson.blocks.filter(block => block.kind === "caption");
        this.fill();
        this.explanation = element("p", "explanation");
        this.explanation.setAttribute("aria-live", "polite");
        this.player = new Player(this.frames(), (frame, moving) => this.show(frame, moving));
        const bar = element("section", "player", this.explanation, this.player.node);
        bar.setAttribute("aria-label", say("播放", "player"));
        document.body.append(header(lesson.title, say(`约 ${lesson.minutes} 分钟`, `about ${lesson.minutes} min`),
            say(`数字在这台机器上算出：${lesson.device}`, `computed here, on ${lesson.device}`)),
        this.main, answers(lesson), navigation("steps foot"), bar, hatch());
        if (calm.matches) this.main.querySelector(".predict")?.append(shortcut(this));
        this.resize();
        new ResizeObserver(() => this.resize()).observe(this.main);
        addEventListener("beforeprint", () => this.print(true));
        addEventListener("afterprint", () => this.print(false));
        this.player.start();
    }

    // ---- building ----

    // Blocks of a step stand in one section; figures that follow each other stand side by side.
    fill() {
        let section = this.section(), row = null;
        for (const block of this.lesson.blocks) {
            if (block.kind === "caption") section = this.section();
            if (!words[block.kind] && !row) section.append(row = element("div", "figures"));
            if (words[block.kind]) row = null;
            const node = words[block.kind] ? words[block.kind](block) : this.figure(block);
            node.id = `block-${block.id}`;
            (words[block.kind] ? section : row).append(node);
            this.blocks.push({ block, node, section });
        }
    }

    section() {
        const made = element("section", "step");
        this.main.append(made);
        return made;
    }

    figure(block) {
        const symbol = block.matrix?.symbol, caption = element("figcaption", "");
        const node = element("figure", `role-${block.matrix?.role ?? "plain"} ${block.kind}`, caption);
        if (symbol) caption.append(element("span", "badge", ...typeset(symbol)), " ");
        caption.append(...typeset(block.title ?? ""));
        if (block.kind === "table") {
            node.append(dataTable({ head: block.table.head, rows: block.table.cells }, block.title));
        } else {
            const figure = new kinds[block.kind](block, this);
            this.figures.set(block.id, figure);
            if (block.matrix && !block.matrix.averaged) caption.append(element("span", "shape", ` ${block.matrix.rows} × ${block.matrix.cols}`));
            node.append(figure.node);
            node.append(this.details(figure, block));
            if (isAdjustable(block)) node.append(sliders(block, () => this.change(block.id)));
        }
        const summary = element("p", block.summary_is_numbers ? "unseen" : "summary", ...typeset(block.summary ?? ""));
        node.insertBefore(summary, node.querySelector("details"));
        return node;
    }

    details(figure, block) {
        const summary = element("summary", "", say("数据表", "Data table"));
        summary.setAttribute("aria-label", say(`数据表：${block.title}`, `Data table: ${block.title}`));
        const holder = element("div", "", dataTable(figure.table(), block.title));
        this.tables.set(block.id, () => holder.replaceChildren(dataTable(figure.table(), block.title)));
        return element("details", "", summary, holder);
    }

    // Numbers of a matrix have changed: compute and draw what follows.
    change(id) {
        recompute(id);
        const changed = [id, ...followers(id)], seen = new Set(changed.flatMap(other => onScaleOf(matrices.get(other))));
        for (const figure of this.figures.values()) {
            if (!seen.has(figure.matrix)) continue;
            figure.widenScale();
            figure.draw(figure.available);
        }
        for (const other of changed) this.tables.get(other)();
    }

    // ---- steps ----

    // The steps of the document, and after the one that shows a figure with steps of its own, those.
    frames() {
        const frames = [], pause = this.lesson.steps > 40 ? 250 : 1300;
        for (let step = 0; step <= this.lesson.steps; step++) {
            const moving = this.lesson.blocks.find(block => block.step === step && this.figures.get(block.id)?.steps);
            const caption = this.captions.some(c => c.step === step);
            frames.push({ step, own: new Map(moving ? [[moving.id, 0]] : []), pause: caption || step === 0 ? 3200 : pause });
            for (let own = 1; moving && own <= this.figures.get(moving.id).steps; own++)
                frames.push({ step, own: new Map([[moving.id, own]]), pause: this.figures.get(moving.id).pause ?? 1100 });
        }
        return frames;
    }

    show(frame, moving) {
        this.frame = frame;
        for (const { block, node } of this.blocks) node.hidden = block.step > frame.step;
        for (const section of this.main.children) {
            const empty = node => node.hidden || (node.className === "figures" && Array.from(node.children).every(empty));
            section.hidden = Array.from(section.children).every(empty);
            section.classList.remove("current");
        }
        this.resize();
        for (const [id, figure] of this.figures) figure.show(frame.step, frame.own.get(id), moving);
        const current = d3.greatest(this.blocks.filter(({ block }) => block.step <= frame.step), d => d.block.step)?.section;
        if (frame.step > 0) current?.classList.add("current");
        this.spoil(frame);
        this.explain(null, []);
        this.follow(frame);
    }

    // What sums up a figure waits until the figure is whole.
    spoil(frame) {
        for (const { block, node } of this.blocks) {
            const figure = this.figures.get(block.id);
            if (!figure) continue;
            const whole = figure.wholeAt?.() <= frame.step ||
                (!block.matrix && (!frame.own.has(block.id) || frame.own.get(block.id) === figure.steps));
            node.querySelectorAll(".summary, details").forEach(part => { part.hidden = !whole; });
            figure.svg.attr("aria-label", [`${block.title}.`, whole ? block.summary : null, figure.shape?.()].filter(Boolean).join(" "));
        }
    }

    // Bring what has just changed into view.
    follow(frame) {
        if (frame.step === 0 || this.printing) return;
        const growing = id => this.figures.get(id)?.wholeAt?.() >= frame.step;
        const fresh = this.blocks.filter(({ block }) => block.step === frame.step || (block.step < frame.step && growing(block.id)));
        const node = frame.own.size ? document.getElementById(`block-${frame.own.keys().next().value}`) : fresh[0]?.node;
        const last = fresh[fresh.length - 1]?.node ?? node;
        if (!node) return;
        const top = node.getBoundingClientRect().top, bottom = last.getBoundingClientRect().bottom, room = innerHeight - 130;
        if (top < 0 || bottom > room)
            scrollBy({ top: bottom - top > room - 20 ? top - 12 : bottom - room + 8, behavior: calm.matches ? "auto" : "smooth" });
    }

    // What stands in the bar when nothing is pointed at: the formula of a cell that has just appeared, or else the caption of the step.
    resting() {
        const { step } = this.frame, figures = Array.from(this.figures.values());
        const fresh = figures.map(figure => figure.freshFormula?.(step)).find(Boolean);
        if (fresh) return fresh;
        const caption = figures.map(figure => figure.caption?.(step)).find(Boolean) ??
            d3.greatest(this.captions.filter(c => c.step <= step), c => c.step)?.text ??
            say("先猜一猜，再按空格播放，或用 → 一步一步走。", "Predict first. Then SPACE plays, and → goes step by step.");
        return { pieces: [[caption]], sources: [] };
    }

    explain(pieces, sources) {
        const resting = pieces ? null : this.resting();
        this.explanation.replaceChildren(...(pieces ?? resting.pieces).map(([text, role]) => element("span", role ? `role-${role}` : "", ...typeset(text))));
        this.explanation.classList.toggle("pointed", Boolean(pieces));
        for (const [id, figure] of this.figures)
            figure.light?.((resting?.sources ?? sources).filter(([source]) => source === id).map(([, row, col]) => [row, col]));
    }

    // ---- sizes ----

    resize() {
        const width = Math.floor(this.main.clientWidth) - 2;
        for (const { block, node } of this.blocks) {
            const figure = this.figures.get(block.id);
            if (!figure || node.hidden || figure.available === width || width <= 0) continue;
            figure.available = width;
            figure.draw(width);
        }
    }

    print(printing) {
        this.printing = printing;
        if (printing) {
            this.kept = this.player.at;
            this.player.pause();
        }
        this.player.draw(printing ? this.player.frames.length - 1 : this.kept, false);
    }
}

// What is not known, or masked.
function hatch() {
    const svg = d3.create("svg").attr("class", "unseen").attr("aria-hidden", "true").attr("width", 0).attr("height", 0);
    const pattern = svg.append("defs").append("pattern").attr("id", "hatch").attr("width", 8).attr("height", 8)
        .attr("patternUnits", "userSpaceOnUse").attr("patternTransform", "rotate(45)");
    pattern.append("rect").attr("class", "hatch-paper").attr("width", 8).attr("height", 8);
    pattern.append("line").attr("class", "hatch-line").attr("y2", 8);
    return svg.node();
}

if (data.lesson) new Page(data.lesson);
else coursePage(data.course, data.symbols);
