"""What a run found, as one table on the terminal, as JSON and as a page.

SPDX-License-Identifier: Apache-2.0
"""
import glob
import html
import os
import shutil

import card
import predict
import work

SCHEMA = "clattn-gpu-check-1"
# What makes two records the same problem, whoever solves it.
PROBLEM = ("step", "op", "dtype", "batch", "heads_q", "heads_kv", "len_q", "len_kv", "head_dim", "value_dim", "d_in", "hidden",
           "causal", "window", "threads", "cache_state")
CLOCKS = {"device events": "device", "wall clock": "wall"}
TITLES = ("what", "type", "mask", "length", "dim", "units", "ms", "clock", "noise %", "TFLOP/s", "GB/s", "% peak", "predicted %", "against",
          "before", "change", "marks")


# ---- the run before --------------------------------------------------------------------------------------------------------

def is_of(run, label):
    return isinstance(run, dict) and run.get("schema") == SCHEMA and run.get("card") == label and run.get("records")


def last_run(session):
    """The path of the last run of this card: the folder's own, else the newest recorded with the sources; None."""
    own = os.path.join(session.folder, "before", "gpu-check.json")
    recorded = [(work.read_json(path), path) for path in glob.glob(os.path.join(session.root, "bench", "results", "*.json"))]
    if is_of(work.read_json(own), session.label):
        return own
    recorded = sorted((run["date"], path) for run, path in recorded if is_of(run, session.label))
    return recorded[-1][1] if recorded else None


def keep_last_run(folder):
    """Out of the way of this one's files."""
    path = os.path.join(folder, "gpu-check.json")
    if os.path.exists(path):
        os.makedirs(os.path.join(folder, "before"), exist_ok=True)
        shutil.move(path, os.path.join(folder, "before", "gpu-check.json"))


def compare(session):
    """{place of a record: (ms before, change)} by `clattn bench compare`, whose rules tell changes from noise."""
    path = last_run(session)
    if not path or not session.program or not session.records:
        return None, {}
    before = work.read_json(path)["records"]
    files = [os.path.join(session.folder, name) for name in ("records.before.json", "records.json")]
    work.write_json(files[0], before)
    job = work.Work(session.folder, "compare", 20, session.environment, session.card)
    found = job.json_of([session.program, "bench", "compare"] + files)
    pairs = found["pairs"] if found else []
    return path, {pair["after"]: (before[pair["before"]]["ms_median"], "%s %.2fx" % (pair["change"], pair["speed"])) for pair in pairs}


# ---- the table -------------------------------------------------------------------------------------------------------------

def problem_of(record):
    return tuple(record.get(key) for key in PROBLEM)


def rivals(records):
    """{problem: its records by others}"""
    found = {}
    for record in records:
        if record["path"].startswith("torch "):
            found.setdefault(problem_of(record), []).append(record)
    return found


def against(record, others):
    """The speed of one of clattn's figures against the fastest rival's."""
    if not others or not record["path"].startswith("clattn"):
        return None
    best = min(others, key=lambda other: other["ms_median"])
    return "%.2fx %s" % (best["ms_median"] / record["ms_median"], best["path"])


def text(value, form="%s"):
    return "" if value is None else form % value


def scaled(value, factor):
    return None if value is None else value * factor


def row_of(record, bound, others, change):
    length = record.get("len_q")
    keys = record.get("len_kv")
    ms_before, verdict = change or (None, None)
    return (
        record["path"] if record["op"] in ("limit", "attention") else "%s, %s" % (record["op"], record["path"]),
        record["dtype"], "" if record.get("causal") in (None, "none") else "causal",
        text(length) if keys in (None, length) else "%s of %s" % (length, keys), text(record.get("head_dim") or record.get("hidden")),
        text(record["threads"]), text(record["ms_median"], "%.4g"),
        CLOCKS.get(record.get("clock_source"), ""), text(scaled(record["noise"], 100), "%.1f"),
        text(scaled(record.get("gflops"), 1e-3), "%.4g"), text(record.get("gbytes_per_s"), "%.4g"),
        text(record.get("percent_of_peak"), "%.1f"), text(bound, "%.1f"), text(against(record, others)), text(ms_before, "%.4g"),
        text(verdict), "; ".join(record["marks"] + (["above its peak: not to be trusted"] if record.get("above_peak") else [])))


def columns(rows):
    widths = [max(len(row[n]) for row in rows) for n in range(len(TITLES))]
    return ["  ".join(cell.ljust(width) if n in (0, len(TITLES) - 1) else cell.rjust(width)
                      for n, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows]


class Report:
    """Everything that is said at the end."""

    def __init__(self, session, date):
        self.session, self.date = session, date
        work.write_json(os.path.join(session.folder, "records.json"), session.records)
        self.before, changes = compare(session)
        offline, self.offline_path = self.find_offline()
        bounds = predict.predictions(offline)
        others = rivals(session.records)
        self.rows = []
        for n, record in enumerate(session.records):
            record["predicted_percent"] = predict.of_record(bounds, record)
            self.rows.append(row_of(record, record["predicted_percent"], others.get(problem_of(record)), changes.get(n)))

    def find_offline(self):
        session = self.session
        for path in (os.path.join(place, "offline.json") for place in (os.path.join(session.build, "results"), session.kit)):
            found = work.read_json(path)
            if found:
                return found, path
        return None, None

    def notes(self):
        """What the table needs to be read, a sentence a line."""
        session = self.session
        yield "Measured on %s, driver %s." % (session.label, session.driver) if session.label else "Nothing was measured on a device."
        if session.rehearse:
            yield "A rehearsal: these are figures of %s, of small shapes, and say nothing of a GPU." % (session.label or "no device")
        yield ("predicted %%: the bound of the row's largest build for %s, from %s." % (predict.TARGET, self.offline_path)
               if self.offline_path else "predicted %: none; `./run test --all` makes build/results/offline.json.")
        yield "before, change: against %s." % self.before if self.before else "before, change: no earlier run of this card is recorded."
        yield "marks: %s; a marked figure is kept." % (
            "what %s said before, during and after the step" % session.card.tool if session.card.tool
            else "none: neither nvidia-smi nor amd-smi is here")

    def table(self):
        return columns([TITLES] + self.rows) if self.rows else ["no figures"]

    def step_lines(self):
        for step in self.session.taken:
            yield "%-24s %-9s %6.1f s  %s" % (step["step"], step["outcome"], step["seconds"], step["detail"] or "; ".join(step["marks"]))

    def json(self):
        session = self.session
        commit = next((record["commit"] for record in session.records if record.get("commit")), None)
        return {"schema": SCHEMA, "date": self.date, "card": session.label, "device": session.device, "driver": session.driver,
                "rehearsal": session.rehearse, "commit": commit, "compared_with": self.before, "predictions_from": self.offline_path,
                "steps": session.taken, "records": session.records}

    # ---- the page ----------------------------------------------------------------------------------------------------------

    def page(self, style):
        escape = html.escape
        lines = ["<!doctype html>", "<html lang=\"en\"><head><meta charset=\"utf-8\">",
                 "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
                 "<title>gpu-check: %s</title><style>%s</style></head><body>" % (escape(self.session.label or "no device"), style),
                 "<h1>gpu-check</h1>", "<p>%s</p>" % escape(self.date)]
        lines += ["<p>%s</p>" % escape(note) for note in self.notes()]
        lines += page_table(TITLES, self.rows)
        lines += ["<h2>Steps</h2>", "<style>h2 ~ table td, h2 ~ table th { text-align: left; white-space: normal }</style>"] + page_table(("step", "outcome", "s", "detail", "before", "after", "marks"), (
            (step["step"], step["outcome"], "%.1f" % step["seconds"],
             "; ".join(filter(None, [step["detail"]] + step["facts"].get("found", []))),
             card.text(step["before"]), card.text(step["after"]), "; ".join(step["marks"])) for step in self.session.taken))
        return "\n".join(lines + ["</body></html>", ""])

    def write(self, style):
        work.write_json(os.path.join(self.session.folder, "gpu-check.json"), self.json())
        path = os.path.join(self.session.folder, "gpu-check.html")
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.page(style))
        return path


def page_table(titles, rows):
    def line(tag, cells):
        return "<tr>%s</tr>" % "".join("<%s>%s</%s>" % (tag, html.escape(cell), tag) for cell in cells)
    return ["<table>", line("th", titles)] + [line("td", row) for row in rows] + ["</table>"]
