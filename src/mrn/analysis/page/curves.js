// Learning curves: what is drawn, and what is said when the pointer is on them.
const SHARES = ["success", "success_any"];
const COUNTERS = ["epoch", "env_steps", "updates"];
const UNITS = [[2 * 3600, 3600, "hours"], [120, 60, "minutes"], [0, 1, "seconds"]];

// Every column that a run of the experiment has, success first; counters are no measurements.
function measured(experiment) {
  const names = new Set(experiment.runs.flatMap((run) => Object.keys(run.columns)));
  return ["success", ...[...names].filter((n) => n !== "success" && !COUNTERS.includes(n))];
}

// The title of the x axis and a run's values on it; time in the unit that suits the longest run.
function axis(experiment) {
  if ($("x").value === "epochs") return ["epoch", (run) => run.columns.epoch];
  if ($("x").value === "steps") return ["environment steps", (run) => run.columns.env_steps];
  const longest = Math.max(0, ...experiment.runs.map((run) => run.seconds.at(-1) || 0));
  const [, size, name] = UNITS.find(([least]) => longest >= least);
  return [name, (run) => run.seconds.map((seconds) => seconds / size)];
}

function smooth(values, keep) {
  let last = null;
  return values.map((value) => {
    if (value === null) return null;
    last = last === null ? value : keep * last + (1 - keep) * value;
    return last;
  });
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

// Samples of so many runs, drawn with replacement: places and how likely they are. Of few runs these
// are all there are, of more a thousand random ones (mulberry32), the same for each epoch and visit.
const samples = {};
function resamples(count) {
  return (samples[count] ||= count <= 6 ? everySample(count, []) : randomSamples(count, 1000));
}

function everySample(count, places) {
  if (places.length === count) {
    // Orders of these places, of count ** count in all.
    let share = 1, same = 0;
    places.forEach((place, i) => {
      same = place === places[i - 1] ? same + 1 : 1;
      share *= (i + 1) / same / count;
    });
    return [{ places, share }];
  }
  const rest = Array.from({ length: count }, (_, i) => i).slice(places.at(-1) || 0);
  return rest.flatMap((place) => everySample(count, [...places, place]));
}

function randomSamples(count, many) {
  let state = 1;
  const random = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const draw = () => Array.from({ length: count }, () => Math.floor(random() * count));
  return Array.from({ length: many }, () => ({ places: draw(), share: 1 / many }));
}

// The 95 % bootstrap interval of the mean; of one value there is none.
function interval(values) {
  if (values.length < 2) return [null, null];
  const means = resamples(values.length)
    .map(({ places, share }) => ({ mean: mean(places.map((place) => values[place])), share }))
    .sort((one, other) => one.mean - other.mean);
  const quantile = (level) => {
    let below = 0;
    return means.find(({ share }) => (below += share) >= level - 1e-9).mean;
  };
  return [quantile(0.025), quantile(0.975)];
}

// One method on one task: x, mean and its interval per epoch, and how many seeds it has.
function average(runs, keep, xOf, column) {
  const ys = runs.map((run) => smooth(run.columns[column] || [], keep));
  const xs = runs.map(xOf);
  const points = [];
  for (let epoch = 0; epoch < Math.max(...ys.map((y) => y.length)); epoch++) {
    const there = runs.map((_, i) => i).filter((i) => epoch < ys[i].length && ys[i][epoch] !== null);
    if (!there.length) continue;
    const values = there.map((i) => ys[i][epoch]);
    let [low, high] = interval(values);
    if (low !== null && SHARES.includes(column)) [low, high] = [Math.max(low, 0), Math.min(high, 1)];
    points.push({ x: mean(there.map((i) => xs[i][epoch])), y: mean(values), low, high, count: values.length });
  }
  return points;
}

function layout(title, x, y) {
  const lines = { gridcolor: css("--line"), zerolinecolor: css("--line"), automargin: true };
  return {
    title: { text: label(title), font: { size: 14 }, x: 0.02, xanchor: "left" },
    font: { color: css("--text"), family: "system-ui, sans-serif" },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    margin: { l: 45, r: 10, t: 36, b: 40 },
    showlegend: false,
    hovermode: "closest",
    hoverlabel: { bgcolor: faded(css("--panel"), 0.88), bordercolor: css("--line"), namelength: -1,
                  font: { color: css("--text"), size: narrow.matches ? 11 : 12 } },
    xaxis: { ...lines, title: { text: x } },
    yaxis: { ...lines, ...y },
  };
}

const CONFIG = { responsive: true, displaylogo: false, displayModeBar: false };
const number = (value) => Number(value.toPrecision(4)).toLocaleString("en", { maximumSignificantDigits: 4 });

// What the pointer is told of a point: the mean, its interval, and of how many seeds.
function told(point, column) {
  const show = SHARES.includes(column) ? percent : number;
  const spread = point.low === null ? ""
    : SHARES.includes(column) ? ` [${range(point.low, point.high)}]`
    : ` [${number(point.low)} to ${number(point.high)}]`;
  return `${show(point.y)}${spread}, n = ${point.count}`;
}

function curveTraces(runs, method, keep, xOf, column) {
  const points = average(runs, keep, xOf, column);
  if (!points.length) return [];
  const all = Math.max(...points.map((point) => point.count));
  const pick = (name, list) => list.map((point) => point[name]);
  const line = { color: colour(method), width: 2 };
  const quiet = { hoverinfo: "skip", meta: method, mode: "lines" };
  const traces = [];
  if ($("seeds").checked) {
    for (const run of runs)
      traces.push({ ...quiet, x: xOf(run), y: smooth(run.columns[column] || [], keep),
                    line: { color: faded(colour(method), 0.45), width: 1 } });
  } else if (all > 1) {
    const band = points.filter((point) => point.low !== null);
    const x = pick("x", band);
    traces.push({ ...quiet, x: [...x, ...x.slice().reverse()], fill: "toself",
                  y: [...pick("high", band), ...pick("low", band).reverse()],
                  fillcolor: faded(colour(method), 0.18), line: { width: 0 } });
  }
  const whole = points.filter((point) => point.count === all);
  const rest = points.slice(Math.max(whole.length - 1, 0));
  const mode = points.length < 3 ? "lines+markers" : "lines";
  traces.push({ ...quiet, mode, x: pick("x", whole), y: pick("y", whole), line });
  if (whole.length < points.length)
    traces.push({ ...quiet, mode, x: pick("x", rest), y: pick("y", rest), line: { ...line, dash: "dot" } });
  // What answers to the pointer: all points once, not seen.
  const name = label(data.names[method]);
  const square = `<span style="color:${colour(method)}">■</span>`;
  traces.push({ x: pick("x", points), y: pick("y", points), name, meta: method, mode: "markers",
                marker: { opacity: 0, size: 1 }, text: points.map((point) => told(point, column)),
                hovertemplate: `${square} <b>${name}</b> %{text}<extra></extra>` });
  return traces;
}

// All boxes are there before the first plot takes its size from its own.
function plots(parent, names, attribute) {
  parent.replaceChildren();
  return names.map((name) => [name, make("div", null, parent, { class: "plot", [attribute]: name })]);
}

// One method as it is, the others faded; all as they are for null.
function highlight(box, method) {
  if (box.highlighted === method) return;
  box.highlighted = method;
  const opacity = box.data.map((trace) => (method === null || trace.meta === method ? 1 : 0.2));
  Plotly.restyle(box, { opacity });
}

function highlightEverywhere(method) {
  for (const box of $("curves").children) if (box.data) highlight(box, method);
}

// The curve nearest to the pointer is highlighted. Plotly tells of the points at a new x, not of a
// pointer that moves up or down at the same.
function follow(box) {
  let points = [];
  const mark = (event) => {
    if (!points.length) return highlight(box, null);
    const top = box.querySelector(".nsewdrag").getBoundingClientRect().top;
    const away = ({ y, yaxis }) => Math.abs(top + yaxis.c2p(y) - event.clientY);
    const nearest = points.reduce((best, point) => (away(point) < away(best) ? point : best));
    highlight(box, nearest.data.meta);
  };
  box.on("plotly_hover", (told) => { points = told.points; mark(told.event); });
  box.on("plotly_unhover", (told) => { points = []; mark(told.event); });
  box.addEventListener("mousemove", mark);
}

function drawCurves() {
  const experiment = current(), chosen = $("task").value, column = $("y").value;
  const tasks = chosen === ALL ? experiment.tasks : [chosen];
  const [title, xOf] = axis(experiment);
  const keep = Number($("smoothing").value);
  $("curves").className = tasks.length === 1 ? "single" : "";
  $("curves-note").textContent =
    (column === "success" ? "Success at the last step of an evaluation" : column.replaceAll("_", " ")) +
    ": mean over seeds; the band is the 95 % bootstrap interval of the mean, where there is more than " +
    "one seed (of 2 or 3: from the lowest to the highest). Dotted where not all seeds have got that far.";
  for (const [task, box] of plots($("curves"), tasks, "data-task")) {
    const traces = [], missing = [], ends = [];
    for (const method of shown(experiment)) {
      const runs = experiment.runs.filter(
        (run) => run.task === task && run.method === method && run.epochs);
      if (runs.length) traces.push(...curveTraces(runs, method, keep, xOf, column));
      else missing.push(data.names[method]);
      ends.push(...runs.map((run) => run.epochs));
    }
    const share = SHARES.includes(column) ? { range: [-0.03, 1.03], tickformat: ".0%" } : {};
    const look = layout(task, title, share);
    look.hovermode = "x unified";
    look.xaxis.hoverformat = title === "epoch" ? ",.2~f" : title === "environment steps" ? ",.0f" : ".3~g";
    // A negative thickness is Plotly's way to say: without a white edge.
    Object.assign(look.xaxis, { spikecolor: css("--faint"), spikethickness: -2, spikedash: "dot" });
    look.xaxis.unifiedhovertitle = { text: `${title} %{x}` };
    if (title === "epoch" && Math.max(0, ...ends) <= 10) look.xaxis.dtick = 1;
    const [compared] = comparedRows(experiment, task);
    if (title === "epoch" && compared && compared.epochs < Math.max(...ends))
      look.shapes = [{ type: "line", x0: compared.epochs, x1: compared.epochs, yref: "paper",
        y0: 0, y1: 1, line: { color: css("--faint"), width: 1, dash: "dash" },
        label: { text: "compared here", textangle: 0, textposition: "end", xanchor: "center",
                 yanchor: "bottom", font: { size: 10, color: css("--faint") } } }];
    if (missing.length)
      look.annotations = [{ text: label("missing: " + missing.join(", ")), showarrow: false,
        xref: "paper", yref: "paper", x: 1, y: 0.02, xanchor: "right", font: { size: 11 } }];
    Plotly.newPlot(box, traces, look, CONFIG);
    follow(box);
  }
}
