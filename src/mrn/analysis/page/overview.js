// The overview table, the trials of a search and the aggregates.

// Rows of the methods shown, after the epochs that all of them have on the task.
function comparedRows(experiment, task) {
  const rows = experiment.rows.filter((row) => row.task === task && !hidden.has(row.method));
  const epochs = Math.min(...rows.map((row) => row.available));
  return rows.filter((row) => row.epochs === epochs);
}

// The best of the rows, if every pair was ranked: those that never lose.
function bestOf(rows, measure) {
  const results = (row) => rows.filter((other) => other !== row)
    .map((other) => row.versus[measure]?.[other.method]);
  const ranked = rows.length > 1 && rows.every((row) => !results(row).includes(undefined));
  return ranked ? rows.filter((row) => results(row).every(Boolean)) : [];
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
    const rows = comparedRows(experiment, task), best = bestOf(rows, measure);
    for (const method of methods) {
      const row = rows.find((each) => each.method === method);
      if (!row) { make("td", "missing", line, { class: "missing" }); continue; }
      const [value, ...details] = row.cells[measure];
      const box = make("td", value, line, {
        "data-task": task, "data-method": method, class: best.includes(row) ? "best" : "" });
      for (const detail of details) make("small", detail, box);
    }
  }
  $("table-note").textContent = experiment.notes[measure];
}

function drawTrials() {
  const trials = current().trials, table = $("trials-table");
  $("trials").hidden = trials === null;
  table.replaceChildren();
  if (trials === null) return;
  const head = make("tr", null, make("thead", null, table)), body = make("tbody", null, table);
  for (const name of trials.header) make("th", name, head, { scope: "col" });
  for (const row of trials.rows) {
    const line = make("tr", null, body);
    for (const text of row) make("td", text, line);
  }
}

function drawAggregates() {
  const aggregates = current().aggregates;
  $("aggregates").hidden = aggregates === null;
  if (aggregates === null) return;
  $("aggregates-note").textContent = aggregates.note;
  const boxes = plots($("aggregate-plots"), aggregates.plots.map((plot) => plot.name), "data-part");
  boxes.forEach(([, box], index) => {
    const { title, points } = aggregates.plots[index];
    const there = points.filter((point) => !hidden.has(point.method));
    const side = (end, sign) => there.map(({ interval }) =>
      interval[end] === null ? 0 : sign * (interval[end] - interval[0]));
    const trace = {
      x: there.map((point) => point.interval[0]),
      y: there.map((point) => label(data.names[point.method])),
      error_x: { type: "data", symmetric: false, array: side(2, 1), arrayminus: side(1, -1), width: 0,
                 thickness: 2, color: css("--faint") },
      mode: "markers", marker: { size: 10, color: there.map((point) => color(point.method)) },
      text: there.map((point) => point.text),
      hovertemplate: "%{y}: %{text}<extra></extra>",
    };
    const look = layout(title, "", { autorange: "reversed" });
    look.xaxis = { ...look.xaxis, range: [-0.03, 1.03], tickformat: ".0%" };
    Plotly.newPlot(box, [trace], look, CONFIG);
  });
}
