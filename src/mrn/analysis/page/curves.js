// Learning curves: traces, hover labels and highlighting.
const SHARES = ["success", "success_any"];
const COUNTERS = ["epoch", "env_steps", "updates"];
const UNITS = [[2 * 3600, 3600, "hours"], [120, 60, "minutes"], [0, 1, "seconds"]];

// All columns of the experiment except counters, success first.
function measuredColumns(experiment) {
  const names = new Set(experiment.runs.flatMap((run) => Object.keys(run.columns)));
  return ["success", ...[...names].filter((n) => n !== "success" && !COUNTERS.includes(n))];
}

// Title of the x axis, and the scale of its values; time in a unit that suits the longest run.
function axis(experiment) {
  if ($("x").value === "epochs") return ["epoch", 1];
  if ($("x").value === "steps") return ["environment steps", 1];
  const longest = Math.max(0, ...experiment.runs.map((run) => run.seconds.at(-1) || 0));
  const [, size, name] = UNITS.find(([least]) => longest >= least);
  return [name, size];
}

// The x values of a single run.
function runX(run, scale) {
  const values = { epochs: run.columns.epoch, steps: run.columns.env_steps, time: run.seconds };
  return values[$("x").value].map((value) => value / scale);
}

// Exponential moving average of what is drawn; `keep` is the weight of the previous value.
function smooth(values, keep) {
  let last = null;
  return values.map((value) => {
    if (value === null) return null;
    last = last === null ? value : keep * last + (1 - keep) * value;
    return last;
  });
}

// The points of a curve that have a value, with the smoothed ones to draw.
function curvePoints(curve, column, scale, keep) {
  const values = curve.columns[column];
  if (!values) return [];
  const [y, low, high] = ["mean", "low", "high"].map((name) => smooth(values[name], keep));
  return curve.x[$("x").value]
    .map((x, i) => ({ x: x / scale, y: y[i], low: low[i], high: high[i], mean: values.mean[i],
                      interval: [values.low[i], values.high[i]], seeds: values.seeds[i] }))
    .filter((point) => point.y !== null);
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

// Hover label of a point: mean, interval and number of seeds, without smoothing.
function hoverText({ mean, interval: [low, high], seeds }, column) {
  const share = SHARES.includes(column);
  const spread = low === null ? ""
    : share ? ` [${range(low, high)}]` : ` [${number(low)} to ${number(high)}]`;
  return `${share ? percent(mean) : number(mean)}${spread}, ${seeds} ${seeds === 1 ? "seed" : "seeds"}`;
}

function curveTraces(curve, runs, column, scale, keep) {
  const points = curvePoints(curve, column, scale, keep);
  if (!points.length) return [];
  const method = curve.method, all = Math.max(...points.map((point) => point.seeds));
  const pick = (name, list) => list.map((point) => point[name]);
  const line = { color: color(method), width: 2 };
  const quiet = { hoverinfo: "skip", meta: method, mode: "lines" };
  const traces = [];
  if ($("seeds").checked) {
    for (const run of runs)
      traces.push({ ...quiet, x: runX(run, scale), y: smooth(run.columns[column] || [], keep),
                    line: { color: faded(color(method), 0.45), width: 1 } });
  } else if (all > 1) {
    const band = points.filter((point) => point.interval[0] !== null);
    const x = pick("x", band);
    traces.push({ ...quiet, x: [...x, ...x.slice().reverse()], fill: "toself",
                  y: [...pick("high", band), ...pick("low", band).reverse()],
                  fillcolor: faded(color(method), 0.18), line: { width: 0 } });
  }
  // Solid where all seeds have a value; dotted elsewhere, below the solid parts.
  const solid = points.map((point) => (point.seeds === all ? point.y : null));
  const mode = points.length < 3 ? "lines+markers" : "lines", x = pick("x", points);
  if (solid.includes(null))
    traces.push({ ...quiet, mode, x, y: pick("y", points), line: { ...line, dash: "dot" } });
  traces.push({ ...quiet, mode, x, y: solid, line });
  // Invisible markers that receive hover events.
  const name = label(data.names[method]);
  const square = `<span style="color:${color(method)}">■</span>`;
  traces.push({ x: pick("x", points), y: pick("y", points), name, meta: method, mode: "markers",
                marker: { opacity: 0, size: 1 }, text: points.map((point) => hoverText(point, column)),
                hovertemplate: `${square} <b>${name}</b> %{text}<extra></extra>` });
  return traces;
}

// Create all boxes first, because Plotly takes the size of a plot from its box.
function plots(parent, names, attribute) {
  parent.replaceChildren();
  return names.map((name) => [name, make("div", null, parent, { class: "plot", [attribute]: name })]);
}

// Fade all methods but one; null shows all.
function highlight(box, method) {
  if (box.highlighted === method) return;
  box.highlighted = method;
  const opacity = box.data.map((trace) => (method === null || trace.meta === method ? 1 : 0.2));
  Plotly.restyle(box, { opacity });
}

function highlightEverywhere(method) {
  for (const box of $("curves").children) if (box.data) highlight(box, method);
}

// Highlight the curve nearest to the pointer. Plotly fires hover events for a new x only, so vertical
// movement is tracked separately.
function follow(box) {
  let points = [];
  const mark = (event) => {
    if (!points.length) return highlight(box, null);
    const top = box.querySelector(".nsewdrag").getBoundingClientRect().top;
    const distance = ({ y, yaxis }) => Math.abs(top + yaxis.c2p(y) - event.clientY);
    const nearest = points.reduce((best, point) => (distance(point) < distance(best) ? point : best));
    highlight(box, nearest.data.meta);
  };
  box.on("plotly_hover", (hover) => { points = hover.points; mark(hover.event); });
  box.on("plotly_unhover", (hover) => { points = []; mark(hover.event); });
  box.addEventListener("mousemove", mark);
}

// Break a text into lines of about 40 characters.
function wrap(text) {
  return text.split(" ").reduce((lines, word) => {
    const last = lines.slice(lines.lastIndexOf("\n") + 1);
    return lines + (last.length + word.length > 40 ? "\n" : " ") + word;
  });
}

function drawCurves() {
  const experiment = current(), chosen = $("task").value, column = $("y").value;
  const tasks = chosen === ALL ? experiment.tasks : [chosen];
  const [title, scale] = axis(experiment);
  const keep = Number($("smoothing").value);
  $("curves").className = tasks.length === 1 ? "single" : "";
  $("curves-note").textContent =
    (column === "success" ? "Success rate at the last step of evaluation episodes" : column.replaceAll("_", " ")) +
    `. ${experiment.curves_note}` + (keep ? " Smoothing affects the lines, not the values shown on hover." : "");
  for (const [task, box] of plots($("curves"), tasks, "data-task")) {
    const traces = [], missing = [], ends = [];
    for (const method of shown(experiment)) {
      const runs = experiment.runs.filter(
        (run) => run.task === task && run.method === method && run.epochs);
      const curve = experiment.curves.find((each) => each.task === task && each.method === method);
      if (curve) traces.push(...curveTraces(curve, runs, column, scale, keep));
      else missing.push(data.names[method]);
      ends.push(...runs.map((run) => run.epochs));
    }
    const share = SHARES.includes(column) ? { range: [-0.03, 1.03], tickformat: ".0%" } : {};
    const look = layout(task, title, share);
    look.hovermode = "x unified";
    look.xaxis.hoverformat = title === "epoch" ? ",.2~f" : title === "environment steps" ? ",.0f" : ".3~g";
    // In Plotly, a negative thickness means no white outline.
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
      look.annotations = [{ text: label(wrap("missing: " + missing.join("; "))).replaceAll("\n", "<br>"),
        showarrow: false, xref: "paper", yref: "paper", x: 1, y: 0.02, xanchor: "right", align: "right",
        font: { size: 11, color: css("--faint") } }];
    Plotly.newPlot(box, traces, look, CONFIG);
    follow(box);
  }
}
