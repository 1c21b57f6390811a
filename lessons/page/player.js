// Steps through a page: nothing moves unless it is asked to.
// SPDX-License-Identifier: Apache-2.0
"use strict";

// Fonts differ in the signs that they have for these.
const pictures = {
    start: "M3,2h3v12h-3zM14,2v12l-8,-6z",
    back: "M12,2v12l-8,-6z",
    play: "M4,1l10,7l-10,7z",
    pause: "M3,2h4v12h-4zM9,2h4v12h-4z",
    forward: "M4,2l8,6l-8,6zM12,2h2v12h-2z",
    end: "M2,2l8,6l-8,6zM10,2h3v12h-3z",
    full: "M1,1h5v2h-3v3h-2zM10,1h5v5h-2v-3h-3zM1,10h2v3h3v2h-5zM13,10h2v5h-5v-2h3z",
};

const icon = name => d3.create("svg").attr("viewBox", "0 0 16 16").attr("aria-hidden", "true")
    .call(svg => svg.append("path").attr("d", pictures[name])).node();

class Player {
    // frames: [{step, own: Map of a figure's id to its own step, pause in ms}]; show(frame, moving) draws one.
    constructor(frames, show) {
        this.frames = frames;
        this.show = show;
        this.at = 0;
        this.timer = null;
        this.build();
        document.addEventListener("keydown", event => this.key(event));
    }

    button(picture, name, action) {
        const made = element("button", "", icon(picture));
        made.type = "button";
        made.title = name;
        made.setAttribute("aria-label", name);
        made.addEventListener("click", action);
        made.addEventListener("mousedown", event => event.preventDefault()); // SPACE plays after a click, too
        return made;
    }

    build() {
        const last = this.frames.length - 1;
        this.slider = element("input", "");
        Object.assign(this.slider, { type: "range", min: 0, max: last, value: 0 });
        this.slider.setAttribute("aria-label", say("步", "step"));
        this.slider.addEventListener("input", () => this.go(+this.slider.value));
        this.playButton = this.button("play", say("播放（空格）", "play (SPACE)"), () => this.toggle());
        this.count = element("span", "count");
        this.node = element("div", "controls",
            this.button("start", say("开头（Home）", "start (Home)"), () => this.go(0)),
            this.button("back", say("上一步（←）", "step back (←)"), () => this.go(this.at - 1)),
            this.playButton,
            this.button("forward", say("下一步（→）", "step (→)"), () => this.go(this.at + 1)),
            this.button("end", say("结尾（End）", "end (End)"), () => this.go(last)),
            this.slider, this.count,
            this.button("full", say("全屏（F）", "full screen (F)"), () => this.fullScreen()));
    }

    // The question comes first in every mode; where motion is to be reduced, each step appears as it ends.
    start() { this.draw(0, false); }

    finish() { this.go(this.frames.length - 1); }

    go(at) {
        this.pause();
        this.draw(at, !calm.matches && at === this.at + 1);
    }

    draw(at, moving) {
        this.at = Math.min(Math.max(at, 0), this.frames.length - 1);
        this.slider.value = this.at;
        this.count.textContent = `${this.at} / ${this.frames.length - 1}`;
        this.slider.setAttribute("aria-valuetext", this.count.textContent);
        this.show(this.frames[this.at], moving);
    }

    toggle() {
        if (this.timer !== null) return this.pause();
        this.draw(this.at === this.frames.length - 1 ? 0 : this.at + 1, !calm.matches);
        this.wait();
    }

    wait() {
        if (this.at === this.frames.length - 1) return this.pause();
        this.timer = setTimeout(() => {
            this.draw(this.at + 1, !calm.matches);
            this.wait();
        }, this.frames[this.at].pause);
        this.label("pause", say("暂停（空格）", "pause (SPACE)"));
    }

    pause() {
        clearTimeout(this.timer);
        this.timer = null;
        this.label("play", say("播放（空格）", "play (SPACE)"));
    }

    label(picture, name) {
        this.playButton.replaceChildren(icon(picture));
        this.playButton.title = name;
        this.playButton.setAttribute("aria-label", name);
    }

    fullScreen() {
        if (document.fullscreenElement) document.exitFullscreen();
        else document.documentElement.requestFullscreen?.().catch(() => {}); // refused by the browser: the page stays as it is
    }

    // Keys that a control has a use for are its own.
    key(event) {
        if (event.ctrlKey || event.altKey || event.metaKey || event.defaultPrevented) return;
        const control = event.target.closest?.("input, button, summary, a");
        const actions = {
            " ": () => this.toggle(),
            ArrowLeft: () => this.go(this.at - 1),
            ArrowRight: () => this.go(this.at + 1),
            Home: () => this.go(0),
            End: () => this.go(this.frames.length - 1),
            f: () => this.fullScreen(),
            F: () => this.fullScreen(),
        };
        const pressed = control?.matches("button, summary, a") && event.key === " ";
        const slid = control?.matches("input") && control !== this.slider && event.key !== "f" && event.key !== "F";
        if (pressed || slid || !Object.hasOwn(actions, event.key)) return;
        event.preventDefault();
        actions[event.key]();
    }
}
