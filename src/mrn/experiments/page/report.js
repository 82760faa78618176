"use strict";
// All text enters the page by textContent: a name is never read as HTML.
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const ALL = "all tasks";

function make(tag, text, parent, attributes = {}) {
  const node = document.createElement(tag);
  if (text !== null) node.textContent = text;
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (parent) parent.append(node);
  return node;
}

// Plotly reads a little markup in its labels.
const label = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
const percent = (share) => (100 * share).toFixed(1) + " %";
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const faded = (colour, alpha) =>
  `rgba(${[1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16)).join(",")},${alpha})`;

// The choices live in the address, so that a reload (or a colleague) sees the same.
const hash = new URLSearchParams(location.hash.slice(1));
const hidden = new Set((hash.get("hidden") || "").split(",").filter(Boolean));

function remember() {
  for (const id of ["experiment", "task", "x", "smoothing", "measure"]) hash.set(id, $(id).value);
  hash.set("seeds", $("seeds").checked ? "1" : "");
  hash.set("hidden", [...hidden].join(","));
  history.replaceState(null, "", "#" + hash);
}

const current = () => data.experiments[$("experiment").selectedIndex];
const dark = matchMedia("(prefers-color-scheme: dark)");

function colour(method) {
  const channels = [1, 3, 5].map((i) => parseInt(data.colours[method].slice(i, i + 2), 16));
  const light = dark.matches ? channels.map((c) => Math.round(c + 0.35 * (255 - c))) : channels;
  return "#" + light.map((c) => c.toString(16).padStart(2, "0")).join("");
}

const shown = (experiment) => experiment.methods.filter((method) => !hidden.has(method));

function options(select, values) {
  const before = select.value || hash.get(select.id);
  select.replaceChildren(...values.map((value) => make("option", value, null)));
  if (values.includes(before)) select.value = before;
}

function smooth(values, keep) {
  let last = null;
  return values.map((value) => {
    if (value === null) return null;
    last = last === null ? value : keep * last + (1 - keep) * value;
    return last;
  });
}

const AXES = {
  epochs: ["epoch", (run) => run.success.map((_, index) => index + 1)],
  steps: ["environment steps", (run) => run.steps],
  hours: ["hours", (run) => run.seconds.map((seconds) => seconds / 3600)],
};

function mean(values) {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

// One method on one task: x, mean and standard deviation per epoch, and how many seeds it has.
function average(runs, keep, xOf) {
  const ys = runs.map((run) => smooth(run.success, keep));
  const xs = runs.map(xOf);
  const points = [];
  for (let epoch = 0; epoch < Math.max(...ys.map((y) => y.length)); epoch++) {
    const there = runs.map((_, i) => i).filter((i) => epoch < ys[i].length && ys[i][epoch] !== null);
    if (!there.length) continue;
    const values = there.map((i) => ys[i][epoch]);
    const middle = mean(values);
    const squares = values.map((value) => (value - middle) ** 2);
    const std = values.length > 1 ? Math.sqrt((mean(squares) * values.length) / (values.length - 1)) : 0;
    points.push({ x: mean(there.map((i) => xs[i][epoch])), y: middle, std, count: values.length });
  }
  return points;
}

function layout(title, x, y) {
  const axis = { gridcolor: css("--line"), zerolinecolor: css("--line"), automargin: true };
  return {
    title: { text: label(title), font: { size: 14 }, x: 0.02, xanchor: "left" },
    font: { color: css("--text"), family: "system-ui, sans-serif" },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 45, r: 10, t: 36, b: 40 },
    showlegend: false,
    hovermode: "closest",
    xaxis: { ...axis, title: { text: x } },
    yaxis: { ...axis, ...y },
  };
}

const CONFIG = { responsive: true, displaylogo: false, displayModeBar: false };

function curveTraces(runs, method, keep, xOf) {
  const points = average(runs, keep, xOf);
  const all = Math.max(...points.map((point) => point.count));
  const pick = (name, list) => list.map((point) => point[name]);
  const name = label(data.names[method]);
  const line = { color: colour(method), width: 2 };
  const traces = [];
  if ($("seeds").checked) {
    for (const run of runs)
      traces.push({ x: xOf(run), y: smooth(run.success, keep), mode: "lines", hoverinfo: "skip",
                    line: { color: faded(colour(method), 0.45), width: 1 } });
  } else if (all > 1) {
    const upper = points.map((p) => p.y + p.std), lower = points.map((p) => p.y - p.std);
    traces.push({ x: [...pick("x", points), ...pick("x", points).reverse()],
                  y: [...upper, ...lower.reverse()], fill: "toself", hoverinfo: "skip",
                  fillcolor: faded(colour(method), 0.18), line: { width: 0 }, mode: "lines" });
  }
  const whole = points.filter((point) => point.count === all);
  const rest = points.slice(Math.max(whole.length - 1, 0));
  const mode = points.length < 3 ? "lines+markers" : "lines";
  const hovertemplate = `${name}: %{y:.1%}<br>%{x}<extra></extra>`;
  traces.push({ x: pick("x", whole), y: pick("y", whole), name, mode, line, hovertemplate });
  if (whole.length < points.length)
    traces.push({ x: pick("x", rest), y: pick("y", rest), name, mode, hovertemplate,
                  line: { ...line, dash: "dot" } });
  return traces;
}

// All boxes are there before the first plot takes its size from its own.
function plots(parent, names, attribute) {
  parent.replaceChildren();
  return names.map((name) => [name, make("div", null, parent, { class: "plot", [attribute]: name })]);
}

function drawCurves() {
  const experiment = current(), chosen = $("task").value;
  const tasks = chosen === ALL ? experiment.tasks : [chosen];
  const [title, xOf] = AXES[$("x").value];
  const keep = Number($("smoothing").value);
  $("curves").className = tasks.length === 1 ? "single" : "";
  const boxes = plots($("curves"), tasks, "data-task");
  for (const [task, box] of boxes) {
    const traces = [], missing = [];
    for (const method of shown(experiment)) {
      const runs = experiment.runs.filter(
        (run) => run.task === task && run.method === method && run.success.length);
      if (runs.length) traces.push(...curveTraces(runs, method, keep, xOf));
      else missing.push(data.names[method]);
    }
    const look = layout(task, title, { range: [-0.03, 1.03], tickformat: ".0%" });
    const longest = Math.max(0, ...experiment.runs.map((run) => run.success.length));
    if ($("x").value === "epochs" && longest <= 10) look.xaxis.dtick = 1;
    if (missing.length)
      look.annotations = [{ text: label("missing: " + missing.join(", ")), showarrow: false,
        xref: "paper", yref: "paper", x: 1, y: 0.02, xanchor: "right", font: { size: 11 } }];
    Plotly.newPlot(box, traces, look, CONFIG);
  }
}

function cell(row, measure) {
  if (measure === "success" || measure === "area") {
    const [value, low, high] = row[measure];
    const range = low === null ? "one seed" : `${(100 * low).toFixed(1)} to ${(100 * high).toFixed(1)}`;
    return [percent(value), range];
  }
  const [episodes, reached] = row[measure];
  const text = episodes === null ? "never" : Math.round(episodes).toLocaleString("en");
  return [text, `${reached} of ${row.seeds} seeds`];
}

// Among the methods that have finished: the highest share, or the fewest episodes.
function bestOf(rows, measure) {
  const worth = (row) => measure === "success" || measure === "area"
    ? row[measure][0] : row[measure][0] === null ? -Infinity : -row[measure][0];
  const complete = rows.filter((row) => row.complete);
  if (complete.length < 2) return [];
  const top = Math.max(...complete.map(worth));
  return complete.filter((row) => top > -Infinity && worth(row) === top);
}

function drawTable() {
  const experiment = current(), measure = $("measure").value, table = $("overview");
  const methods = shown(experiment);
  table.replaceChildren();
  const head = make("tr", null, make("thead", null, table));
  make("th", "task", head, { scope: "col" });
  for (const method of methods) make("th", data.names[method], head, { scope: "col" });
  const body = make("tbody", null, table);
  for (const task of experiment.tasks) {
    const line = make("tr", null, body);
    make("th", task, line, { scope: "row" });
    const rows = experiment.rows.filter((row) => row.task === task && !hidden.has(row.method));
    const best = bestOf(rows, measure);
    for (const method of methods) {
      const row = rows.find((each) => each.method === method);
      if (!row) { make("td", "missing", line, { class: "missing" }); continue; }
      const [value, detail] = cell(row, measure);
      const box = make("td", value, line, {
        "data-task": task, "data-method": method, class: best.includes(row) ? "best" : "" });
      make("small", detail, box);
      if (!row.complete) make("small", `after epoch ${row.epochs} of ${row.planned}`, box);
    }
  }
  $("table-note").textContent = measure === "success" || measure === "area"
    ? "Mean over seeds, and its 95 % bootstrap interval. The best of those that have finished is marked."
    : "Median over seeds of the training episodes until an evaluation first reached it. The fewest are marked.";
}

function drawAggregates() {
  const experiment = current(), rows = experiment.aggregates.filter((row) => !hidden.has(row.method));
  $("aggregates").hidden = experiment.aggregates.length < 2;
  if ($("aggregates").hidden) return;
  const count = experiment.shared.length;
  $("aggregates-note").textContent =
    `${count === 1 ? experiment.shared[0] : count + " tasks that every method has finished"}. ` +
    "Interquartile means with 95 % stratified bootstrap intervals; the probability that a run of " +
    `${data.names[experiment.reference]} has a higher mean over the epochs than one of the other.`;
  const titles = { success: "final success", area: "mean over the epochs",
                   improvement: `P(${data.names[experiment.reference]} is better)` };
  for (const [name, box] of plots($("aggregate-plots"), Object.keys(titles), "data-part")) {
    const there = rows.filter((row) => row[name] !== null);
    const side = (end, sign) => there.map((row) => {
      const value = row[name][end];
      return value === null ? 0 : sign * (value - row[name][0]);
    });
    const trace = {
      x: there.map((row) => row[name][0]), y: there.map((row) => label(data.names[row.method])),
      error_x: { type: "data", symmetric: false, array: side(2, 1), arrayminus: side(1, -1), width: 0,
                 thickness: 2, color: css("--faint") },
      mode: "markers", marker: { size: 10, color: there.map((row) => colour(row.method)) },
      hovertemplate: "%{y}: %{x:.1%}<extra></extra>",
    };
    const look = layout(titles[name], "", { autorange: "reversed" });
    look.xaxis = { ...look.xaxis, range: [-0.03, 1.03], tickformat: ".0%" };
    Plotly.newPlot(box, [trace], look, CONFIG);
  }
}

function facts(parent, values) {
  const list = make("dl", null, parent, { class: "facts" });
  for (const [name, value] of Object.entries(values)) {
    const pair = make("div", null, list);
    make("dt", name, pair);
    make("dd", value === null ? "default" : String(value), pair);
  }
}

function drawRun(run, parent) {
  const last = run.success.filter((value) => value !== null).at(-1);
  const state = run.problem || `epoch ${run.success.length} of ${run.planned}, success ${percent(last)}`;
  folded(`${run.name} `, state, parent, (box) => {
    if (run.command) {
      make("pre", run.command, box);
      facts(box, run.settings);
      facts(box, run.versions);
    } else make("p", "A curve alone: its settings were not kept.", box, { class: "note" });
  });
}

// A line that opens; what is in it is made when it is first opened.
function folded(title, detail, parent, fill) {
  const box = make("details", null, parent);
  make("span", detail, make("summary", title, box), { class: "faint" });
  box.addEventListener("toggle", () => box.childElementCount > 1 || fill(box));
  return box;
}

function drawRuns() {
  const experiment = current(), chosen = $("task").value;
  $("runs").replaceChildren();
  for (const task of new Set([...experiment.tasks, ...experiment.runs.map((run) => run.task)])) {
    if (chosen !== ALL && chosen !== task) continue;
    const runs = experiment.runs.filter((run) => run.task === task && !hidden.has(run.method));
    const box = folded(`${task} `, `${runs.length} runs`, $("runs"),
      (parent) => runs.forEach((run) => drawRun(run, parent)));
    box.open = chosen === task;
  }
}

function drawVideos() {
  const runs = current().runs.filter((run) => run.videos.length);
  $("videos").hidden = runs.length === 0;
  $("video-list").replaceChildren();
  for (const run of runs)
    for (const video of run.videos) {
      const figure = make("figure", null, $("video-list"));
      if (video.source.startsWith("data:image")) make("img", null, figure, { src: video.source });
      else make("video", null, figure, { src: video.source, controls: "", preload: "metadata" });
      make("figcaption", `${run.name}: ${video.name}`, figure);
    }
}

function drawMethods() {
  const box = $("methods");
  box.replaceChildren(make("legend", "methods", null));
  for (const method of current().methods) {
    const line = make("label", null, box);
    const tick = make("input", null, line, { type: "checkbox", value: method });
    tick.checked = !hidden.has(method);
    tick.addEventListener("change", () => {
      if (tick.checked) hidden.delete(method); else hidden.add(method);
      draw();
    });
    make("span", null, line, { class: "swatch" }).style.background = colour(method);
    line.append(data.names[method]);
  }
}

function draw() {
  remember();
  drawCurves(); drawTable(); drawAggregates(); drawVideos(); drawRuns();
}

function chooseExperiment() {
  const tasks = current().tasks;
  options($("task"), tasks.length > 1 ? [ALL, ...tasks] : tasks);
  drawMethods();
  draw();
}

$("about").textContent = data.about;
for (const problem of data.problems) make("p", problem, $("problems"));
options($("experiment"), data.experiments.map((experiment) => experiment.name || "runs"));
$("experiment-control").hidden = data.experiments.length < 2;
for (const id of ["x", "measure", "smoothing"]) if (hash.get(id)) $(id).value = hash.get(id);
$("seeds").checked = hash.get("seeds") === "1";
$("experiment").addEventListener("change", chooseExperiment);
for (const id of ["task", "x", "smoothing", "seeds"]) $(id).addEventListener("change", draw);
$("measure").addEventListener("change", () => { remember(); drawTable(); });
dark.addEventListener("change", () => { drawMethods(); draw(); });
chooseExperiment();
if (data.refresh) setTimeout(() => location.reload(), 1000 * data.refresh);
